//! `sendoff bench`: what a server can do, measured beside the bare statements in the same run.

mod adr003;
mod floor;
mod latency;
mod load;
mod process;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use sendoff::outbox::{Claimed, LANES, Store};
use sendoff::{DEFAULT_TARGET, Delivery, Sink};
use sendoff_relay::{Relay, TargetConfig};
use sendoff_sinks::{File, FileConfig, Null};
use sqlx::PgPool;
use tokio::task::JoinSet;

use self::load::{Checked, Load};
pub(crate) use self::report::Report;
use self::report::median;
use crate::args::{BenchArgs, Measure};
use crate::part::Part;
use crate::site::{Host, Settling, Site};
use crate::wire;

pub(crate) use latency::produce;

/// Nothing was delivered for so long: it will not be.
const STUCK: Duration = Duration::from_secs(20);

/// The batch of the statements that everybody starts with.
const ADR003_BATCH: u32 = 100;

/// Runs a measurement. False: what was delivered is not what was written.
pub(crate) async fn run(args: &BenchArgs) -> Result<bool> {
    let names = format!("sendoff_bench_{:08x}", fastrand::u32(..));
    let site = Site::connect(&args.store, &names, 24).await?;
    site.migrate(Part::Outbox).await?;
    let settling = Settling { is_asynchronous: args.settle_asynchronously, ..Settling::default() };
    let store = site.store_with(settling).await?;
    let bench = Bench { args, site: site.clone(), store, load: Load::of(args) };
    let report = bench.measure().await;
    drop(bench);
    site.remove().await?;
    let report = Report { measure: args.measure.word(), ..report? };
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.print();
    }
    Ok(report.holds())
}

/// A measurement on its own tables.
struct Bench<'a> {
    args: &'a BenchArgs,
    site: Site,
    store: Arc<dyn Store>,
    load: Load,
}

/// One side of a round.
#[derive(Debug, Clone, Copy)]
struct Run {
    seconds: f64,
    rate: f64,
    faults: [u64; 3],
    cpu_us: Option<f64>,
    wal: Option<f64>,
}

impl Bench<'_> {
    async fn measure(&self) -> Result<Report> {
        match self.args.measure {
            Measure::Drain => self.drain().await,
            Measure::Steady => self.steady().await,
            Measure::Latency => self.latency().await,
            Measure::Insert => self.insert().await,
        }
    }

    fn events(&self, default: u64) -> u64 {
        self.args.events.unwrap_or(default)
    }

    fn postgres(&self) -> Option<&PgPool> {
        match &self.site.host {
            Host::Postgres(pool) => Some(pool),
            _ => None,
        }
    }

    /// Bytes of WAL so far, on PostgreSQL.
    async fn wal(&self) -> Result<Option<i64>> {
        let Some(pool) = self.postgres() else { return Ok(None) };
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        Ok(Some(sqlx::query_scalar(sql).fetch_one(pool).await?))
    }

    async fn vacuum(&self) -> Result<()> {
        if let Some(pool) = self.postgres() {
            let sql = format!("VACUUM (ANALYZE) \"{}\".event", self.site.names);
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await?;
        }
        Ok(())
    }

    fn relay(&self, sink: &Arc<Checked>) -> Relay {
        let config = TargetConfig {
            name: "bench".to_owned(),
            workers: self.args.workers.into(),
            batch: self.args.batch as usize,
            window: (self.args.batch * 4).max(2_000),
            ..TargetConfig::default()
        };
        Relay::new(Arc::clone(&self.store)).target(config, Arc::clone(sink) as Arc<dyn Sink>)
    }

    fn sink(&self, directory: &std::path::Path) -> Result<Arc<dyn Sink>> {
        match self.args.sink.as_str() {
            "file:" => Ok(Arc::new(File::new(FileConfig::new(directory.join("events.jsonl"))))),
            url => wire::sink(url),
        }
    }

    /// A sink that has delivered one event: how long a client takes for its first one, up to a second, is not what is measured.
    async fn open_sink(&self, directory: &std::path::Path) -> Result<Arc<dyn Sink>> {
        let sink = self.sink(directory)?;
        sink.check().await?;
        let delivered = sink.publish(&[self.load.claimed(0)]).await;
        ensure!(delivered == [Delivery::Delivered], "the sink: {delivered:?}");
        Ok(sink)
    }

    /// Whether the sink takes time of its own.
    fn has_sink(&self) -> bool {
        self.args.sink != "null:"
    }

    /// Runs the relay until all has come, `beside` it whatever the measurement does. The time begins when the workers have shared the lanes.
    async fn relayed(
        &self,
        events: u64,
        beside: impl Future<Output = Result<()>>,
    ) -> Result<(Run, Arc<Checked>)> {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let sink = self.open_sink(directory.path()).await?;
        self.relayed_to(sink, events, beside).await
    }

    /// The same, to this sink.
    #[allow(clippy::cast_precision_loss)]
    async fn relayed_to(
        &self,
        sink: Arc<dyn Sink>,
        events: u64,
        beside: impl Future<Output = Result<()>>,
    ) -> Result<(Run, Arc<Checked>)> {
        let sink = Arc::new(Checked::new(sink, events));
        let relay = self.relay(&sink);
        let handle = relay.handle();
        let _listening = match self.args.announce {
            true => Some(self.site.listen(handle.bell()).await?),
            false => None,
        };
        handle.pause(DEFAULT_TARGET);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
        let share = usize::from(LANES / self.args.workers);
        while handle.lanes(DEFAULT_TARGET).iter().filter(|lanes| (share..=share + 1).contains(*lanes)).count()
            < usize::from(self.args.workers)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (wal, cpu, started) = (self.wal().await?, process::cpu_seconds(), Instant::now());
        handle.resume(DEFAULT_TARGET);
        let (written, ()) = tokio::join!(beside, sink.wait(STUCK));
        let seconds = started.elapsed().as_secs_f64();
        let _ = stop.send(());
        running.await??;
        written?;
        let per_event = |total: f64| total / events as f64;
        let cpu_us = process::cpu_seconds().zip(cpu).map(|(now, before)| per_event((now - before) * 1e6));
        let wal = self.wal().await?.zip(wal).map(|(now, before)| per_event((now - before) as f64));
        Ok((Run { seconds, rate: events as f64 / seconds, faults: sink.faults(), cpu_us, wal }, sink))
    }

    async fn drain(&self) -> Result<Report> {
        let events = self.events(100_000);
        let (mut runs, mut floors, mut small, mut equal) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut alone, mut nulls) = (Vec::new(), Vec::new());
        let args = self.args;
        for _ in 0..args.rounds {
            self.load.fill(&self.site, events).await?;
            self.vacuum().await?;
            runs.push(self.relayed(events, async { Ok(()) }).await?.0);
            if self.has_sink() {
                alone.push(self.sink_alone(events).await?);
                self.load.fill(&self.site, events).await?;
                self.vacuum().await?;
                nulls.push(self.relayed_to(Arc::new(Null), events, async { Ok(()) }).await?.0.rate);
            }
            self.load.fill(&self.site, events).await?;
            self.vacuum().await?;
            floors.push(floor::drain(&self.store, events, args.workers, args.batch).await?);
            if let Some(pool) = self.postgres() {
                let names = &self.site.names;
                small.push(adr003::drain(pool, names, events, args.workers, ADR003_BATCH, self.load).await?);
                equal.push(adr003::drain(pool, names, events, args.workers, args.batch, self.load).await?);
            }
        }
        let ratio =
            |others: &[f64]| median(runs.iter().zip(others).map(|(run, other)| run.rate / other).collect());
        Ok(Report {
            label: "relay, drain",
            ratio_floor: ratio(&floors),
            ratio_adr003: ratio(&small),
            ratio_adr003_equal_batch: ratio(&equal),
            ratio_sink: ratio(&alone),
            ratio_null: ratio(&nulls),
            sink_events_per_s: median(alone),
            null_events_per_s: median(nulls),
            floor_events_per_s: median(floors),
            adr003_events_per_s: median(small),
            adr003_equal_batch_events_per_s: median(equal),
            ..summary(events, &runs)
        })
    }

    /// The sink by itself: the same client, the same batches, no database.
    #[allow(clippy::cast_precision_loss)]
    async fn sink_alone(&self, events: u64) -> Result<f64> {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let sink = self.open_sink(directory.path()).await?;
        let batch = sink.capabilities().events.min(self.args.batch as usize);
        let calls = usize::from(self.args.workers) * TargetConfig::default().concurrency;
        let all: Vec<Claimed> = (0..events).map(|number| self.load.claimed(number)).collect();
        let started = Instant::now();
        let mut under_way = JoinSet::new();
        for call in all.chunks(batch) {
            while under_way.len() >= calls {
                under_way.join_next().await.context("a call")???;
            }
            let (sink, call) = (Arc::clone(&sink), call.to_vec());
            under_way.spawn(async move {
                let deliveries = sink.publish(&call).await;
                let failed = deliveries.iter().find(|delivery| **delivery != Delivery::Delivered);
                failed.map_or(Ok(()), |failed| Err(anyhow!("the sink by itself: {failed:?}")))
            });
        }
        while let Some(ended) = under_way.join_next().await {
            ended??;
        }
        Ok(events as f64 / started.elapsed().as_secs_f64())
    }

    async fn steady(&self) -> Result<Report> {
        let events = self.events(100_000);
        let mut runs = Vec::new();
        for _ in 0..self.args.rounds {
            runs.push(self.relayed(events, self.load.fill(&self.site, events)).await?.0);
        }
        Ok(Report { label: "written and delivered", ..summary(events, &runs) })
    }

    async fn insert(&self) -> Result<Report> {
        let (single, bulk) = (self.events(100_000).min(5_000), self.events(100_000));
        let outbox = self.site.outbox()?;
        let started = Instant::now();
        for number in 0..single {
            self.site.write(&outbox, vec![self.load.event(number)], true).await?;
        }
        let seconds = started.elapsed().as_secs_f64();
        let started = Instant::now();
        self.load.fill(&self.site, bulk).await?;
        #[allow(clippy::cast_precision_loss)]
        let (rate, bulk) = (single as f64 / seconds, bulk as f64 / started.elapsed().as_secs_f64());
        Ok(Report {
            label: "one by one, each in a transaction",
            events: single,
            seconds,
            events_per_s: rate,
            bulk_events_per_s: Some(bulk),
            ..Report::default()
        })
    }
}

/// What all rounds have in common.
fn summary(events: u64, runs: &[Run]) -> Report {
    let fault = |index: usize| runs.iter().map(|run| run.faults[index]).sum();
    Report {
        events,
        seconds: median(runs.iter().map(|run| run.seconds).collect()).unwrap_or_default(),
        events_per_s: median(runs.iter().map(|run| run.rate).collect()).unwrap_or_default(),
        lost: fault(0),
        duplicated: fault(1),
        out_of_order: fault(2),
        rss_mib: process::rss_mib(),
        cpu_us_per_event: median(runs.iter().filter_map(|run| run.cpu_us).collect()),
        wal_bytes_per_event: median(runs.iter().filter_map(|run| run.wal).collect()),
        ..Report::default()
    }
}
