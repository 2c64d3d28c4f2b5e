//! `sendoff status`: how many events stand where.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::{COUNT_MAX, Counts, EventState, SinkDown, WorkerInfo};
use serde::Serialize;

use crate::args::StatusArgs;
use crate::exit::Answer;
use crate::output::{Table, count, moment, print, print_json, span, visible};
use crate::shape::DownShape;

/// A target, for programs.
#[derive(Serialize, JsonSchema)]
struct Target<'c> {
    target: &'c str,
    /// Written, and no worker has its lane; or to be delivered later.
    unprocessed: u64,
    /// In a lane that a worker has.
    processing: u64,
    /// Waiting for a retry, behind one that does, or for an operator.
    failed: u64,
    /// In a lane whose worker is lost.
    abandoned: u64,
    dead: u64,
    /// Kept as history.
    published: u64,
    /// How long ago the oldest event that is not delivered was written.
    oldest_seconds: Option<f64>,
    /// By an operator.
    paused: bool,
    /// As one of its workers has noted.
    sink_down: Option<DownShape>,
}

/// How many events stand where.
#[derive(Serialize, JsonSchema)]
pub(super) struct Status<'c> {
    targets: Vec<Target<'c>>,
    /// No count goes further.
    count_max: u64,
}

/// Shows it, once or again and again.
pub(crate) async fn run(args: &StatusArgs) -> Result<Answer> {
    let inspect = super::open(&args.store).await?;
    loop {
        let (counts, workers) = (inspect.counts().await?, inspect.workers().await?);
        if args.json {
            print_json(&status(&counts, &workers))?;
        } else {
            if args.watch.is_some() && std::io::stdout().is_terminal() {
                print("\x1b[2J\x1b[H")?;
            }
            show(&counts, &workers)?;
        }
        let Some(seconds) = args.watch else { return Ok(Answer::Yes) };
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    }
}

/// What the workers of a target have noted of its sink; that of one that is lost tells nothing any more.
fn down<'w>(target: &str, workers: &'w [WorkerInfo]) -> Option<&'w SinkDown> {
    let live = workers.iter().filter(|worker| worker.target == target && !worker.expired);
    live.filter_map(|worker| worker.sink_down.as_ref()).min_by_key(|down| down.since)
}

fn status<'c>(counts: &'c Counts, workers: &[WorkerInfo]) -> Status<'c> {
    let targets = counts.targets.iter().map(|counts| Target {
        target: &counts.target,
        unprocessed: counts.unprocessed,
        processing: counts.processing,
        failed: counts.failed,
        abandoned: counts.abandoned,
        dead: counts.dead,
        published: counts.published,
        oldest_seconds: counts.oldest.map(|age| age.as_secs_f64()),
        paused: counts.paused,
        sink_down: down(&counts.target, workers).map(DownShape::of),
    });
    Status { targets: targets.collect(), count_max: COUNT_MAX }
}

fn show(counts: &Counts, workers: &[WorkerInfo]) -> Result<()> {
    if counts.targets.is_empty() {
        return print("nothing was ever written here\n");
    }
    let head = [
        "TARGET",
        "#UNPROCESSED",
        "#PROCESSING",
        "#FAILED",
        "#ABANDONED",
        "#DEAD",
        "#PUBLISHED",
        "OLDEST",
        "",
    ];
    let mut table = Table::new(&head);
    for target in &counts.targets {
        let numbers = EventState::ALL.iter().map(|state| count(target.of(*state), COUNT_MAX));
        let oldest = target.oldest.map_or_else(|| "-".to_owned(), span);
        let paused = if target.paused { "paused" } else { "" };
        table.row([target.target.clone()].into_iter().chain(numbers).chain([oldest, paused.to_owned()]));
    }
    table.print()?;
    for target in &counts.targets {
        if let Some(down) = down(&target.target, workers) {
            let (since, error) = (moment(down.since), visible(&down.error));
            print(&format!("target {:?}: its sink is down since {since}: {error}\n", target.target))?;
        }
    }
    Ok(())
}
