//! `graphile_worker`, set as its own throughput benchmark (`benches/perf_test.rs`) sets it: a local queue, which fetches many tasks at once and hands them out from memory, and completions that are collected for 5 ms.
//! That benchmark has a local queue of ten times the concurrency, which is what it is here by default; half and five times as many made no difference beyond the noise, in single readings.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use tokio_util::sync::CancellationToken;

use super::{Count, Observer, Producer, Site, System, Worker};
use crate::tally::{Tally, Work};

const SCHEMA: &str = "graphile_worker";
const LOCAL_QUEUE: usize = 1_000;

pub(super) struct Graphile;

#[async_trait(?Send)]
impl System for Graphile {
    fn package(&self) -> &'static str {
        "graphile_worker"
    }

    fn enqueues_by(&self) -> &'static str {
        "WorkerUtils::add_raw_jobs"
    }

    fn settings(&self) -> &'static str {
        "local_queue of 1,000, complete_job_batch_delay and poll_interval 5 ms"
    }

    async fn set_up(&self, url: &str) -> Result<()> {
        WorkerUtils::new(super::pool(url).await?, SCHEMA).migrate().await?;
        Ok(())
    }

    async fn producer(&self, url: &str) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Client(WorkerUtils::new(super::pool(url).await?, SCHEMA))))
    }

    async fn worker(&self, site: &Site) -> Result<Box<dyn Worker>> {
        let worker = WorkerOptions::default()
            .pg_pool(super::pool(&site.url).await?)
            .schema(SCHEMA)
            .concurrency(site.concurrency as usize)
            .poll_interval(Duration::from_millis(5))
            .complete_job_batch_delay(Duration::from_millis(5))
            .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE))
            .listen_os_shutdown_signals(false)
            .add_extension(Extension(Arc::clone(&site.tally)))
            .define_job::<Work>()
            .init()
            .await?;
        Ok(Box::new(Running(worker)))
    }

    async fn observer(&self, url: &str) -> Result<Box<dyn Observer>> {
        // Completed ones are deleted.
        Count::by(url, "SELECT count(*) FROM graphile_worker._private_jobs").await
    }
}

#[derive(Debug, Clone)]
struct Extension(Arc<Tally>);

impl TaskHandler for Work {
    const IDENTIFIER: &'static str = "work";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let Some(Extension(tally)) = context.get_ext() else { return Err("there is no tally") };
        tally.ran(self);
        Ok(())
    }
}

struct Client(WorkerUtils);

#[async_trait]
impl Producer for Client {
    async fn enqueue(&mut self, numbers: Range<u32>) -> Result<()> {
        let job = |number| -> Result<RawJobSpec> {
            let payload = serde_json::to_value(Work { number })?;
            Ok(RawJobSpec { identifier: Work::IDENTIFIER.to_owned(), payload, spec: JobSpec::default() })
        };
        self.0.add_raw_jobs(&numbers.map(job).collect::<Result<Vec<_>>>()?).await?;
        Ok(())
    }
}

struct Running(graphile_worker::Worker);

#[async_trait]
impl Worker for Running {
    async fn run(self: Box<Self>, stop: CancellationToken) -> Result<()> {
        let asked = async {
            stop.cancelled().await;
            self.0.request_shutdown();
        };
        let (ran, ()) = tokio::join!(self.0.run(), asked);
        Ok(ran?)
    }
}
