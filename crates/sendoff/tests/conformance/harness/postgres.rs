//! Tables in PostgreSQL.

use super::{ROWS_PER_INSERT, ddl, insert, moment, select_all};
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
            query = bind!(query, value.clone(),
                Value::Null => query,
                Value::Timestamp(at) => query.bind(moment(at)),
                Value::Json(json) => query.bind(json),
            );
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

sql_harness!(Postgres, PostgresTable, nulls_first: false);
