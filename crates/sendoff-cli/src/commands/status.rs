//! `sendoff status`: how many events stand where.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Result;
use sendoff::outbox::{COUNT_MAX, Counts, EventState};
use serde::Serialize;

use crate::args::StatusArgs;
use crate::exit::Answer;
use crate::output::{Table, print, print_json, span};

/// A target, for programs.
#[derive(Serialize)]
struct Target<'c> {
    target: &'c str,
    unprocessed: u64,
    processing: u64,
    failed: u64,
    abandoned: u64,
    dead: u64,
    published: u64,
    oldest_seconds: Option<f64>,
    paused: bool,
}

#[derive(Serialize)]
struct Status<'c> {
    targets: Vec<Target<'c>>,
    /// No count goes further.
    count_max: u64,
}

/// Shows it, once or again and again.
pub(crate) async fn run(args: &StatusArgs) -> Result<Answer> {
    let inspect = super::open(&args.store).await?;
    loop {
        let counts = inspect.counts().await?;
        if args.json {
            print_json(&status(&counts))?;
        } else {
            if args.watch.is_some() && std::io::stdout().is_terminal() {
                print("\x1b[2J\x1b[H")?;
            }
            show(&counts)?;
        }
        let Some(seconds) = args.watch else { return Ok(Answer::Yes) };
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    }
}

fn status(counts: &Counts) -> Status<'_> {
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
    });
    Status { targets: targets.collect(), count_max: COUNT_MAX }
}

fn show(counts: &Counts) -> Result<()> {
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
        let numbers = EventState::ALL.iter().map(|state| number(target.of(*state)));
        let oldest = target.oldest.map_or_else(|| "-".to_owned(), span);
        let paused = if target.paused { "paused" } else { "" };
        table.row([target.target.clone()].into_iter().chain(numbers).chain([oldest, paused.to_owned()]));
    }
    table.print()
}

/// A count, which is not always all of them.
fn number(count: u64) -> String {
    if count >= COUNT_MAX { format!("{COUNT_MAX}+") } else { count.to_string() }
}
