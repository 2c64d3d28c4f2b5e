//! Pools of our own.

use std::time::Duration;

use sqlx::pool::{Pool, PoolOptions};
use sqlx::{ConnectOptions as _, Connection, Database};

/// A connection that was used within this time is taken to be alive.
const FRESH: Duration = Duration::from_secs(1);

/// A pool of up to `most` connections to a server that has answered. Tried with one connection first: a pool would
/// hide a refused one behind its own time limit.
pub(crate) async fn connect<DB: Database>(
    options: <DB::Connection as Connection>::Options,
    most: u32,
) -> Result<Pool<DB>, sqlx::Error> {
    options.connect().await?.close().await?;
    Ok(pool_options().max_connections(most).connect_lazy_with(options))
}

/// Options for a pool that does not double the trips of a claim: by default the driver asks the
/// server whether it is there before every single use.
fn pool_options<DB: Database>() -> PoolOptions<DB> {
    PoolOptions::new().test_before_acquire(false).before_acquire(|connection: &mut DB::Connection, used| {
        Box::pin(async move {
            if used.idle_for > FRESH {
                connection.ping().await?;
            }
            Ok(true)
        })
    })
}
