//! A worker's own session: while it lives it holds a lock named after the worker, so that the others see at once when it is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};

use super::super::{READ_COMMITTED, errors};
use crate::error::StoreError;
use crate::outbox::WorkerId;

/// A lock must be missing for so long before its owner is taken to be gone. A worker that has lost its connection and lives finds out in that
/// time, and stops handing out.
const GONE_AFTER: Duration = Duration::from_millis(600);

/// The sessions of the workers in this process, and what is known of those elsewhere.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    own: Mutex<HashMap<WorkerId, Arc<tokio::sync::Mutex<PgConnection>>>>,
    missing: Mutex<HashMap<WorkerId, Instant>>,
}

impl Sessions {
    /// The worker's session, with its lock.
    pub(super) async fn of(
        &self,
        worker: WorkerId,
        options: &PgConnectOptions,
    ) -> Result<Arc<tokio::sync::Mutex<PgConnection>>, StoreError> {
        if let Some(session) = self.own().get(&worker) {
            return Ok(Arc::clone(session));
        }
        let convert = |error| errors::convert("join", "worker", error);
        let mut connection = PgConnection::connect_with(options).await.map_err(convert)?;
        connection.execute(READ_COMMITTED).await.map_err(convert)?;
        let lock = sqlx::query("SELECT pg_advisory_lock($1)").bind(lock_key(worker));
        connection.execute(lock).await.map_err(convert)?;
        let session = Arc::new(tokio::sync::Mutex::new(connection));
        self.own().insert(worker, Arc::clone(&session));
        Ok(session)
    }

    /// Closes a worker's session, and with it goes its lock.
    pub(super) fn close(&self, worker: WorkerId) {
        self.own().remove(&worker);
    }

    /// Takes note of who was seen without a lock; who has been for long enough.
    pub(super) fn gone(&self, without_lock: &[WorkerId]) -> Vec<WorkerId> {
        let now = Instant::now();
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.retain(|worker, _| without_lock.contains(worker));
        let mut gone = Vec::new();
        for worker in without_lock {
            if now - *missing.entry(*worker).or_insert(now) >= GONE_AFTER {
                gone.push(*worker);
            }
        }
        gone
    }

    fn own(&self) -> std::sync::MutexGuard<'_, HashMap<WorkerId, Arc<tokio::sync::Mutex<PgConnection>>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first half of the worker's id: random, so no two workers share it.
fn lock_key(worker: WorkerId) -> i64 {
    let (high, _) = worker.0.as_u64_pair();
    i64::from_be_bytes(high.to_be_bytes())
}
