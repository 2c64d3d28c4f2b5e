//! Tables in PostgreSQL.

use super::{ROWS_PER_INSERT, ddl, insert, moment, select_all, unexpected};
use crate::servers::Server;
use sendoff::claim::{Record, Value};
use sendoff::stores::postgres::{Pooler, PostgresDatabase, PostgresTable};
use sendoff::testkit::{ClaimHarness, Shape, ValueKind};
use sqlx::{AssertSqlSafe, Executor as _, PgPool};

pub(crate) struct Postgres {
    pub database: PostgresDatabase,
    /// A host's own connections, apart from those that claim.
    pub host: PgPool,
}

pub(crate) async fn open(server: Server) -> Postgres {
    let database = PostgresDatabase::connect(&server.url()).await.unwrap();
    Postgres { database, host: PgPool::connect(&server.url()).await.unwrap() }
}

/// Claims go through the pooler, the host directly to the server behind it.
pub(crate) async fn open_pooled() -> Postgres {
    let (pooled, direct) = (Server::Pgbouncer.url_of(0), Server::Pgbouncer.url_of(1));
    let database = PostgresDatabase::connect_through(&pooled, Pooler::Transaction).await.unwrap();
    Postgres { database, host: PgPool::connect(&direct).await.unwrap() }
}

pub(crate) async fn create(host: &PgPool, shape: &Shape) {
    let statements = ddl(shape, '"', |column| match column.kind {
        ValueKind::Bool => "boolean",
        ValueKind::Int => "bigint",
        ValueKind::Float => "double precision",
        ValueKind::Text => "text COLLATE \"C\"",
        ValueKind::Bytes => "bytea",
        ValueKind::Uuid => "uuid",
        ValueKind::Timestamp => "timestamptz",
        ValueKind::Json => "jsonb",
    });
    for statement in statements {
        host.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

pub(crate) async fn fill(host: &PgPool, shape: &Shape, rows: &[Vec<Value>]) {
    for chunk in rows.chunks(ROWS_PER_INSERT) {
        let mut query = sqlx::query(AssertSqlSafe(statement(shape, chunk)));
        for value in chunk.iter().flatten() {
            query = match value.clone() {
                Value::Null => query,
                Value::Bool(value) => query.bind(value),
                Value::Int(value) => query.bind(value),
                Value::Float(value) => query.bind(value),
                Value::Text(value) => query.bind(value),
                Value::Bytes(value) => query.bind(value),
                Value::Uuid(value) => query.bind(value),
                Value::Timestamp(value) => query.bind(moment(value)),
                Value::Json(value) => query.bind(value),
                other => unexpected(&other),
            };
        }
        query.execute(host).await.unwrap();
    }
}

/// NULL is written out: a bound one would need its column's type.
fn statement(shape: &Shape, rows: &[Vec<Value>]) -> String {
    let nulls: Vec<bool> = rows.iter().flatten().map(|value| *value == Value::Null).collect();
    let mut numbers = Vec::with_capacity(nulls.len());
    let mut next = 0;
    for is_null in &nulls {
        next += usize::from(!is_null);
        numbers.push(next);
    }
    insert(shape, '"', rows.len(), |place| {
        if nulls[place - 1] { "NULL".to_owned() } else { format!("${}", numbers[place - 1]) }
    })
}

pub(crate) async fn rows(host: &PgPool, shape: &Shape) -> Vec<Record> {
    sqlx::query_as(AssertSqlSafe(select_all(shape, '"'))).fetch_all(host).await.unwrap()
}

impl ClaimHarness for Postgres {
    type Table = PostgresTable<Record>;

    async fn create(&self, shape: &Shape) -> Self::Table {
        create(&self.host, shape).await;
        self.database.table(shape.description()).await.unwrap()
    }

    async fn insert(&self, shape: &Shape, rows: &[Vec<Value>]) {
        fill(&self.host, shape, rows).await;
    }

    async fn rows(&self, shape: &Shape) -> Vec<Record> {
        rows(&self.host, shape).await
    }

    fn nulls_first(&self) -> bool {
        false
    }
}
