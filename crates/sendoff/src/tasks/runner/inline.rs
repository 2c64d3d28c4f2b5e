//! Runs everything that is due, here and now: for tests of a host.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::watch;

use super::attempt::{self, Outcome};
use super::{Runner, keeper};
use crate::error::StoreError;
use crate::tasks::Claim;

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Attempts that went well.
    pub completed: u64,
    /// Attempts after which the task was given up by its handler.
    pub failed: u64,
    /// Attempts after which the task was to be tried again, if it had any left.
    pub retried: u64,
}

impl Runner {
    /// Runs every task that is due, one after the other, in this task of the caller's, until nothing is due: a test then knows that all has been done. What is
    /// to be tried again later is left for later.
    ///
    /// # Errors
    /// As the store's.
    pub async fn drain_inline(&self) -> Result<Drained, StoreError> {
        let shared = self.inner.join().await?;
        let work = pin!(async {
            let mut drained = Drained::default();
            loop {
                let member = shared.member();
                let claim = Claim { worker: member.worker, kinds: member.kinds, limit: 1 };
                let Some(task) = self.inner.store.claim(&claim).await?.pop() else { return Ok(drained) };
                let Some(token) = task.token() else { return Ok(drained) };
                let (cancel, cancelled) = watch::channel(false);
                shared.state().running.insert(token, cancel);
                let ended = attempt::run(Arc::clone(&self.inner), task, token, cancelled).await;
                shared.state().running.remove(&token);
                match ended.outcome {
                    Outcome::Completed => drained.completed += 1,
                    Outcome::Failed { .. } => drained.failed += 1,
                    Outcome::Retry { .. } => drained.retried += 1,
                }
                attempt::settle(&self.inner, &shared, &mut vec![ended]).await?;
            }
        });
        let keep = pin!(keeper::keep(&self.inner, &shared));
        let drained = tokio::select! {
            drained = work => drained,
            never = keep => match never {},
        };
        let worker = shared.member().worker;
        self.inner.store.leave(worker).await?;
        drained
    }
}
