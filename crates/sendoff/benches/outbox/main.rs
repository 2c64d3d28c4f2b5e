//! What the native outbox costs on PostgreSQL, beside the statements that everybody starts with.
//!
//! `cargo xtask bench outbox` runs it against a server whose commits wait for the disk. Only ratios within one run count: the rounds of
//! both sides alternate, each round gives a ratio, and the median is what is printed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod drain;
mod insert;
#[path = "../../tests/conformance/servers.rs"]
#[allow(dead_code)]
mod servers;

use sendoff::stores::postgres::{PostgresDatabase, PostgresOutbox};
use sendoff::stores::{Migration, Names, Outbox};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor as _, PgPool};

use self::servers::Server;

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
        println!("== {}", server.name());
        for synchronous in ["off", "on"] {
            let bench = Bench::open(server, synchronous).await;
            drain::run(&bench).await;
            insert::run(&bench).await;
            bench.close().await;
        }
    }
}

/// A schema of its own on a server, with every connection's commits as `synchronous` says.
pub(crate) struct Bench {
    pub(crate) synchronous: &'static str,
    pub(crate) schema: String,
    pub(crate) host: PgPool,
    pub(crate) outbox: PostgresOutbox,
    pub(crate) enqueue: Outbox,
}

impl Bench {
    async fn open(server: Server, synchronous: &'static str) -> Self {
        let options: PgConnectOptions = server.url().parse().unwrap();
        let options = options.options([("synchronous_commit", synchronous)]);
        let host = PgPoolOptions::new().max_connections(16).connect_with(options).await.unwrap();
        let separator = if server.url().contains('?') { '&' } else { '?' };
        let url = format!("{}{separator}options=-csynchronous_commit%3D{synchronous}", server.url());
        let database = PostgresDatabase::connect(&url).await.unwrap();
        let schema = format!("bench_{:08x}", fastrand::u32(..));
        let names = Names::schema(&schema).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let outbox = PostgresOutbox::open_as(database, names.clone()).await.unwrap();
        Self { synchronous, schema, host, outbox, enqueue: Outbox::named(names) }
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.host.execute(AssertSqlSafe(sql.replace("{schema}", &self.schema))).await.unwrap();
    }

    /// Bytes of WAL written since the server was made.
    pub(crate) async fn wal(&self) -> i64 {
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        sqlx::query_scalar(sql).fetch_one(&self.host).await.unwrap()
    }

    async fn close(self) {
        self.execute("DROP SCHEMA {schema} CASCADE").await;
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// `12.3 [10.0-15.1]`, in thousands.
pub(crate) fn rates(numbers: &[f64]) -> String {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    format!("{:.1}k [{:.1}-{:.1}]", median(numbers.to_vec()) / 1e3, least / 1e3, most / 1e3)
}
