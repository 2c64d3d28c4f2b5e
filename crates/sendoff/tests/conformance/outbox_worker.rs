//! This program as a child process: one worker of an outbox, whose broker is a file that all workers append to.

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sendoff::outbox::{Claimed, Engine, Outcome, Receipt, Source, Store, WorkerConfig};
use sendoff::stores::Names;
use sendoff::stores::mysql::{MysqlDatabase, MysqlOutbox};
use sendoff::stores::postgres::{PostgresDatabase, PostgresOutbox};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteOutbox};
use serde::{Deserialize, Serialize};

const VARIABLE: &str = "SENDOFF_TEST_OUTBOX_WORKER";

/// What the child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub url: String,
    /// The outbox's schema or prefix.
    pub names: String,
    /// The broker.
    pub log: String,
    pub lease_millis: u64,
    pub batch: usize,
    /// Aborts when it is handed an event of this topic.
    pub deadly_topic: Option<String>,
    /// So many crashes, and an event is given up.
    pub crashes_max: u32,
    pub crash_pause_millis: u64,
    /// The outcome of everything, for what is settled late.
    pub outcome: Fate,
    /// Publishes one batch, says so, and settles when it is told to.
    pub waits_to_settle: bool,
    /// `names` is a host's own table, of this kind.
    pub adopted: Option<String>,
}

/// What becomes of what is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    Published,
    Retry,
    GiveUp,
    Release,
}

impl Fate {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Published => Outcome::Published,
            Self::Retry => Outcome::retry(Duration::from_secs(3_600), "the zombie says so"),
            Self::GiveUp => Outcome::rejected("the zombie says so"),
            Self::Release => Outcome::Release,
        }
    }
}

impl Orders {
    pub(crate) fn new(url: &str, names: &str, log: &std::path::Path) -> Self {
        Self {
            url: url.to_owned(),
            names: names.to_owned(),
            log: log.display().to_string(),
            lease_millis: 30_000,
            batch: 50,
            deadly_topic: None,
            crashes_max: 1_000,
            crash_pause_millis: 50,
            outcome: Fate::Published,
            waits_to_settle: false,
            adopted: None,
        }
    }
}

/// What the child said when it ended in peace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub claimed: u64,
    pub applied: u64,
    pub stale: u64,
    pub missing: u64,
    pub named: u64,
    pub lost: u64,
}

pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// A child with these orders. It says `ready`, works until its standard input ends, stops gracefully and says its report.
pub(crate) fn command(orders: &Orders) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .env(VARIABLE, serde_json::to_string(orders).unwrap())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) fn run() -> ExitCode {
    let orders: Orders = serde_json::from_str(&std::env::var(VARIABLE).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let report = runtime.block_on(work(&orders));
    say(&serde_json::to_string(&report).unwrap());
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

async fn source(orders: &Orders) -> Arc<dyn Source> {
    match &orders.adopted {
        Some(kind) => Arc::new(crate::adopted::host::open(kind, &orders.url, &orders.names).await),
        None => Arc::new(store(orders).await),
    }
}

async fn store(orders: &Orders) -> Arc<dyn Store> {
    match orders.url.split(':').next().unwrap() {
        "sqlite" => {
            let database = SqliteDatabase::connect(&orders.url).await.unwrap();
            Arc::new(SqliteOutbox::open_as(database, Names::prefix(&orders.names).unwrap()).await.unwrap())
        }
        "mysql" => {
            let database = MysqlDatabase::connect(&orders.url).await.unwrap();
            Arc::new(MysqlOutbox::open_as(database, Names::prefix(&orders.names).unwrap()).await.unwrap())
        }
        _ => {
            let database = PostgresDatabase::connect(&orders.url).await.unwrap();
            Arc::new(PostgresOutbox::open_as(database, Names::schema(&orders.names).unwrap()).await.unwrap())
        }
    }
}

/// Ends with the standard input. A thread of its own: reading it cannot be broken off.
fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        flag.store(true, Ordering::SeqCst);
    });
    stop
}

async fn work(orders: &Orders) -> Report {
    let config = WorkerConfig {
        // All under one name: it is a label.
        name: "worker".to_owned(),
        lease: Duration::from_millis(orders.lease_millis),
        crashes_max: orders.crashes_max,
        crash_pause: Duration::from_millis(orders.crash_pause_millis),
        ..WorkerConfig::default()
    };
    let worker = source(orders).await.start(config).await.unwrap();
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(&orders.log).unwrap();
    if orders.waits_to_settle {
        return settle_late(&*worker, orders, &mut log).await;
    }
    let stop = stop_flag();
    say("ready");
    let mut unsettled: Vec<(Receipt, Outcome)> = Vec::new();
    // Always one claim ahead of what is settled.
    while !stop.load(Ordering::SeqCst) || !unsettled.is_empty() {
        let claimed = if stop.load(Ordering::SeqCst) {
            Vec::new()
        } else {
            worker.claim(orders.batch).await.unwrap_or_default()
        };
        let is_idle = claimed.is_empty();
        let outcomes = std::mem::replace(&mut unsettled, publish(&claimed, orders, &mut log));
        if !outcomes.is_empty() {
            worker.settle(&outcomes).await.unwrap();
        } else if is_idle {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    report(worker.stop(Duration::from_secs(2)).await.unwrap())
}

/// One line for each event, one write for each batch: lines of two workers never mix, and their order in the file is the order of publishing.
fn publish(claimed: &[Claimed], orders: &Orders, log: &mut File) -> Vec<(Receipt, Outcome)> {
    let mut lines = String::new();
    let mut outcomes = Vec::with_capacity(claimed.len());
    for claimed in claimed {
        if tokio::time::Instant::now() >= claimed.deadline {
            // Its lane may be another's by now.
            outcomes.push((claimed.receipt(), Outcome::Release));
            continue;
        }
        if orders.deadly_topic.as_ref() == Some(&claimed.event.topic) {
            log.write_all(lines.as_bytes()).unwrap();
            std::process::abort();
        }
        lines.push_str(&format!(
            "{} {} {}\n",
            std::process::id(),
            claimed.event.event_id,
            claimed.event.attempts.total()
        ));
        outcomes.push((claimed.receipt(), orders.outcome.outcome()));
    }
    log.write_all(lines.as_bytes()).unwrap();
    outcomes
}

async fn settle_late(worker: &dyn Engine, orders: &Orders, log: &mut File) -> Report {
    let mut claimed = Vec::new();
    while claimed.is_empty() {
        claimed = worker.claim(orders.batch).await.unwrap();
    }
    let outcomes = publish(&claimed, orders, log);
    say("ready");
    // Frozen about here, and woken when it is too late.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    worker.settle(&outcomes).await.unwrap();
    report(worker.stats())
}

fn report(stats: sendoff::outbox::Stats) -> Report {
    Report {
        claimed: stats.claimed,
        applied: stats.applied,
        stale: stats.stale,
        missing: stats.missing,
        named: stats.named,
        lost: stats.lost,
    }
}
