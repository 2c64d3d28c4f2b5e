//! The last stage: writes down what became of events, as many together as have come.

use std::sync::Arc;
use std::time::Duration;

use sendoff::outbox::{Outcome, Receipt};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::Instant;

use crate::pause::Pause;
use crate::target::{Decided, Loop};

/// So many outcomes go in one flush, about.
const FLUSH_MAX: usize = 1_000;

/// So many are worth a flush of their own: fewer cost the store almost as much.
const FLUSH_WORTH: usize = 250;

/// So long fewer wait for others. Where lanes are leased nothing waits for a delivered one: its key is free already.
const LINGER: Duration = Duration::from_millis(2);

/// Settles until nothing more is published.
pub(crate) async fn run(stages: Arc<Loop>, mut decided: mpsc::Receiver<Vec<Decided>>) {
    while let Some(mut flush) = decided.recv().await {
        gather(&stages, &mut decided, &mut flush).await;
        settle(&stages, flush).await;
    }
}

/// Adds what has come meanwhile, and what comes soon while other events are on their way.
async fn gather(stages: &Loop, decided: &mut mpsc::Receiver<Vec<Decided>>, flush: &mut Vec<Decided>) {
    let until = Instant::now() + LINGER;
    while flush.len() < FLUSH_MAX {
        match decided.try_recv() {
            Ok(more) => flush.extend(more),
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {
                if flush.len() >= FLUSH_WORTH || stages.worker.in_flight() <= flush.len() {
                    return;
                }
                let Ok(Some(more)) = tokio::time::timeout_at(until, decided.recv()).await else { return };
                flush.extend(more);
            }
        }
    }
}

async fn settle(stages: &Loop, flush: Vec<Decided>) {
    let counters = &stages.target.counters;
    let (count, bytes) = (flush.len() as u64, flush.iter().map(|decided| decided.2).sum());
    let published = flush.iter().filter(|decided| decided.1 == Outcome::Published).count();
    let outcomes: Vec<(Receipt, Outcome)> =
        flush.into_iter().map(|(receipt, outcome, _)| (receipt, outcome)).collect();
    let mut pause = Pause::default();
    let summary = loop {
        stages.beat();
        // Safe to repeat: what was written the first time is found gone.
        match stages.worker.settle(&outcomes).await {
            Ok(summary) => break summary,
            Err(error) => {
                stages.target.store_failed("outcomes could not be written", &error);
                pause.wait().await;
            }
        }
    };
    stages.target.store_answered();
    let stale_deliveries = stale_deliveries(stages, &outcomes, summary.stale);
    counters.published.add((published as u64).saturating_sub(stale_deliveries));
    counters.stale.add(summary.stale as u64);
    counters.stale_deliveries.add(stale_deliveries);
    counters.missing.add(summary.missing as u64);
    if summary.stale > 0 {
        tracing::info!(
            target_name = stages.target.config.target,
            events = summary.stale,
            deliveries = stale_deliveries,
            "outcomes were refused: the lane had gone to another worker, which delivers these events again"
        );
    }
    stages.unsettled.sub(count);
    counters.in_flight.sub(count);
    counters.bytes_in_flight.sub(bytes);
    stages.settled.notify_one();
}

/// How many of the outcomes that were refused are deliveries: those whose lane is not this worker's any more.
fn stale_deliveries(stages: &Loop, outcomes: &[(Receipt, Outcome)], stale: usize) -> u64 {
    if stale == 0 {
        return 0;
    }
    let is_gone = |receipt: &Receipt| stages.worker.deadline(receipt.token).is_none();
    let gone =
        outcomes.iter().filter(|(receipt, outcome)| *outcome == Outcome::Published && is_gone(receipt));
    gone.count().min(stale) as u64
}
