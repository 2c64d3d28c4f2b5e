//! Tables in a SQLite file of their own.

use super::{ROWS_PER_INSERT, ddl, insert, select_all};
use sendoff::claim::{Record, Value};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteTable};
use sendoff::testkit::{ClaimHarness, Shape, ValueKind};
use sqlx::{AssertSqlSafe, Executor as _, SqlitePool};

pub(crate) struct Sqlite {
    pub(crate) database: SqliteDatabase,
    /// A host's own connections, apart from those that claim.
    pub(crate) host: SqlitePool,
    pub(crate) url: String,
    _directory: tempfile::TempDir,
}

pub(crate) async fn open() -> Sqlite {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("test.db").display());
    let database = SqliteDatabase::connect(&url).await.unwrap();
    let host = SqlitePool::connect(&url).await.unwrap();
    Sqlite { database, host, url, _directory: directory }
}

pub(crate) async fn create(host: &SqlitePool, shape: &Shape) {
    let statements = ddl(shape, '"', |column| match column.kind {
        ValueKind::Bool => "BOOLEAN",
        ValueKind::Int | ValueKind::Timestamp => "BIGINT",
        ValueKind::Float => "REAL",
        ValueKind::Text => "TEXT",
        ValueKind::Bytes | ValueKind::Uuid => "BLOB",
        ValueKind::Json => "JSON",
    });
    for statement in statements {
        host.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

pub(crate) async fn fill(host: &SqlitePool, shape: &Shape, rows: &[Vec<Value>]) {
    for chunk in rows.chunks(ROWS_PER_INSERT) {
        let sql = AssertSqlSafe(insert(shape, '"', chunk.len(), |_| "?".to_owned()));
        let mut query = sqlx::query(sql);
        for value in chunk.iter().flatten().cloned() {
            query = bind!(query, value,
                Value::Null => query.bind(None::<i64>),
                Value::Timestamp(at) => query.bind(at.as_micros()),
                Value::Json(json) => query.bind(json.to_string()),
            );
        }
        query.execute(host).await.unwrap();
    }
}

pub(crate) async fn rows(host: &SqlitePool, shape: &Shape) -> Vec<Record> {
    sqlx::query_as(AssertSqlSafe(select_all(shape, '"'))).fetch_all(host).await.unwrap()
}

sql_harness!(Sqlite, SqliteTable, nulls_first: true);
