//! `sendoff redrive`: dead and parked events are tried again.

use std::time::Duration;

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::{Inspect, Redrive, Redriven, Selection};
use serde::Serialize;
use tokio::time::Instant;

use super::selection::{PAGE, Wanted};
use crate::args::RedriveArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};

/// What was done, or would be.
#[derive(Serialize, JsonSchema)]
pub(super) struct RedriveShape {
    dry_run: bool,
    /// So many came back from the dead.
    dead: u64,
    /// So many that waited are due now.
    parked: u64,
}

/// Does it, a page at a time, no faster than it is told to.
pub(crate) async fn run(args: &RedriveArgs) -> Result<Answer> {
    let inspect = super::open_own(&args.bulk.store, "redrive").await?;
    let mut job = Job { inspect: &*inspect, args, done: Redriven::default(), started: Instant::now() };
    match Wanted::of(&args.bulk.selection, &args.bulk.target) {
        Wanted::All(selection) => job.all(selection).await?,
        Wanted::Matching(filter) => {
            let found = filter.find(&*inspect, &args.bulk.target, args.bulk.limit).await?;
            for event in found {
                job.step(Selection::Event(event), 1).await?;
            }
        }
    }
    let Redriven { dead, parked } = job.done;
    if args.bulk.json {
        print_json(&RedriveShape { dry_run: args.bulk.dry_run, dead, parked })?;
    } else {
        let would = if args.bulk.dry_run { "would be" } else { "are" };
        print(&format!("{dead} dead and {parked} parked events {would} tried again\n"))?;
    }
    if dead + parked == 0 {
        eprintln!("nothing that was asked for is dead or waits for a retry");
        return Ok(Answer::No);
    }
    Ok(Answer::Yes)
}

struct Job<'a> {
    inspect: &'a dyn Inspect,
    args: &'a RedriveArgs,
    done: Redriven,
    started: Instant,
}

impl Job<'_> {
    fn count(&self) -> u64 {
        self.done.dead + self.done.parked
    }

    /// Until nothing is left, or enough is done. A dry run changes nothing, so it asks for all at once.
    async fn all(&mut self, selection: Selection) -> Result<()> {
        let page = match (self.args.bulk.dry_run, self.args.rate) {
            (true, _) => u32::MAX,
            (false, Some(rate)) => rate.div_ceil(10).min(PAGE),
            (false, None) => PAGE,
        };
        loop {
            let left = self.args.bulk.limit - self.count();
            let limit = u32::try_from(left).unwrap_or(u32::MAX).min(page);
            if limit == 0
                || self.step(selection.clone(), limit).await? < u64::from(limit)
                || self.args.bulk.dry_run
            {
                return Ok(());
            }
        }
    }

    async fn step(&mut self, selection: Selection, limit: u32) -> Result<u64> {
        let ask = Redrive { selection, limit, dry_run: self.args.bulk.dry_run, by: super::operator() };
        let redriven = self.inspect.redrive(&ask).await?;
        self.done.dead += redriven.dead;
        self.done.parked += redriven.parked;
        if let (Some(rate), false) = (self.args.rate, self.args.bulk.dry_run) {
            let due = self.started + Duration::from_secs(1).mul_f64(self.count() as f64 / f64::from(rate));
            tokio::time::sleep_until(due).await;
        }
        Ok(redriven.dead + redriven.parked)
    }
}
