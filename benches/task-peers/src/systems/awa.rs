//! `awa`, set as its own throughput benchmark (`tests/benchmark_test.rs`) sets it: no deadline for an attempt, with which a claim is one row for all its tasks, and a look every 50 ms; and with a `PartitionedQueue`, which its README has for
//! very hot workloads, of as many parts as there. In single readings two parts were 1.1 and 1.5 times as fast with one and four workers; with one and with eight it did not end in time. The room for tasks is shared by the parts. It frees that room only when a completion is written, and so gains more from a larger one than the others (`--concurrency`).
//!
//! A database that is new has its older storage until a client has started on it without any tasks; so one is, before anything is enqueued.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use awa::{
    Client, InsertOpts, JobArgs, JobResult, PartitionedQueue, QueueConfig, QueueStorage, QueueStorageConfig,
};
use serde::{Deserialize, Serialize};
use sqlx_of_awa::PgPool;
use sqlx_of_awa::postgres::PgPoolOptions;
use tokio_util::sync::CancellationToken;

use super::{CONNECTIONS, Observer, Producer, Site, System, Worker};
use crate::tally::{Tally, Work};

const PARTITIONS: u32 = 4;
const SHUTDOWN: Duration = Duration::from_secs(10);

pub(super) struct Awa;

#[derive(Debug, Serialize, Deserialize, JobArgs)]
struct Job(Work);

#[async_trait(?Send)]
impl System for Awa {
    fn package(&self) -> &'static str {
        "awa"
    }

    fn enqueues_by(&self) -> &'static str {
        "QueueStorage::enqueue_params_copy"
    }

    fn settings(&self) -> &'static str {
        "PartitionedQueue of 4, deadline_duration 0, poll_interval 50 ms"
    }

    async fn set_up(&self, url: &str) -> Result<()> {
        let pool = pool(url).await?;
        awa::migrations::run(&pool).await?;
        let client = client(pool, PARTITIONS, Arc::new(Tally::new(0)))?;
        client.start().await?;
        client.shutdown(SHUTDOWN).await;
        Ok(())
    }

    async fn producer(&self, url: &str) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Storage::open(url).await?))
    }

    async fn worker(&self, site: &Site) -> Result<Box<dyn Worker>> {
        Ok(Box::new(Running(client(pool(&site.url).await?, site.concurrency, Arc::clone(&site.tally))?)))
    }

    async fn observer(&self, url: &str) -> Result<Box<dyn Observer>> {
        Ok(Box::new(Storage::open(url).await?))
    }
}

async fn pool(url: &str) -> Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await?)
}

fn queues() -> Result<PartitionedQueue> {
    Ok(PartitionedQueue::new("work", PARTITIONS as usize)?)
}

fn client(pool: PgPool, concurrency: u32, tally: Arc<Tally>) -> Result<Client> {
    let config = QueueConfig {
        max_workers: concurrency.div_ceil(PARTITIONS),
        poll_interval: Duration::from_millis(50),
        deadline_duration: Duration::ZERO,
        ..QueueConfig::default()
    };
    let handle = move |Job(work): Job, _: &_| {
        tally.ran(work);
        std::future::ready(Ok(JobResult::Completed))
    };
    let client = Client::builder(pool).partitioned_queue(&queues()?, config).register::<Job, _, _>(handle);
    Ok(client.build()?)
}

struct Storage {
    pool: PgPool,
    storage: QueueStorage,
    queues: PartitionedQueue,
}

impl Storage {
    async fn open(url: &str) -> Result<Self> {
        let storage = QueueStorage::new(QueueStorageConfig::default())?;
        Ok(Self { pool: pool(url).await?, storage, queues: queues()? })
    }
}

#[async_trait]
impl Producer for Storage {
    async fn enqueue(&mut self, numbers: Range<u32>) -> Result<()> {
        let job = |number: u32| -> Result<_> {
            let options = self.queues.route_opts_by_index(InsertOpts::default(), number as usize);
            Ok(awa::model::insert::params_with(&Job(Work { number }), options)?)
        };
        let jobs = numbers.map(job).collect::<Result<Vec<_>>>()?;
        self.storage.enqueue_params_copy(&self.pool, &jobs).await?;
        Ok(())
    }
}

#[async_trait]
impl Observer for Storage {
    async fn unsettled(&self, tasks: u32) -> Result<u64> {
        let mut ended = 0;
        for queue in self.queues.physical_queues() {
            ended += self.storage.queue_counts(&self.pool, queue).await?.terminal;
        }
        u64::try_from(i64::from(tasks) - ended).context("more tasks have ended than were enqueued")
    }
}

struct Running(Client);

#[async_trait]
impl Worker for Running {
    async fn run(self: Box<Self>, stop: CancellationToken) -> Result<()> {
        self.0.start().await?;
        stop.cancelled().await;
        self.0.shutdown(SHUTDOWN).await;
        Ok(())
    }
}
