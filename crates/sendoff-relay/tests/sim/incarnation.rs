//! One start of a relay, which can be frozen, cut off from the store, or killed at whatever it waits for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sendoff::outbox::WorkerId;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::history::{IncarnationNo, WorkerNo};

/// One start of a relay. All it does to the world goes through its store and its sink, and both ask here first: who is frozen waits, who is dead waits for
/// ever.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) number: IncarnationNo,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_dead: bool,
    frozen_until: Option<Instant>,
    cut_off_until: Option<Instant>,
    task: Option<AbortHandle>,
    /// Its workers' own random ids, and the seed's for them: workers are ranked by id, and that must be the same each time.
    workers: BTreeMap<WorkerId, WorkerId>,
}

impl Incarnation {
    pub(crate) fn new(number: IncarnationNo) -> Self {
        Self { number, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn runs_as(&self, task: AbortHandle) {
        self.state().task = Some(task);
    }

    /// Waits while it is frozen, and for ever once it is dead.
    pub(crate) async fn pass(&self) {
        loop {
            let (is_dead, until) = {
                let state = self.state();
                (state.is_dead, state.frozen_until)
            };
            if is_dead {
                std::future::pending::<()>().await;
            }
            match until {
                Some(until) if Instant::now() < until => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }

    pub(crate) fn freeze(&self, until: Instant) {
        self.state().frozen_until = Some(until);
    }

    pub(crate) fn frozen_until(&self) -> Option<Instant> {
        self.state().frozen_until.filter(|until| Instant::now() < *until)
    }

    pub(crate) fn cut_off(&self, until: Instant) {
        self.state().cut_off_until = Some(until);
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        self.state().cut_off_until.is_some_and(|until| Instant::now() < until)
    }

    /// Gone at once: nothing it waits for ever comes.
    pub(crate) fn kill(&self) {
        self.state().is_dead = true;
        self.drop_future();
    }

    /// Its future is dropped, as a host may do.
    pub(crate) fn drop_future(&self) {
        if let Some(task) = &self.state().task {
            task.abort();
        }
    }

    /// What the world calls this worker; `new` if it has not met it.
    pub(crate) fn known_as(&self, worker: WorkerId, new: impl FnOnce() -> WorkerId) -> WorkerId {
        *self.state().workers.entry(worker).or_insert_with(new)
    }

    /// What a worker of this incarnation calls itself; others keep the world's name.
    pub(crate) fn calls_itself(&self, known: WorkerId) -> WorkerId {
        let state = self.state();
        state.workers.iter().find(|(_, as_known)| **as_known == known).map_or(known, |(worker, _)| *worker)
    }
}

/// The world's id for its n-th worker: in an order that chance decides.
pub(crate) fn worker_id(chance: u64, number: WorkerNo) -> WorkerId {
    WorkerId(Uuid::from_u128((u128::from(chance) << 64) | u128::from(number)))
}

/// Which worker of the world it is.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are the number")]
pub(crate) fn worker_number(id: WorkerId) -> WorkerNo {
    id.0.as_u128() as u32
}
