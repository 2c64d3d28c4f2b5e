//! ADR-003's benchmark on PostgreSQL: 10,000 events, 1, 2, 4 and 8 processors, a batch of 100. Its own two statements, which hold a transaction open through the
//! publish, beside its table adopted as it is, and beside the native outbox.
//!
//! `cargo xtask bench adopted` runs it against a server whose commits wait for the disk. Only ratios within one round count; the rounds of all sides alternate.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/conformance/servers.rs"]
#[allow(dead_code)]
mod servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sendoff::adopted::{Adopted, presets};
use sendoff::outbox::{Outcome, Source, Store, WorkerConfig};
use sendoff::stores::postgres::{PostgresDatabase, PostgresOutbox};
use sendoff::stores::{Migration, Names};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::servers::Server;

const EVENTS: u64 = 10_000;
const BATCH: usize = 100;
const ROUNDS: usize = 5;

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
        println!("== {}: {EVENTS} events, batch {BATCH}, medians of {ROUNDS} rounds", server.name());
        println!(
            "| processors | ADR-003's statements, events/s | adopted | native | adopted / ADR-003 | native / ADR-003 |"
        );
        println!("|---|---|---|---|---|---|");
        for processors in [1, 2, 4, 8] {
            let bench = Bench::open(&server.url()).await;
            let (mut seed, mut adopted, mut native) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                seed.push(bench.seed(processors).await);
                adopted.push(bench.adopted(processors).await);
                native.push(bench.native(processors).await);
            }
            let ratio =
                |sides: &[f64]| median(sides.iter().zip(&seed).map(|(side, seed)| side / seed).collect());
            let (adopted_ratio, native_ratio) = (ratio(&adopted), ratio(&native));
            println!(
                "| {processors} | {:.0} | {:.0} | {:.0} | {adopted_ratio:.2} | {native_ratio:.2} |",
                median(seed),
                median(adopted),
                median(native)
            );
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
    database: PostgresDatabase,
    outbox: PostgresOutbox,
}

impl Bench {
    async fn open(url: &str) -> Self {
        let host = PgPoolOptions::new().max_connections(16).connect(url).await.unwrap();
        let database = PostgresDatabase::connect(url).await.unwrap();
        let schema = format!("bench_{:08x}", fastrand::u32(..));
        let names = Names::schema(&schema).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let outbox = PostgresOutbox::open_as(database.clone(), names).await.unwrap();
        Self { schema, host, database, outbox }
    }

    async fn execute(&self, sql: &str) {
        let sql = sql.replace("{schema}", &self.schema).replace("{events}", &EVENTS.to_string());
        self.host.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
    }

    async fn fill(&self) {
        let ddl = include_str!("../../tests/hosts/adr003/postgres.sql");
        for table in ["outbox_events", "outbox_events_sendoff", "outbox_events_sendoff_bundle"] {
            self.execute(&format!("DROP TABLE IF EXISTS \"{{schema}}\".{table}")).await;
        }
        let ddl = ddl.replace("CREATE TABLE {table}", "CREATE TABLE \"{schema}\".outbox_events");
        let ddl = ddl.replace(
            "{table}_status_created ON {table}",
            "outbox_status_created ON \"{schema}\".outbox_events",
        );
        self.execute(&ddl).await;
        self.execute(include_str!("fill.sql")).await;
        self.execute("VACUUM (ANALYZE) \"{schema}\".outbox_events").await;
    }

    /// Its own two statements, in one transaction.
    async fn seed(&self, processors: usize) -> f64 {
        self.fill().await;
        let select = include_str!("seed_1_select.sql").replace("{schema}", &self.schema);
        let update = include_str!("seed_2_update.sql").replace("{schema}", &self.schema);
        let left = Arc::new(AtomicU64::new(EVENTS));
        let mut loops = JoinSet::new();
        let began = Instant::now();
        for _ in 0..processors {
            let (pool, left) = (self.host.clone(), Arc::clone(&left));
            let (select, update) = (select.clone(), update.clone());
            loops.spawn(async move {
                let mut connection = pool.acquire().await.unwrap();
                while left.load(Ordering::Relaxed) > 0 {
                    let mut transaction = sqlx::Connection::begin(&mut *connection).await.unwrap();
                    let rows: Vec<(Uuid, String, String, String, serde_json::Value)> =
                        sqlx::query_as(AssertSqlSafe(select.clone()))
                            .fetch_all(&mut *transaction)
                            .await
                            .unwrap();
                    let ids: Vec<Uuid> = rows.iter().map(|row| row.0).collect();
                    let marked = sqlx::query(AssertSqlSafe(update.clone())).bind(&ids);
                    marked.execute(&mut *transaction).await.unwrap();
                    transaction.commit().await.unwrap();
                    left.fetch_sub(ids.len() as u64, Ordering::Relaxed);
                }
            });
        }
        while let Some(ended) = loops.join_next().await {
            ended.unwrap();
        }
        rate(began)
    }

    async fn adopted(&self, processors: usize) -> f64 {
        self.fill().await;
        let (mapping, beside) = presets::adr003(&format!("{}.outbox_events", self.schema)).unwrap();
        Adopted::make_beside(&self.database, &mapping, &beside).await.unwrap();
        let adopted = Adopted::beside(&self.database, mapping, &beside).await.unwrap();
        drain(Arc::new(adopted), processors).await
    }

    async fn native(&self, processors: usize) -> f64 {
        self.execute(include_str!("fill_native.sql")).await;
        self.execute("VACUUM (ANALYZE) \"{schema}\".event").await;
        let store: Arc<dyn Store> = Arc::new(self.outbox.clone());
        drain(Arc::new(store), processors).await
    }

    async fn close(self) {
        self.execute("DROP SCHEMA \"{schema}\" CASCADE").await;
    }
}

/// One claim is asked for while the last one is settled, as a relay does.
async fn drain(source: Arc<dyn Source>, processors: usize) -> f64 {
    let mut workers = Vec::new();
    for _ in 0..processors {
        let config = WorkerConfig { lease: Duration::from_secs(30), ..WorkerConfig::default() };
        workers.push(source.start(config).await.unwrap());
    }
    if processors > 1 && !workers[0].lanes().is_empty() {
        // The lanes are shared when all have as many.
        while workers.iter().any(|worker| worker.lanes().len() != 64 / processors) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let left = Arc::new(AtomicU64::new(EVENTS));
    let mut loops = JoinSet::new();
    let began = Instant::now();
    for worker in workers {
        let left = Arc::clone(&left);
        loops.spawn(async move {
            let mut outcomes = Vec::new();
            while left.load(Ordering::Relaxed) > 0 {
                let (claimed, settled) = tokio::join!(worker.claim(BATCH), async {
                    if outcomes.is_empty() { Ok(Default::default()) } else { worker.settle(&outcomes).await }
                });
                left.fetch_sub(settled.unwrap().applied as u64, Ordering::Relaxed);
                let claimed = claimed.unwrap();
                outcomes = claimed.iter().map(|one| (one.receipt(), Outcome::Published)).collect();
            }
            worker
        });
    }
    let mut ended = Vec::new();
    while let Some(worker) = loops.join_next().await {
        ended.push(worker.unwrap());
    }
    let rate = rate(began);
    for worker in ended {
        worker.stop(Duration::from_secs(1)).await.unwrap();
    }
    rate
}

#[allow(clippy::cast_precision_loss)]
fn rate(began: Instant) -> f64 {
    EVENTS as f64 / began.elapsed().as_secs_f64()
}
