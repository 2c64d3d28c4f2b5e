//! One measurement: a new database, tasks enqueued, and run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::database::Fresh;
use crate::systems::{BATCH, Site, System};
use crate::tally::{Faults, Tally};

/// How often it is looked whether all is done.
const LOOK: Duration = Duration::from_millis(2);
/// A system that has not done it by then will not.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is to be measured.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) server: &'a str,
    /// Which measurement this is.
    pub(crate) number: usize,
    pub(crate) workers: u32,
    pub(crate) tasks: u32,
    pub(crate) concurrency: u32,
}

/// What was measured: tasks in a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) enqueued: f64,
    pub(crate) run: f64,
    pub(crate) faults: Faults,
}

pub(crate) async fn measure(system: &dyn System, plan: &Plan<'_>) -> Result<Measured> {
    let database = Fresh::create(plan.server, plan.number).await?;
    let measured = measure_in(system, plan, &database).await;
    database.drop().await?;
    measured
}

async fn measure_in(system: &dyn System, plan: &Plan<'_>, database: &Fresh) -> Result<Measured> {
    system.set_up(&database.url).await.context("it cannot be set up")?;
    database.settle_down().await?;
    let enqueuing = enqueue(system, plan, &database.url).await.context("it cannot enqueue")?;
    database.settle_down().await?;
    let (running, faults) = run(system, plan, &database.url).await.context("it cannot run")?;
    let rate = |time: Duration| f64::from(plan.tasks) / time.as_secs_f64();
    Ok(Measured { enqueued: rate(enqueuing), run: rate(running), faults })
}

/// As many producers as workers, each with an equal part of the tasks.
async fn enqueue(system: &dyn System, plan: &Plan<'_>, url: &str) -> Result<Duration> {
    let mut producers = Vec::new();
    for part in 0..plan.workers {
        let numbers = plan.tasks * part / plan.workers..plan.tasks * (part + 1) / plan.workers;
        producers.push((system.producer(url).await?, numbers));
    }
    let mut enqueuing: JoinSet<Result<()>> = JoinSet::new();
    let began = Instant::now();
    for (mut producer, numbers) in producers {
        enqueuing.spawn(async move {
            for first in numbers.clone().step_by(BATCH as usize) {
                producer.enqueue(first..numbers.end.min(first + BATCH)).await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = enqueuing.join_next().await {
        ended??;
    }
    Ok(began.elapsed())
}

async fn run(system: &dyn System, plan: &Plan<'_>, url: &str) -> Result<(Duration, Faults)> {
    let tally = Arc::new(Tally::new(plan.tasks));
    let observer = system.observer(url).await?;
    let mut workers = Vec::new();
    for number in 0..plan.workers as usize {
        let (url, tally) = (url.to_owned(), Arc::clone(&tally));
        workers.push(system.worker(&Site { url, number, concurrency: plan.concurrency, tally }).await?);
    }
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    let began = Instant::now();
    for worker in workers {
        running.spawn(worker.run(stop.clone()));
    }
    let settled = async {
        // The database is left alone while handlers still run.
        while !tally.is_full() {
            tokio::time::sleep(LOOK).await;
        }
        while observer.unsettled(plan.tasks).await? > 0 {
            tokio::time::sleep(LOOK).await;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        // Faults are counted below.
        ended = tokio::time::timeout(PATIENCE, settled) => ended.unwrap_or(Ok(()))?,
        Some(ended) = running.join_next() => {
            ended??;
            return Err(anyhow!("a worker has ended by itself"));
        }
    }
    let time = began.elapsed();
    stop.cancel();
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let unsettled = observer.unsettled(plan.tasks).await?;
    Ok((time, tally.faults(unsettled)))
}
