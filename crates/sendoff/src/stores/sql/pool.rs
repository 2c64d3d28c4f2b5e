//! Pools of our own.

use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::{Connection as _, Database};

/// A connection that was used within this time is taken to be alive.
const FRESH: Duration = Duration::from_secs(1);

/// Options for a pool that does not double the trips of a claim: by default the driver asks the
/// server whether it is there before every single use.
pub(crate) fn pool_options<DB: Database>() -> PoolOptions<DB> {
    PoolOptions::new().test_before_acquire(false).before_acquire(|connection: &mut DB::Connection, used| {
        Box::pin(async move {
            if used.idle_for > FRESH {
                connection.ping().await?;
            }
            Ok(true)
        })
    })
}
