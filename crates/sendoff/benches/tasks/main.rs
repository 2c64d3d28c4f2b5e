//! What a claim of tasks costs on PostgreSQL: in batches of a hundred, beside the seed's own statement, which claims one at a time; with ten thousand ready tasks and with a million; and behind
//! a million that are not due.
//!
//! `cargo xtask bench tasks` runs it against a server whose commits wait for the disk. Only ratios within one run count: the rounds of both sides alternate, each round gives a ratio, and the median is
//! what is printed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/conformance/servers.rs"]
#[allow(dead_code)]
mod servers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::{Migration, Names, SchemaSet, SqlTasks};
use sendoff::tasks::{Claim, Member, Store, Task, WorkerId};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tokio::task::JoinSet;

use self::servers::Server;

const ROUNDS: usize = 5;
const BATCH: u32 = 100;
/// Claimed in each round by each side.
const SEED_CLAIMS: usize = 1_000;
const CLAIMS: usize = 4_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    for server in [Server::Postgres15, Server::Postgres18] {
        if server.is_missing() {
            println!("{} skipped: it is not set", server.name());
            continue;
        }
        println!("== {}: medians of {ROUNDS} rounds", server.name());
        println!(
            "| workers | ready | not due, in front | seed's statement, tasks/s | batches of {BATCH}, tasks/s | ratio | claimed and completed, tasks/s |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (workers, ready, later) in [
            (1, 10_000, 0),
            (1, 1_000_000, 0),
            (4, 10_000, 0),
            (4, 100_000, 0),
            (4, 1_000_000, 0),
            (4, 10_000, 1_000_000),
        ] {
            let bench = Bench::open(&server.url(), workers).await;
            bench.measure(ready, later).await;
            bench.close().await;
        }
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// A schema of its own.
struct Bench {
    schema: String,
    host: PgPool,
    store: Arc<dyn Store>,
    workers: usize,
}

impl Bench {
    async fn open(url: &str, workers: usize) -> Self {
        let host = PgPoolOptions::new().max_connections(16).connect(url).await.unwrap();
        let database = PostgresDatabase::connect(url).await.unwrap();
        let schema = format!("bench_{:08x}", fastrand::u32(..));
        let names = Names::schema(&schema).unwrap();
        Migration::of(SchemaSet::TASKS, database.clone(), names.clone()).run().await.unwrap();
        let store = Arc::new(SqlTasks::open_as(database, names).await.unwrap());
        let bench = Self { schema, host, store, workers };
        bench.execute(include_str!("seed_1_tables.sql")).await;
        bench
    }

    async fn execute(&self, sql: &str) {
        let sql = sql.replace("{schema}", &self.schema);
        self.host.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
    }

    async fn fill(&self, first: u64, tasks: usize, priority: i16, wait: &str) {
        let sql = include_str!("fill.sql").replace("{first}", &first.to_string());
        let sql = sql.replace("{tasks}", &tasks.to_string()).replace("{wait}", wait);
        self.execute(&sql.replace("{priority}", &priority.to_string())).await;
    }

    async fn fill_seed(&self, tasks: usize) {
        self.execute(&include_str!("seed_2_fill.sql").replace("{tasks}", &tasks.to_string())).await;
    }

    async fn measure(&self, ready: usize, later: usize) {
        let mut next = 1_700_000_000_000;
        self.fill(next, ready, 0, "interval '0'").await;
        next += ready as u64;
        if later > 0 {
            self.fill(next, later, 100, "interval '1 day'").await;
            next += later as u64;
        }
        self.fill_seed(ready).await;
        for table in ["task", "task_entry", "task_executions", "task_outbox"] {
            self.execute(&format!("VACUUM (ANALYZE) \"{{schema}}\".{table}")).await;
        }
        let (mut seed, mut batches, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            seed.push(self.seed().await);
            let (claimed, completed) = self.batches().await;
            batches.push(claimed);
            whole.push(completed);
            // As many as before: the backlog is the same in every round.
            self.fill_seed(SEED_CLAIMS).await;
            self.fill(next, CLAIMS, 0, "interval '0'").await;
            next += CLAIMS as u64;
        }
        let ratio = median(batches.iter().zip(&seed).map(|(batch, seed)| batch / seed).collect());
        println!(
            "| {} | {ready} | {later} | {:.0} | {:.0} | {ratio:.1} | {:.0} |",
            self.workers,
            median(seed),
            median(batches),
            median(whole)
        );
    }

    /// The seed's statement, one task at a time.
    async fn seed(&self) -> f64 {
        let claim = include_str!("seed_3_claim.sql").replace("{schema}", &self.schema);
        let mut workers = JoinSet::new();
        let began = Instant::now();
        for _ in 0..self.workers {
            let (pool, claim) = (self.host.clone(), claim.clone());
            let share = SEED_CLAIMS / self.workers;
            workers.spawn(async move {
                let mut connection = pool.acquire().await.unwrap();
                let worker = WorkerId::generate().0;
                for _ in 0..share {
                    let query = sqlx::query(AssertSqlSafe(claim.clone())).bind(worker);
                    assert_eq!(query.fetch_all(&mut *connection).await.unwrap().len(), 1);
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }
        rate(SEED_CLAIMS, began.elapsed())
    }

    /// Claims in batches; and the same with their completion.
    async fn batches(&self) -> (f64, f64) {
        let mut workers = JoinSet::new();
        let began = Instant::now();
        for _ in 0..self.workers {
            let store = Arc::clone(&self.store);
            let share = CLAIMS / self.workers;
            workers.spawn(async move {
                let kinds = vec!["work".to_owned()];
                let worker = WorkerId::generate();
                let lease = Duration::from_secs(600);
                let member = Member { worker, name: "bench".to_owned(), kinds: kinds.clone(), lease };
                store.join(&member).await.unwrap();
                let mut tasks: Vec<Task> = Vec::new();
                while tasks.len() < share {
                    let claim = Claim { worker, kinds: kinds.clone(), limit: BATCH };
                    tasks.extend(store.claim(&claim).await.unwrap());
                }
                tasks
            });
        }
        let mut claimed = Vec::new();
        while let Some(tasks) = workers.join_next().await {
            claimed.push(tasks.unwrap());
        }
        let claiming = began.elapsed();
        let count: usize = claimed.iter().map(Vec::len).sum();
        let began = Instant::now();
        let mut workers = JoinSet::new();
        for tasks in claimed {
            let store = Arc::clone(&self.store);
            workers.spawn(async move {
                let tokens: Vec<_> = tasks.iter().filter_map(Task::token).collect();
                for chunk in tokens.chunks(BATCH as usize) {
                    let answers = store.complete(chunk).await.unwrap();
                    assert!(answers.iter().all(|answer| answer.is_applied()));
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }
        (rate(count, claiming), rate(count, claiming + began.elapsed()))
    }

    async fn close(self) {
        self.execute("DROP SCHEMA \"{schema}\" CASCADE").await;
    }
}

#[allow(clippy::cast_precision_loss)]
fn rate(tasks: usize, time: Duration) -> f64 {
    tasks as f64 / time.as_secs_f64()
}
