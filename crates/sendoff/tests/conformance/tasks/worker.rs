//! This program as a child process: one runner of tasks, whose handlers write down what they do.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Names, SqlTasks};
use sendoff::tasks::{Context, RetryPolicy, Runner, RunnerConfig, RunnerStats, Store, TaskError};
use serde::{Deserialize, Serialize};

use super::journal::Journal;

const VARIABLE: &str = "SENDOFF_TEST_TASK_WORKER";

/// What the child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) url: String,
    /// The schema or prefix.
    pub(crate) names: String,
    pub(crate) lease_millis: u64,
    pub(crate) concurrency: u32,
    /// How long a handler takes, at most.
    pub(crate) work_millis: u64,
    /// Of a hundred attempts so many fail, and half as many panic.
    pub(crate) failures: u8,
    /// Says `began` when a handler begins.
    pub(crate) tells: bool,
}

impl Orders {
    pub(crate) fn new(url: &str, names: &str) -> Self {
        Self {
            url: url.to_owned(),
            names: names.to_owned(),
            lease_millis: 3_000,
            concurrency: 4,
            work_millis: 50,
            failures: 4,
            tells: false,
        }
    }
}

/// What the child said when it ended in peace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) completed: u64,
    pub(crate) stale: u64,
    pub(crate) lost: u64,
    pub(crate) panicked: u64,
    pub(crate) reaped: u64,
    pub(crate) mended: u64,
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
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true);
    command
}

pub(crate) fn run() -> ExitCode {
    let orders: Orders = serde_json::from_str(&std::env::var(VARIABLE).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stats = runtime.block_on(work(orders));
    let report = Report {
        completed: stats.completed,
        stale: stats.stale,
        lost: stats.lost,
        panicked: stats.panicked,
        reaped: stats.reaped,
        mended: stats.mended,
    };
    say(&serde_json::to_string(&report).unwrap());
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

async fn store(orders: &Orders) -> Arc<dyn Store> {
    match orders.url.split(':').next().unwrap() {
        "sqlite" => {
            let database = SqliteDatabase::connect(&orders.url).await.unwrap();
            Arc::new(SqlTasks::open_as(database, Names::prefix(&orders.names).unwrap()).await.unwrap())
        }
        "mysql" => {
            let database = MysqlDatabase::connect(&orders.url).await.unwrap();
            Arc::new(SqlTasks::open_as(database, Names::prefix(&orders.names).unwrap()).await.unwrap())
        }
        _ => {
            let database = PostgresDatabase::connect(&orders.url).await.unwrap();
            Arc::new(SqlTasks::open_as(database, Names::schema(&orders.names).unwrap()).await.unwrap())
        }
    }
}

/// Ready when the standard input ends. A thread of its own: reading it cannot be broken off.
fn stdin_ended() -> tokio::sync::oneshot::Receiver<()> {
    let (ended, wait) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    wait
}

async fn work(orders: Orders) -> RunnerStats {
    let journal = Journal::open(&orders.url, &orders.names).await;
    let config = RunnerConfig {
        // All under one name: it is a label.
        name: "worker".to_owned(),
        concurrency: orders.concurrency,
        lease: Duration::from_millis(orders.lease_millis),
        poll_most: Duration::from_millis(100),
        watch: Duration::from_millis(200),
        drain: Duration::from_secs(20),
        retry: RetryPolicy { first: Duration::from_millis(30), ..RetryPolicy::default() },
        ..RunnerConfig::default()
    };
    let store = store(&orders).await;
    let runner = Runner::new(store).config(config);
    let runner = runner.handle_bytes("work", move |context: Context, _: Vec<u8>| {
        let (journal, orders) = (journal.clone(), orders.clone());
        async move { attempt(&journal, &orders, &context).await }
    });
    let shutdown = stdin_ended();
    say("ready");
    runner.run(async move { drop(shutdown.await) }).await.unwrap()
}

async fn attempt(journal: &Journal, orders: &Orders, context: &Context) -> Result<(), TaskError> {
    let token = context.token();
    journal.begin(&token).await?;
    if orders.tells {
        say("began");
    }
    let fate = fastrand::u8(..100);
    let work = if orders.tells { orders.work_millis } else { fastrand::u64(..=orders.work_millis) };
    tokio::time::sleep(Duration::from_millis(work)).await;
    journal.end(&token).await?;
    if fate < orders.failures {
        return Err(TaskError::retry("it was its turn to fail"));
    }
    assert!(fate < 100 - orders.failures / 2, "it was its turn to panic");
    Ok(())
}
