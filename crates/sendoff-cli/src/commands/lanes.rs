//! `sendoff lanes`: who has which.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::LaneInfo;
use serde::Serialize;

use crate::args::LanesArgs;
use crate::exit::Answer;
use crate::output::{Table, moment, print, print_json};
use crate::shape::{Id, Moment};

/// The lanes of a target.
#[derive(Serialize, JsonSchema)]
pub(super) struct Lanes<'l> {
    target: &'l str,
    lanes: Vec<LaneShape<'l>>,
}

/// A lane and its owner.
#[derive(Serialize, JsonSchema)]
struct LaneShape<'l> {
    lane: u16,
    /// The worker that has it.
    owner: Option<Id>,
    /// By which name.
    name: Option<&'l str>,
    lease_until: Option<Moment>,
    /// Whether that has passed.
    expired: bool,
    /// How often it was leased.
    epoch: i64,
    /// Nothing is at or below this position.
    floor: i64,
    /// Owners lost in a row.
    crashes: u32,
    /// A worker is there that may have it.
    covered: bool,
}

impl<'l> LaneShape<'l> {
    fn of(lane: &'l LaneInfo) -> Self {
        Self {
            lane: lane.lane,
            owner: lane.owner.map(Id::of),
            name: lane.name.as_deref(),
            lease_until: lane.lease_until.map(Moment),
            expired: lane.expired,
            epoch: lane.epoch,
            floor: lane.floor,
            crashes: lane.crashes,
            covered: lane.covered,
        }
    }
}

/// Shows them.
pub(crate) async fn run(args: &LanesArgs) -> Result<Answer> {
    let lanes = super::open_own(&args.store, "lanes").await?.lanes(&args.target).await?;
    if args.json {
        let lanes = lanes.iter().map(LaneShape::of).collect();
        print_json(&Lanes { target: &args.target, lanes })?;
        return Ok(Answer::Yes);
    }
    if lanes.is_empty() {
        print(&format!("no worker has ever come for target {:?}\n", args.target))?;
        return Ok(Answer::Yes);
    }
    let mut table =
        Table::new(&["#LANE", "WORKER", "NAME", "LEASED UNTIL", "#EPOCH", "#FLOOR", "#CRASHES", ""]);
    let is_served = lanes.iter().any(|lane| lane.covered);
    for lane in &lanes {
        let dash = || "-".to_owned();
        table.row([
            lane.lane.to_string(),
            lane.owner.map_or_else(dash, |owner| owner.to_string()),
            lane.name.clone().unwrap_or_else(dash),
            lane.lease_until.map_or_else(dash, moment),
            lane.epoch.to_string(),
            lane.floor.to_string(),
            lane.crashes.to_string(),
            state(lane, is_served).to_owned(),
        ]);
    }
    table.print()?;
    Ok(Answer::Yes)
}

/// What is to be said of it. Where no worker is there at all, `sendoff workers` says so.
fn state(lane: &LaneInfo, is_served: bool) -> &'static str {
    match lane {
        LaneInfo { owner: Some(_), expired: false, .. } => "",
        LaneInfo { covered: false, .. } if is_served => "no worker may have it",
        LaneInfo { expired: true, .. } => "expired",
        _ => "",
    }
}
