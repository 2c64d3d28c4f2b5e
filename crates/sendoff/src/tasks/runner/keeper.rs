//! Keeps a runner alive in the store's eyes, and does the chores that nobody is waiting for.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;

use super::Inner;
use super::state::Shared;
use crate::error::StoreError;
use crate::tasks::{CheckPoint, TaskToken};

/// So many tasks are returned at a time, and so many entries looked at.
const BATCH: u32 = 500;

/// For as long as it is polled.
pub(super) async fn keep(inner: &Inner, shared: &Shared) -> Infallible {
    let (never, _, _) = tokio::join!(beats(inner, shared), watch(inner, shared), chores(inner, shared));
    never
}

/// Signs of life, three to a lease, and by themselves: no chore may hold them up.
async fn beats(inner: &Inner, shared: &Shared) -> Infallible {
    let lease = inner.config.lease;
    loop {
        tokio::time::sleep(lease / 3).await;
        let member = shared.member();
        let before = Instant::now();
        match inner.store.beat(&member).await {
            Ok(true) => shared.state().alive_since = before,
            Ok(false) => begin_anew(inner, shared).await,
            Err(error) => {
                tracing::warn!(%error, "no sign of life could be given; trying again");
                let state = shared.state();
                if state.alive_since.elapsed() >= lease {
                    // By now others take this worker for lost, and its tasks with it.
                    state.cancel_all();
                }
            }
        }
    }
}

/// It came too late: what it had may be another's by now. It goes on under a new identity.
async fn begin_anew(inner: &Inner, shared: &Shared) {
    let member = {
        let mut state = shared.state();
        state.cancel_all();
        state.stats.lost += 1;
        let worker = state.become_new();
        tracing::warn!(%worker, "taken for lost; going on under a new identity");
        state.member.clone()
    };
    loop {
        let before = Instant::now();
        match inner.store.join(&member).await {
            Ok(()) => {
                shared.state().alive_since = before;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot join again; trying again");
                tokio::time::sleep(inner.config.lease / 3).await;
            }
        }
    }
}

/// Tells handlers whose tasks were cancelled, or lost.
async fn watch(inner: &Inner, shared: &Shared) -> Infallible {
    loop {
        tokio::time::sleep(inner.config.watch).await;
        let tokens: Vec<TaskToken> = shared.state().running.keys().copied().collect();
        if tokens.is_empty() {
            continue;
        }
        match inner.store.held(&tokens).await {
            Ok(held) => {
                let state = shared.state();
                for token in tokens.iter().filter(|token| !held.contains(token)) {
                    if let Some(cancelled) = state.running.get(token) {
                        cancelled.send_replace(true);
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "cannot look whether tasks were cancelled"),
        }
    }
}

/// Returns what lost workers had, and mends what does not belong together: a little of it at a time.
async fn chores(inner: &Inner, shared: &Shared) -> Infallible {
    let mut from = CheckPoint::default();
    loop {
        // Not in step with other runners.
        let pause = (inner.config.lease / 3).mul_f64(0.5 + fastrand::f64() / 2.0);
        tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
        if let Err(error) = reap(inner, shared).await {
            tracing::warn!(%error, "tasks of lost workers cannot be returned; trying again");
        }
        match inner.store.check(from.clone(), BATCH).await {
            Ok(checked) => {
                let found = checked.orphaned.len() + checked.left_over.len() + checked.unentered.len();
                if found > 0 {
                    tracing::warn!(
                        orphaned = checked.orphaned.len(),
                        left_over = checked.left_over.len(),
                        unentered = checked.unentered.len(),
                        "tasks and entries did not belong together, and were mended"
                    );
                    shared.state().stats.mended += found as u64;
                    inner.bell.ring();
                }
                from = checked.next.unwrap_or_default();
            }
            Err(error) => tracing::debug!(%error, "tasks and entries cannot be checked"),
        }
    }
}

async fn reap(inner: &Inner, shared: &Shared) -> Result<(), StoreError> {
    loop {
        let reaped = inner.store.reap(BATCH).await?;
        if reaped.total() == 0 {
            return Ok(());
        }
        tracing::info!(returned = reaped.returned, failed = reaped.failed, "tasks of lost workers");
        shared.state().stats.reaped += u64::from(reaped.total());
        inner.bell.ring();
        if reaped.total() < BATCH {
            return Ok(());
        }
    }
}
