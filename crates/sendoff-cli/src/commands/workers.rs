//! `sendoff workers`: who is registered.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::{LaneSet, Scope, WorkerInfo};
use serde::Serialize;

use crate::args::WorkersArgs;
use crate::exit::Answer;
use crate::output::{ERROR_SHOWN, Table, moment, print, print_json, short};
use crate::shape::{DownShape, Id, Moment};

/// The workers of all targets.
#[derive(Serialize, JsonSchema)]
pub(super) struct Workers<'w> {
    workers: Vec<WorkerShape<'w>>,
}

/// A worker.
#[derive(Serialize, JsonSchema)]
struct WorkerShape<'w> {
    worker: Id,
    /// Several may have the same.
    name: &'w str,
    target: &'w str,
    started_at: Moment,
    /// It is taken to be there until then.
    lease_until: Moment,
    /// Whether that has passed.
    expired: bool,
    /// So many lanes are its own.
    lanes: u64,
    /// It may have these, both ends included: `0..15`, `0..7,12`.
    range: String,
    /// Only while no other exclusive worker of this range works.
    exclusive: bool,
    /// Its sink is down.
    sink_down: Option<DownShape>,
}

impl<'w> WorkerShape<'w> {
    fn of(worker: &'w WorkerInfo) -> Self {
        Self {
            worker: Id::of(worker.worker),
            name: &worker.name,
            target: &worker.target,
            started_at: Moment(worker.started_at),
            lease_until: Moment(worker.lease_until),
            expired: worker.expired,
            lanes: worker.lanes,
            range: worker.scope.lanes.to_string(),
            exclusive: worker.scope.exclusive,
            sink_down: worker.sink_down.as_ref().map(DownShape::of),
        }
    }
}

/// Shows them.
pub(crate) async fn run(args: &WorkersArgs) -> Result<Answer> {
    let workers = super::open_own(&args.store, "workers").await?.workers().await?;
    if args.json {
        print_json(&Workers { workers: workers.iter().map(WorkerShape::of).collect() })?;
        return Ok(Answer::Yes);
    }
    if workers.is_empty() {
        print("no worker is there: `sendoff run` starts one\n")?;
        return Ok(Answer::Yes);
    }
    let mut table =
        Table::new(&["TARGET", "NAME", "WORKER", "#LANES", "MAY HAVE", "STARTED", "LEASED UNTIL", ""]);
    for worker in &workers {
        table.row([
            worker.target.clone(),
            worker.name.clone(),
            worker.worker.to_string(),
            worker.lanes.to_string(),
            may_have(&worker.scope),
            moment(worker.started_at),
            moment(worker.lease_until),
            match &worker.sink_down {
                _ if worker.expired => "lost".to_owned(),
                Some(down) => {
                    format!("sink down since {}: {}", moment(down.since), short(&down.error, ERROR_SHOWN))
                }
                None => String::new(),
            },
        ]);
    }
    table.print()?;
    Ok(Answer::Yes)
}

/// Which lanes, and whether alone.
fn may_have(scope: &Scope) -> String {
    let lanes = if scope.lanes == LaneSet::ALL { "all".to_owned() } else { scope.lanes.to_string() };
    if scope.exclusive { format!("{lanes}, exclusive") } else { lanes }
}
