//! `sendoff demo`: the main job, with everything going wrong that may.

mod journal;
mod processes;
mod producers;
mod progress;
mod unfenced;
mod verdict;
pub(crate) mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sendoff::outbox::Inspect;

use self::journal::Tail;
use self::processes::Processes;
use self::producers::Producers;
use self::progress::{Progress, Step};
pub(crate) use self::verdict::Verdict;
use self::verdict::judge;
use crate::args::DemoArgs;
use crate::part::Part;
use crate::site::Site;

/// Nothing was delivered for so long: it will not be.
const STUCK: Duration = Duration::from_secs(20);

/// How often it is looked how far everything is.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs the demo. False: a guarantee did not hold.
pub(crate) async fn run(args: &DemoArgs) -> Result<bool> {
    let directory = tempfile::tempdir().context("a temporary directory")?;
    let file = format!("sqlite:{}", directory.path().join("demo.db").display());
    let url = args.store.clone().unwrap_or(file);
    let names = format!("sendoff_demo_{:08x}", fastrand::u32(..));
    let site = Site::connect(&url, &names, 8).await?;
    site.migrate(Part::Outbox).await?;
    let verdict = perform(args, &site, directory.path()).await;
    site.remove().await?;
    let verdict = verdict?;
    if args.json {
        println!("{}", serde_json::to_string(&verdict)?);
    } else {
        print(&verdict);
    }
    Ok(verdict.holds())
}

async fn perform(args: &DemoArgs, site: &Site, directory: &Path) -> Result<Verdict> {
    let journal: PathBuf = directory.join("journal.jsonl");
    std::fs::write(&journal, "")?;
    let mut progress = Progress::new(args.events);
    let started = Instant::now();
    let mut processes = Processes::start(args, site, &journal).await?;
    progress.say(&format!("{} worker processes: {}", args.workers, processes.list()));
    let producers = Arc::new(Producers::new(site.clone(), args.events));
    let mut writing = {
        let producers = Arc::clone(&producers);
        Some(tokio::spawn(async move { producers.run().await }))
    };
    let inspect = site.inspect().await?;
    let mut tail = Tail::default();
    let mut moved = Instant::now();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let before = tail.deliveries;
        tail.follow(&journal)?;
        if tail.deliveries > before {
            moved = Instant::now();
        }
        let committed = producers.committed.load(Ordering::Relaxed);
        let rolled_back = producers.rolled_back.load(Ordering::Relaxed);
        progress.step(Step { wanted: args.events, committed, rolled_back, delivered: tail.deliveries });
        processes.trouble(&mut tail, args.events, &progress)?;
        if writing.as_ref().is_some_and(tokio::task::JoinHandle::is_finished)
            && let Some(ended) = writing.take()
        {
            ended.await??;
        }
        let may_be_done = writing.is_none() && processes.is_quiet() && tail.delivered() >= committed;
        if may_be_done && is_empty(&*inspect).await? {
            break;
        }
        if writing.is_none() && moved.elapsed() > STUCK {
            progress.say("nothing more is delivered");
            break;
        }
    }
    progress.end();
    let seconds = started.elapsed().as_secs_f64();
    let troubled = processes.stop().await?;
    Ok(judge(&producers.written().await, &journal::read(&journal)?, &troubled, seconds))
}

/// Nothing is left to deliver: what a retry has put aside is not forgotten.
async fn is_empty(inspect: &dyn Inspect) -> Result<bool> {
    let counts = inspect.counts().await?;
    let waiting = counts.targets.iter().map(|of| of.unprocessed + of.processing + of.failed + of.abandoned);
    Ok(waiting.sum::<u64>() == 0)
}

fn print(verdict: &Verdict) {
    let line = |name: &str, count: u64, note: &str| println!("{name:>24} {count:>9}   {note}");
    println!();
    line("committed", verdict.committed, "");
    line("rolled back", verdict.rolled_back, "");
    line("delivered", verdict.delivered, "");
    line("lost", verdict.lost, "committed, never delivered");
    line("phantom", verdict.phantom, "rolled back, delivered all the same");
    line("out of order", verdict.out_of_order, "after a later event of the same key");
    let explained =
        format!("{} of them in the hands of a killed or frozen process", verdict.duplicates_explained);
    line("duplicated", verdict.duplicated, &explained);
    let word = if verdict.holds() { "every guarantee held" } else { "A GUARANTEE DID NOT HOLD" };
    println!("\n{word}, in {:.1} s", verdict.seconds);
}
