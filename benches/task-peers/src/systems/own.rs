//! sendoff, from this checkout.
//!
//! A runner claims as many tasks as it has room for and settles those that have ended together, so the concurrency is the size of its batches: there is nothing else to set.

use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::{Migration, Names, SchemaSet, SqlTasks};
use sendoff::tasks::{Context, NewTask, Runner, RunnerConfig, Tasks};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::{Count, Observer, Producer, Site, System, Worker};
use crate::tally::Work;

const KIND: &str = "work";

pub(super) struct Sendoff;

#[async_trait(?Send)]
impl System for Sendoff {
    fn package(&self) -> &'static str {
        "sendoff"
    }

    fn enqueues_by(&self) -> &'static str {
        "Tasks::submit_all"
    }

    fn settings(&self) -> &'static str {
        "none"
    }

    async fn set_up(&self, url: &str) -> Result<()> {
        let database = PostgresDatabase::connect(url).await?;
        Migration::of(SchemaSet::TASKS, database, Names::schema("sendoff")?).run().await?;
        Ok(())
    }

    async fn producer(&self, url: &str) -> Result<Box<dyn Producer>> {
        Ok(Box::new(Host(super::pool(url).await?)))
    }

    async fn worker(&self, site: &Site) -> Result<Box<dyn Worker>> {
        let store = Arc::new(SqlTasks::open(PostgresDatabase::connect(&site.url).await?).await?);
        let config = RunnerConfig { concurrency: site.concurrency, ..RunnerConfig::default() };
        let tally = Arc::clone(&site.tally);
        let runner = Runner::new(store).config(config).handle(KIND, move |_: Context, work: Work| {
            tally.ran(work);
            std::future::ready(Ok(()))
        });
        Ok(Box::new(Running(runner)))
    }

    async fn observer(&self, url: &str) -> Result<Box<dyn Observer>> {
        Count::by(url, "SELECT count(*) FROM sendoff.task WHERE status <> 'completed'").await
    }
}

struct Host(PgPool);

#[async_trait]
impl Producer for Host {
    async fn enqueue(&mut self, numbers: Range<u32>) -> Result<()> {
        let tasks: Result<Vec<NewTask>, _> =
            numbers.map(|number| NewTask::new(KIND).json(&Work { number })).collect();
        let mut transaction = self.0.begin().await?;
        Tasks::new().submit_all(&mut transaction, tasks?).await?;
        transaction.commit().await?;
        Ok(())
    }
}

struct Running(Runner);

#[async_trait]
impl Worker for Running {
    async fn run(self: Box<Self>, stop: CancellationToken) -> Result<()> {
        self.0.run(stop.cancelled_owned()).await?;
        Ok(())
    }
}
