//! Tables in a SQLite file of their own.

use super::{ROWS_PER_INSERT, ddl, insert, select_all, unexpected};
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
            query = match value {
                Value::Null => query.bind(None::<i64>),
                Value::Bool(value) => query.bind(value),
                Value::Int(value) => query.bind(value),
                Value::Float(value) => query.bind(value),
                Value::Text(value) => query.bind(value),
                Value::Bytes(value) => query.bind(value),
                Value::Uuid(value) => query.bind(value),
                Value::Timestamp(value) => query.bind(value.as_micros()),
                Value::Json(value) => query.bind(value.to_string()),
                other => unexpected(&other),
            };
        }
        query.execute(host).await.unwrap();
    }
}

pub(crate) async fn rows(host: &SqlitePool, shape: &Shape) -> Vec<Record> {
    sqlx::query_as(AssertSqlSafe(select_all(shape, '"'))).fetch_all(host).await.unwrap()
}

impl ClaimHarness for Sqlite {
    type Table = SqliteTable<Record>;

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
        true
    }
}
