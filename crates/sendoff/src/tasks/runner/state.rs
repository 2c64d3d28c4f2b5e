//! What a runner's loop and its keeper share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::tasks::{Member, TaskToken, WorkerId};

/// Rings when there may be something to do: a runner in the same process looks at once.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Rings. To be called after the host's transaction has committed.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    pub(super) async fn rung(&self) {
        self.0.notified().await;
    }
}

/// What a runner did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunnerStats {
    /// Tasks it has claimed.
    pub claimed: u64,
    /// Attempts that went well.
    pub completed: u64,
    /// Attempts after which the task was given up.
    pub failed: u64,
    /// Attempts after which the task was to be tried again, if it had any left.
    pub retried: u64,
    /// Handlers that panicked; counted among the others as well.
    pub panicked: u64,
    /// Settlements that were refused: the task was cancelled, or another's by then.
    pub stale: u64,
    /// How often it was taken for lost, and had to begin anew.
    pub lost: u64,
    /// Tasks it has returned from workers that were lost.
    pub reaped: u64,
    /// Entries and tasks that it has mended.
    pub mended: u64,
}

#[derive(Debug)]
pub(super) struct State {
    /// Who this is at present.
    pub(super) member: Member,
    /// What runs, and how to tell it that it need not.
    pub(super) running: HashMap<TaskToken, watch::Sender<bool>>,
    /// From when the last sign of life that was taken is counted: from before it was given.
    pub(super) alive_since: Instant,
    pub(super) stats: RunnerStats,
}

/// What a runner's loop and its keeper share.
#[derive(Debug)]
pub(super) struct Shared(Mutex<State>);

impl Shared {
    pub(super) fn new(member: Member) -> Self {
        let stats = RunnerStats::default();
        Self(Mutex::new(State { member, running: HashMap::new(), alive_since: Instant::now(), stats }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn member(&self) -> Member {
        self.state().member.clone()
    }
}

impl State {
    /// Tells everything that runs that it need not go on.
    pub(super) fn cancel_all(&self) {
        for cancelled in self.running.values() {
            cancelled.send_replace(true);
        }
    }

    pub(super) fn become_new(&mut self) -> WorkerId {
        self.member.worker = WorkerId::generate();
        self.member.worker
    }
}
