//! `apalis-postgres`, with tasks that are not locked a second time when they begin, as its own example (`examples/basic.rs`) has it (`lock_tasks(false)`; a fetch has marked them as the worker's already), and a thousand tasks to a fetch, as many as
//! `graphile_worker` fetches here. In single readings the example's hundred came to less than half of that with one worker, and two thousand to the same with one worker and a quarter more with four, which is within the noise. Without `parallelize`, which the
//! example has: with handlers that only count it was no faster.
//!
//! Results have to be persisted: without that nothing is ever completed. After a fetch that found nothing, and before it settles what has ended since, it waits for its poll strategy: an interval of 5 ms, since the heartbeat, by which it would
//! wake otherwise, comes after 30 s.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{
    BackendExt as _, BoxDynError, Data, Strategy, TaskBuilder, WorkerBuilder, WorkerError,
};
use apalis_postgres::{Config, PostgresStorage, queries};
use async_trait::async_trait;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{Count, Observer, Producer, Site, System, Worker};
use crate::tally::{Tally, Work};

const QUEUE: &str = "work";
const FETCHED: usize = 1_000;

pub(super) struct Apalis;

#[async_trait(?Send)]
impl System for Apalis {
    fn package(&self) -> &'static str {
        "apalis-postgres"
    }

    fn enqueues_by(&self) -> &'static str {
        "queries::push_tasks"
    }

    fn settings(&self) -> &'static str {
        "batch_size 1,000, lock_tasks off, polled every 5 ms"
    }

    async fn set_up(&self, url: &str) -> Result<()> {
        PostgresStorage::setup(&super::pool(url).await?).await?;
        Ok(())
    }

    async fn producer(&self, url: &str) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Host(super::pool(url).await?)))
    }

    async fn worker(&self, site: &Site) -> Result<Box<dyn Worker>> {
        Ok(Box::new(Running { pool: super::pool(&site.url).await?, site: site.clone() }))
    }

    async fn observer(&self, url: &str) -> Result<Box<dyn Observer>> {
        Count::by(url, "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'").await
    }
}

struct Host(PgPool);

#[async_trait]
impl Producer for Host {
    async fn enqueue(&mut self, numbers: Range<u32>) -> Result<()> {
        let task = |number| Ok(TaskBuilder::new(serde_json::to_vec(&Work { number })?).build());
        let tasks = numbers.map(task).collect::<Result<Vec<_>>>()?;
        let mut transaction = self.0.begin().await?;
        queries::push_tasks(&mut *transaction, QUEUE, tasks).await?;
        transaction.commit().await?;
        Ok(())
    }
}

struct Running {
    pool: PgPool,
    site: Site,
}

async fn handle(work: Work, tally: Data<Arc<Tally>>) -> Result<(), BoxDynError> {
    tally.ran(work);
    Ok(())
}

#[async_trait]
impl Worker for Running {
    async fn run(self: Box<Self>, stop: CancellationToken) -> Result<()> {
        let config = Config::default().queue(QUEUE).batch_size(FETCHED).lock_tasks(false);
        let backend = PostgresStorage::<Work>::new(&self.pool)
            .with_config(config)
            .poll_with_strategy(Strategy::new().interval(Duration::from_millis(5)));
        let worker = WorkerBuilder::new(format!("worker-{}", self.site.number))
            .backend(backend)
            .concurrency(self.site.concurrency as usize)
            .data(self.site.tally)
            .build(handle);
        let stopped = async move {
            stop.cancelled().await;
            Ok::<(), WorkerError>(())
        };
        worker.run_until(stopped).await.map_err(|error| anyhow!("{error}"))
    }
}
