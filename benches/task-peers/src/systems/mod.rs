//! The systems beside each other, a file for each: how it is set up, fed and run, by its public interface and nothing else.
//!
//! The same for all: tasks carry [`Work`](crate::tally::Work) as JSON and are read by a typed handler; a producer writes [`BATCH`] of them in a transaction; a worker is one instance of what the system
//! calls worker, runner or client, with a pool of [`CONNECTIONS`] of its own and room for so many tasks at a time as all others have.

mod apalis;
mod awa;
mod graphile;
mod own;

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio_util::sync::CancellationToken;

use crate::tally::Tally;

/// So many tasks are enqueued at a time.
pub(crate) const BATCH: u32 = 1_000;
/// So many connections a producer or a worker may have.
pub(crate) const CONNECTIONS: u32 = 10;

/// One of them.
#[async_trait(?Send)]
pub(crate) trait System {
    /// Its package, as the registry calls it.
    fn package(&self) -> &'static str;

    /// How it is fed.
    fn enqueues_by(&self) -> &'static str;

    /// How it is set, where that is not what it does by itself.
    fn settings(&self) -> &'static str;

    /// Makes its tables in an empty database.
    async fn set_up(&self, url: &str) -> Result<()>;

    async fn producer(&self, url: &str) -> Result<Box<dyn Producer>>;

    /// One that is connected, as far as the system can be before it runs.
    async fn worker(&self, site: &Site) -> Result<Box<dyn Worker>>;

    async fn observer(&self, url: &str) -> Result<Box<dyn Observer>>;
}

/// Where a worker works.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) url: String,
    /// Counted from 0.
    pub(crate) number: usize,
    /// So many tasks at a time.
    pub(crate) concurrency: u32,
    pub(crate) tally: Arc<Tally>,
}

#[async_trait]
pub(crate) trait Producer: Send {
    /// Enqueues a task for each number, all in one transaction.
    async fn enqueue(&mut self, numbers: Range<u32>) -> Result<()>;
}

#[async_trait]
pub(crate) trait Worker: Send {
    /// Runs tasks until it is told to stop, and then ends in good order.
    async fn run(self: Box<Self>, stop: CancellationToken) -> Result<()>;
}

#[async_trait]
pub(crate) trait Observer: Send + Sync {
    /// How many of so many tasks the database does not have as completed.
    async fn unsettled(&self, tasks: u32) -> Result<u64>;
}

/// sendoff first: the others are compared with it.
pub(crate) fn all() -> Vec<Box<dyn System>> {
    vec![Box::new(own::Sendoff), Box::new(graphile::Graphile), Box::new(apalis::Apalis), Box::new(awa::Awa)]
}

async fn pool(url: &str) -> Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?)
}

/// Counts what is left in a table.
struct Count {
    pool: PgPool,
    sql: &'static str,
}

impl Count {
    async fn by(url: &str, sql: &'static str) -> Result<Box<dyn Observer>> {
        Ok(Box::new(Self { pool: pool(url).await?, sql }))
    }
}

#[async_trait]
impl Observer for Count {
    async fn unsettled(&self, _tasks: u32) -> Result<u64> {
        let count: i64 = sqlx::query_scalar(self.sql).fetch_one(&self.pool).await?;
        u64::try_from(count).context("a count is never negative")
    }
}
