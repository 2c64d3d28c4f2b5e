//! How long from commit to publish: the producer is a process of its own, as a host is.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::Bench;
use super::load::{Load, now_micros};
use super::report::{Report, percentile};
use crate::args::BenchProducerArgs;
use crate::site::Site;

/// Events a second.
const RATE: u32 = 100;

/// The producer: one event a transaction, at the rate, with exponential gaps; says when each was committed.
pub(crate) async fn produce(args: &BenchProducerArgs) -> Result<()> {
    let site = Site::connect(&args.store, &args.names, 1).await?;
    let outbox = site.outbox()?;
    let announcer = match args.announce {
        true => Some(site.postgres_outbox().await?.announcer()),
        false => None,
    };
    let load = Load { payload: args.payload as usize, keys: args.keys };
    let mut out = std::io::stdout().lock();
    let mut next = tokio::time::Instant::now();
    for number in 0..args.events {
        next += Duration::from_secs_f64(-fastrand::f64().max(1e-9).ln() / f64::from(RATE));
        tokio::time::sleep_until(next).await;
        site.write(&outbox, vec![load.event(number)], true).await?;
        writeln!(out, "{}", now_micros())?;
        if let Some(announcer) = &announcer {
            announcer.committed();
        }
    }
    out.flush()?;
    Ok(())
}

impl Bench<'_> {
    pub(super) async fn latency(&self) -> Result<Report> {
        let events = self.events(3_000);
        let mut committed = Vec::new();
        let produce = async {
            committed = self.produced(events).await?;
            Ok(())
        };
        let (run, sink) = self.relayed(events, produce).await?;
        ensure!(committed.len() as u64 == events, "the producer ended early");
        let arrivals = sink.arrivals();
        #[allow(clippy::cast_precision_loss)]
        let mut waits: Vec<f64> = arrivals
            .iter()
            .zip(&committed)
            // An event may be read before its host has heard that it is committed.
            .map(|(arrived, committed)| arrived.saturating_sub(*committed) as f64 / 1e3)
            .collect();
        waits.sort_by(f64::total_cmp);
        Ok(Report {
            label: "one by one, 100 a second",
            p50_ms: percentile(&waits, 50),
            p99_ms: percentile(&waits, 99),
            ..super::summary(events, &[run])
        })
    }

    /// Runs the producer; when each event was committed.
    async fn produced(&self, events: u64) -> Result<Vec<u64>> {
        let mut child = Command::new(std::env::current_exe().context("this program's path")?)
            .args(["bench-producer", "--store", &self.site.url, "--names", &self.site.names])
            .args(["--events", &events.to_string(), "--payload", &self.load.payload.to_string()])
            .args(["--keys", &self.load.keys.to_string()])
            .args(self.args.announce.then_some("--announce"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the producer")?;
        let mut lines = BufReader::new(child.stdout.take().context("the producer's output")?).lines();
        let mut committed = Vec::new();
        while let Some(line) = lines.next_line().await? {
            committed.push(line.parse()?);
        }
        ensure!(child.wait().await?.success(), "the producer failed");
        Ok(committed)
    }
}
