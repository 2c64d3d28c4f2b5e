//! `sendoff lanes`: who has which.

use anyhow::Result;

use crate::args::LanesArgs;
use crate::exit::Answer;
use crate::output::{Table, moment, print, print_json};

/// Shows them.
pub(crate) async fn run(args: &LanesArgs) -> Result<Answer> {
    let lanes = super::open(&args.store).await?.lanes(&args.target).await?;
    if args.json {
        print_json(&serde_json::json!({ "target": args.target, "lanes": lanes }))?;
        return Ok(Answer::Yes);
    }
    if lanes.is_empty() {
        print(&format!("no worker has ever come for target {:?}\n", args.target))?;
        return Ok(Answer::Yes);
    }
    let mut table =
        Table::new(&["#LANE", "WORKER", "NAME", "LEASED UNTIL", "#EPOCH", "#FLOOR", "#CRASHES", ""]);
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
            if lane.expired { "expired".to_owned() } else { String::new() },
        ]);
    }
    table.print()?;
    Ok(Answer::Yes)
}
