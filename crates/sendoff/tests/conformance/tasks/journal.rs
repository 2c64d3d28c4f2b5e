//! What handlers write down, through connections of their own: who ran which attempt, from when to when.

use sendoff::tasks::TaskToken;
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One attempt as its handler saw it. All processes are on one machine, and have one clock.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) task: String,
    pub(crate) attempt: i64,
    pub(crate) pid: i64,
    pub(crate) began: i64,
    /// None: it did not come so far.
    pub(crate) ended: Option<i64>,
}

pub(crate) fn now_micros() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

#[derive(Debug, Clone)]
enum Pool {
    Postgres(PgPool),
    Mysql(MySqlPool),
    Sqlite(SqlitePool),
}

#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pool: Pool,
    table: String,
}

macro_rules! on_pool {
    ($journal:expr, $pool:ident => $run:expr) => {
        match &$journal.pool {
            Pool::Postgres($pool) => $run,
            Pool::Mysql($pool) => $run,
            Pool::Sqlite($pool) => $run,
        }
    };
}

impl Journal {
    pub(crate) async fn open(url: &str, names: &str) -> Self {
        let pool = match url.split(':').next().unwrap() {
            "sqlite" => {
                let options = url.parse::<sqlx::sqlite::SqliteConnectOptions>().unwrap();
                let options = options
                    .busy_timeout(Duration::from_secs(30))
                    .synchronous(sqlx::sqlite::SqliteSynchronous::Normal);
                Pool::Sqlite(SqlitePool::connect_with(options).await.unwrap())
            }
            "mysql" => Pool::Mysql(MySqlPool::connect(url).await.unwrap()),
            _ => Pool::Postgres(PgPool::connect(url).await.unwrap()),
        };
        let table = match &pool {
            Pool::Postgres(_) => format!("\"{names}\".journal"),
            _ => format!("{names}journal"),
        };
        Self { pool, table }
    }

    pub(crate) async fn create(&self) {
        // The key: no attempt is run twice, whoever runs it.
        let create = format!(
            "CREATE TABLE {} (task VARCHAR(36) NOT NULL, attempt BIGINT NOT NULL, pid BIGINT NOT NULL, \
             began BIGINT NOT NULL, ended BIGINT, PRIMARY KEY (task, attempt))",
            self.table
        );
        on_pool!(self, pool => sqlx::query(AssertSqlSafe(create)).execute(pool).await.map(drop)).unwrap();
    }

    fn hole(&self, number: usize) -> String {
        if matches!(self.pool, Pool::Postgres(_)) { format!("${number}") } else { "?".to_owned() }
    }

    pub(crate) async fn begin(&self, token: &TaskToken) -> Result<(), sqlx::Error> {
        let insert = format!(
            "INSERT INTO {} (task, attempt, pid, began) VALUES ({}, {}, {}, {})",
            self.table,
            self.hole(1),
            self.hole(2),
            self.hole(3),
            self.hole(4)
        );
        let (task, attempt) = (token.task.to_string(), i64::from(token.attempt));
        let pid = i64::from(std::process::id());
        on_pool!(self, pool => sqlx::query(AssertSqlSafe(insert)).bind(task).bind(attempt).bind(pid).bind(now_micros()).execute(pool).await.map(drop))
    }

    pub(crate) async fn end(&self, token: &TaskToken) -> Result<(), sqlx::Error> {
        let update = format!(
            "UPDATE {} SET ended = {} WHERE task = {} AND attempt = {}",
            self.table,
            self.hole(1),
            self.hole(2),
            self.hole(3)
        );
        let (task, attempt) = (token.task.to_string(), i64::from(token.attempt));
        on_pool!(self, pool => sqlx::query(AssertSqlSafe(update)).bind(now_micros()).bind(task).bind(attempt).execute(pool).await.map(drop))
    }

    pub(crate) async fn read(&self) -> Vec<Ran> {
        let select =
            format!("SELECT task, attempt, pid, began, ended FROM {} ORDER BY task, attempt", self.table);
        let rows: Vec<(String, i64, i64, i64, Option<i64>)> =
            on_pool!(self, pool => sqlx::query_as(AssertSqlSafe(select)).fetch_all(pool).await).unwrap();
        rows.into_iter()
            .map(|(task, attempt, pid, began, ended)| Ran { task, attempt, pid, began, ended })
            .collect()
    }
}
