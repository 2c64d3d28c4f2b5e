//! Connections of our own.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::{Pool, PoolConnection, PoolOptions};
use sqlx::{ConnectOptions as _, Connection, Database};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A connection that was used within this time is taken to be alive.
const FRESH: Duration = Duration::from_secs(1);

/// Who has not got a connection by then is told that there is none.
const PERMIT_TIME_MAX: Duration = Duration::from_secs(30);

/// A pool, and the connections of it that are kept at hand.
///
/// The driver's pool asks the server whether it is there before every use and after it: two more trips for a claim of one. A pool
/// that is ours alone lends its connections for good, and only one that was idle is asked. A pool that the host has made may be
/// the host's own as well, so there every connection goes back at once.
#[derive(Debug)]
pub(crate) struct Connections<DB: Database> {
    pool: Pool<DB>,
    /// None: the pool is not ours.
    ours: Option<Arc<Ours<DB>>>,
}

#[derive(Debug)]
struct Ours<DB: Database> {
    kept: Mutex<Vec<(PoolConnection<DB>, Instant)>>,
    /// As many as the pool has connections. Whoever waits, waits here: the pool's own queue would not hear of a
    /// connection that was kept.
    permits: Arc<Semaphore>,
}

impl<DB: Database> Clone for Connections<DB> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), ours: self.ours.clone() }
    }
}

impl<DB: Database> Connections<DB> {
    /// Up to `most` connections to a server that has answered. Tried with one connection first: a pool would
    /// hide a refused one behind its own time limit. Each is prepared as `pool` says.
    pub(crate) async fn open(
        pool: PoolOptions<DB>,
        options: <DB::Connection as Connection>::Options,
        most: u32,
    ) -> Result<Self, sqlx::Error> {
        options.connect().await?.close().await?;
        let pool = pool.test_before_acquire(false).max_connections(most).connect_lazy_with(options);
        let permits = Arc::new(Semaphore::new(most as usize));
        Ok(Self { pool, ours: Some(Arc::new(Ours { kept: Mutex::default(), permits })) })
    }

    /// The connections of a pool that the host has made.
    pub(crate) fn of_host(pool: Pool<DB>) -> Self {
        Self { pool, ours: None }
    }

    /// Whether the pool is sendoff's own, and its sessions are prepared as sendoff wants them.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) fn are_ours(&self) -> bool {
        self.ours.is_some()
    }

    /// How the pool connects.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) fn options(&self) -> Arc<<DB::Connection as Connection>::Options> {
        self.pool.connect_options()
    }

    /// A connection that is free. Dropped, it is examined by the pool before anybody gets it again;
    /// [`keep`](Lent::keep) spares that.
    pub(crate) async fn acquire(&self) -> Result<Lent<DB>, sqlx::Error> {
        let Some(ours) = &self.ours else {
            return Ok(Lent { connection: self.pool.acquire().await?, home: None });
        };
        let permit = tokio::time::timeout(PERMIT_TIME_MAX, Arc::clone(&ours.permits).acquire_owned())
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)?
            .map_err(|_| sqlx::Error::PoolClosed)?;
        let home = Some((Arc::clone(ours), permit));
        while let Some((mut connection, used)) = ours.take() {
            if used.elapsed() < FRESH || connection.ping().await.is_ok() {
                return Ok(Lent { connection, home });
            }
            // It broke while nobody looked. Dropped, it is looked at by the pool, and closed.
        }
        Ok(Lent { connection: self.pool.acquire().await?, home })
    }
}

impl<DB: Database> Ours<DB> {
    fn take(&self) -> Option<(PoolConnection<DB>, Instant)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl<DB: Database> Drop for Ours<DB> {
    fn drop(&mut self) {
        // Given back to the pool, each would want a task to be looked at in, and the runtime may be gone.
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (connection, _) in kept.drain(..) {
            drop(connection.leak());
        }
    }
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Lent<DB: Database> {
    connection: PoolConnection<DB>,
    /// Where it goes when all went well, and the right to it. None: back to the pool.
    home: Option<(Arc<Ours<DB>>, OwnedSemaphorePermit)>,
}

impl<DB: Database> Lent<DB> {
    /// Closes it: whatever is open on it is rolled back by the server.
    pub(crate) fn discard(self) {
        drop(self.connection.detach());
    }

    /// Gives it back as it is: its last statement went well and no transaction is open on it.
    pub(crate) fn keep(self) {
        if let Some((ours, permit)) = self.home {
            ours.kept.lock().unwrap_or_else(PoisonError::into_inner).push((self.connection, Instant::now()));
            // Only now may the next one look.
            drop(permit);
        }
    }
}

impl<DB: Database> Deref for Lent<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.connection
    }
}

impl<DB: Database> DerefMut for Lent<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.connection
    }
}
