//! Tasks in every database, each with tables of their own.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sendoff::StoreError;
use sendoff::stores::memory::{MemoryTaskTransaction, MemoryTasks};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Names, SchemaSet, SqlTasks};
use sendoff::tasks::{Created, Inspect, NewTask, Settled, Store, TaskId, Tasks, WorkerId};
use sendoff::testkit::{Damage, TaskHarness, TaskTransaction};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};

use super::outbox::Path;
use crate::servers::Server;

/// Tasks as the suite sees them.
pub(crate) struct Sql<DB: sqlx::Database> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inspect: Arc<dyn Inspect>,
    /// A host's own connections, apart from those of the store.
    pub(crate) host: sqlx::Pool<DB>,
    pub(crate) tasks: Tasks,
    pub(crate) url: String,
    /// The schema or prefix.
    pub(crate) names: String,
    _directory: Option<tempfile::TempDir>,
}

pub(crate) struct Host<DB: sqlx::Database> {
    transaction: sqlx::Transaction<'static, DB>,
    tasks: Tasks,
}

fn fresh() -> String {
    format!("k{:012x}_", fastrand::u64(..1 << 48))
}

pub(crate) async fn sqlite() -> Sql<sqlx::Sqlite> {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("test.db").display());
    let database = SqliteDatabase::connect(&url).await.unwrap();
    let prefix = fresh();
    let names = Names::prefix(&prefix).unwrap();
    Migration::of(SchemaSet::TASKS, database.clone(), names.clone()).run().await.unwrap();
    let store = SqlTasks::open_as(database, names.clone()).await.unwrap();
    let options =
        url.parse::<sqlx::sqlite::SqliteConnectOptions>().unwrap().busy_timeout(Duration::from_secs(20));
    Sql {
        store: Arc::new(store.clone()),
        inspect: Arc::new(store),
        host: SqlitePool::connect_with(options).await.unwrap(),
        tasks: Tasks::named(names),
        url,
        names: prefix,
        _directory: Some(directory),
    }
}

pub(crate) async fn mysql(server: Server) -> Sql<sqlx::MySql> {
    let database = MysqlDatabase::connect(&server.url()).await.unwrap();
    let host = MySqlPool::connect(&server.url()).await.unwrap();
    mysql_over(database, host, server.url()).await
}

pub(crate) async fn mysql_over(database: MysqlDatabase, host: MySqlPool, url: String) -> Sql<sqlx::MySql> {
    let prefix = fresh();
    let names = Names::prefix(&prefix).unwrap();
    Migration::of(SchemaSet::TASKS, database.clone(), names.clone()).run().await.unwrap();
    let store = SqlTasks::open_as(database, names.clone()).await.unwrap();
    Sql {
        store: Arc::new(store.clone()),
        inspect: Arc::new(store),
        host,
        tasks: Tasks::named(names),
        url,
        names: prefix,
        _directory: None,
    }
}

pub(crate) async fn postgres(server: Server, path: Path) -> Sql<sqlx::Postgres> {
    let database = PostgresDatabase::connect(&server.url()).await.unwrap();
    postgres_over(database, server.url(), path).await
}

pub(crate) async fn postgres_over(
    database: PostgresDatabase,
    url: String,
    path: Path,
) -> Sql<sqlx::Postgres> {
    let schema = fresh();
    let names = Names::schema(&schema).unwrap();
    Migration::of(SchemaSet::TASKS, database.clone(), names.clone()).run().await.unwrap();
    let store = SqlTasks::open_as(database, names.clone()).await.unwrap().on_floor(path == Path::Floor);
    Sql {
        store: Arc::new(store.clone()),
        inspect: Arc::new(store),
        host: PgPool::connect(&url).await.unwrap(),
        tasks: Tasks::named(names),
        url,
        names: schema,
        _directory: None,
    }
}

macro_rules! task_harness {
    ($database:ty, $table:expr, $id:expr, $now:literal, $lock:expr) => {
        impl Sql<$database> {
            /// The table's name in SQL.
            pub(crate) fn table(&self, name: &str) -> String {
                let table: fn(&str, &str) -> String = $table;
                table(&self.names, name)
            }

            /// Submits tasks in one transaction.
            pub(crate) async fn submit_all(&self, tasks: impl IntoIterator<Item = NewTask>) -> Vec<TaskId> {
                let mut transaction = self.host.begin().await.unwrap();
                let created = self.tasks.submit_all(&mut transaction, tasks.into_iter().collect()).await.unwrap();
                transaction.commit().await.unwrap();
                created.into_iter().map(Created::id).collect()
            }

            async fn run(&self, sql: String, id: uuid::Uuid) {
                let bound = $id(id);
                sqlx::query(AssertSqlSafe(sql)).bind(bound).execute(&self.host).await.unwrap();
            }
        }

        impl TaskHarness for Sql<$database> {
            type Transaction = Host<$database>;

            fn store(&self) -> Arc<dyn Store> {
                Arc::clone(&self.store)
            }

            fn inspect(&self) -> Arc<dyn Inspect> {
                Arc::clone(&self.inspect)
            }

            async fn begin(&self) -> Host<$database> {
                Host { transaction: self.host.begin().await.unwrap(), tasks: self.tasks.clone() }
            }

            async fn pass(&self, time: Duration) {
                tokio::time::sleep(time).await;
            }

            async fn damage(&self, damage: Damage) {
                let lock: Option<&str> = $lock;
                let hole = if lock.is_some_and(|lock| lock.contains("$1")) { "$1" } else { "?" };
                let (entry, worker) = (self.table("task_entry"), self.table("task_worker"));
                match damage {
                    Damage::LoseEntry(TaskId(id)) => {
                        self.run(format!("DELETE FROM {entry} WHERE task = {hole}"), id).await;
                    }
                    Damage::MakeEntry(TaskId(id), kind) => {
                        let insert = format!(
                            "INSERT INTO {entry} (task, kind, waiting, turn, due_at) VALUES ({hole}, '{kind}', 0, 0, {})",
                            $now
                        );
                        self.run(insert, id).await;
                    }
                    Damage::LoseWorker(WorkerId(id)) => {
                        self.run(format!("DELETE FROM {worker} WHERE worker = {hole}"), id).await;
                    }
                }
            }

            async fn while_locked<Then, Answer>(&self, task: TaskId, then: Then) -> Option<Answer::Output>
            where
                Then: FnOnce() -> Answer + Send,
                Answer: Future + Send,
                Answer::Output: Send,
            {
                let lock: Option<&str> = $lock;
                let select = lock?.replace("{entry}", &self.table("task_entry"));
                let mut transaction = self.host.begin().await.unwrap();
                let bound = $id(task.0);
                sqlx::query(AssertSqlSafe(select)).bind(bound).fetch_one(&mut *transaction).await.unwrap();
                let answer = then().await;
                transaction.rollback().await.unwrap();
                Some(answer)
            }
        }

        impl TaskTransaction for Host<$database> {
            async fn create(&mut self, task: NewTask) -> Result<Created, StoreError> {
                self.tasks.create(&mut self.transaction, task).await
            }

            async fn mark_ready(&mut self, task: TaskId) -> Result<Settled, StoreError> {
                self.tasks.mark_ready(&mut self.transaction, task).await
            }

            async fn submit(&mut self, task: NewTask) -> Result<Created, StoreError> {
                self.tasks.submit(&mut self.transaction, task).await
            }

            async fn commit(self) -> Result<(), StoreError> {
                self.transaction.commit().await.unwrap();
                Ok(())
            }

            async fn rollback(self) {
                self.transaction.rollback().await.unwrap();
            }
        }
    };
}

task_harness!(
    sqlx::Sqlite,
    |prefix, name| format!("{prefix}{name}"),
    |id: uuid::Uuid| id.hyphenated().to_string(),
    "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) * 1000",
    None::<&str>
);
task_harness!(
    sqlx::MySql,
    |prefix, name| format!("{prefix}{name}"),
    |id: uuid::Uuid| id.as_bytes().to_vec(),
    "UTC_TIMESTAMP(6)",
    // By the index that claims go by: where only the primary key's record is locked, MariaDB waits for it in spite of SKIP LOCKED.
    Some(
        "SELECT 1 FROM {entry} FORCE INDEX (by_turn) WHERE waiting = 0 AND kind = 'a' AND task = ? \
         ORDER BY turn, due_at, task LIMIT 1 FOR UPDATE"
    )
);
task_harness!(
    sqlx::Postgres,
    |schema, name| format!("\"{schema}\".{name}"),
    |id: uuid::Uuid| id,
    "clock_timestamp()",
    Some("SELECT 1 FROM {entry} WHERE task = $1 FOR UPDATE")
);

/// Tasks in memory.
pub(crate) struct Memory(MemoryTasks);

pub(crate) async fn memory() -> Memory {
    Memory(MemoryTasks::new())
}

pub(crate) struct MemoryHost(MemoryTaskTransaction);

impl TaskHarness for Memory {
    type Transaction = MemoryHost;

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn inspect(&self) -> Arc<dyn Inspect> {
        Arc::new(self.0.clone())
    }

    async fn begin(&self) -> MemoryHost {
        MemoryHost(self.0.begin())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time);
    }

    async fn damage(&self, damage: Damage) {
        match damage {
            Damage::LoseEntry(task) => self.0.lose_entry(task),
            Damage::MakeEntry(task, kind) => self.0.make_entry(task, &kind),
            Damage::LoseWorker(worker) => self.0.lose_worker(worker),
        }
    }

    async fn while_locked<Then, Answer>(&self, _task: TaskId, _then: Then) -> Option<Answer::Output>
    where
        Then: FnOnce() -> Answer + Send,
        Answer: Future + Send,
        Answer::Output: Send,
    {
        None
    }
}

impl TaskTransaction for MemoryHost {
    async fn create(&mut self, task: NewTask) -> Result<Created, StoreError> {
        self.0.create(&task)
    }

    async fn mark_ready(&mut self, task: TaskId) -> Result<Settled, StoreError> {
        Ok(self.0.mark_ready(task))
    }

    async fn submit(&mut self, task: NewTask) -> Result<Created, StoreError> {
        self.0.submit(&task)
    }

    async fn commit(self) -> Result<(), StoreError> {
        self.0.commit()
    }

    async fn rollback(self) {
        drop(self.0);
    }
}
