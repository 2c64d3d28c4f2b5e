//! Tables in MariaDB.

use super::{ROWS_PER_INSERT, ddl, insert, moment, select_all, unexpected};
use crate::servers::Server;
use sendoff::claim::{Record, Value};
use sendoff::stores::mysql::{MysqlDatabase, MysqlTable};
use sendoff::testkit::{ClaimHarness, Shape, ValueKind};
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool};

pub(crate) struct Mysql {
    pub database: MysqlDatabase,
    /// A host's own connections, apart from those that claim.
    pub host: MySqlPool,
}

pub(crate) async fn open(server: Server) -> Mysql {
    let database = MysqlDatabase::connect(&server.url()).await.unwrap();
    Mysql { database, host: MySqlPool::connect(&server.url()).await.unwrap() }
}

pub(crate) async fn create(host: &MySqlPool, shape: &Shape) {
    let statements = ddl(shape, '`', |column| match column.kind {
        ValueKind::Bool => "BOOLEAN",
        ValueKind::Int => "BIGINT",
        ValueKind::Float => "DOUBLE",
        // Every other collation finds 'a' = 'A' or 'a' = 'a '.
        ValueKind::Text => "VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        ValueKind::Bytes => "VARBINARY(200)",
        ValueKind::Uuid => "BINARY(16)",
        ValueKind::Timestamp => "DATETIME(6)",
        ValueKind::Json => "JSON",
    });
    for statement in statements {
        host.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

pub(crate) async fn fill(host: &MySqlPool, shape: &Shape, rows: &[Vec<Value>]) {
    for chunk in rows.chunks(ROWS_PER_INSERT) {
        let sql = AssertSqlSafe(insert(shape, '`', chunk.len(), |_| "?".to_owned()));
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
                Value::Timestamp(value) => {
                    // As DATETIME: the driver's TIMESTAMP begins in 1970.
                    let at = moment(value);
                    query.bind(sqlx::types::time::PrimitiveDateTime::new(at.date(), at.time()))
                }
                Value::Json(value) => query.bind(value),
                other => unexpected(&other),
            };
        }
        query.execute(host).await.unwrap();
    }
}

pub(crate) async fn rows(host: &MySqlPool, shape: &Shape) -> Vec<Record> {
    sqlx::query_as(AssertSqlSafe(select_all(shape, '`'))).fetch_all(host).await.unwrap()
}

impl ClaimHarness for Mysql {
    type Table = MysqlTable<Record>;

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
