//! Tables in MariaDB.

use super::{ROWS_PER_INSERT, ddl, insert, moment, select_all};
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
            query = bind!(query, value,
                Value::Null => query.bind(None::<i64>),
                Value::Timestamp(at) => {
                    // As DATETIME: the driver's TIMESTAMP begins in 1970.
                    let at = moment(at);
                    query.bind(sqlx::types::time::PrimitiveDateTime::new(at.date(), at.time()))
                },
                Value::Json(json) => query.bind(json),
            );
        }
        query.execute(host).await.unwrap();
    }
}

pub(crate) async fn rows(host: &MySqlPool, shape: &Shape) -> Vec<Record> {
    sqlx::query_as(AssertSqlSafe(select_all(shape, '`'))).fetch_all(host).await.unwrap()
}

sql_harness!(Mysql, MysqlTable, nulls_first: true);
