//! What a handler is told, and can tell.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::StoreError;
use crate::tasks::{Settled, Store, TaskId, TaskToken};

/// What a handler is told of its task, and can tell about it.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) store: Arc<dyn Store>,
    pub(super) token: TaskToken,
    pub(super) kind: Arc<str>,
    pub(super) attempts_max: u32,
    pub(super) cancelled: watch::Receiver<bool>,
}

impl Context {
    /// Which task it is.
    pub fn task(&self) -> TaskId {
        self.token.task
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Which attempt this is, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.token.attempt
    }

    /// There will be no other attempt.
    pub fn is_last_attempt(&self) -> bool {
        self.token.attempt >= self.attempts_max
    }

    /// Proof of this claim: what a handler writes elsewhere can carry it, so that a late one is known.
    pub fn token(&self) -> TaskToken {
        self.token
    }

    /// Says how far it is, for people to read. Stale: the task was cancelled, or is another's by now.
    ///
    /// # Errors
    /// As the store's.
    pub async fn progress(&self, text: &str) -> Result<Settled, StoreError> {
        self.store.report(&self.token, text).await
    }

    /// Lets this attempt take so much longer, counted from now. Stale: the task was cancelled, or is another's by now.
    ///
    /// # Errors
    /// As the store's.
    pub async fn extend(&self, time: Duration) -> Result<Settled, StoreError> {
        self.store.extend(&self.token, time).await
    }

    /// The task was cancelled, or lost, or the runner stops and has waited long enough: whatever this attempt comes to, nobody will know.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Waits until [`is_cancelled`](Self::is_cancelled).
    pub async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|is_cancelled| *is_cancelled).await.is_err() {
            // Whoever could say so is gone, and with it whoever would settle.
            std::future::pending::<()>().await;
        }
    }
}
