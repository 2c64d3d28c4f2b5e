//! A service that has tasks and an inbox beside its outbox, by the library: what commands are given about.

use std::sync::Arc;
use std::time::Duration;

use sendoff::EventId;
use sendoff::inbox::{Arrival, Inbox, Once};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Names, SqlTasks};
use sendoff::tasks::{Claim, Context, Member, NewTask, Runner, Store, Task, TaskError, Tasks, WorkerId};
use sqlx::Connection as _;

use crate::outbox::Outbox;

/// A service in the database of an outbox, under its names.
pub(crate) struct Service<'o> {
    outbox: &'o Outbox,
    runtime: tokio::runtime::Runtime,
}

/// Does this in one transaction of the host's, and commits.
macro_rules! in_transaction {
    ($service:expr, $transaction:ident => $then:expr) => {{
        let store = &$service.outbox.store;
        macro_rules! on {
            ($connection:ty, $begin:literal) => {{
                let mut connection = <$connection>::connect(store).await.unwrap();
                let mut $transaction = connection.begin_with($begin).await.unwrap();
                let answer = $then;
                $transaction.commit().await.unwrap();
                connection.close().await.unwrap();
                answer
            }};
        }
        $service.runtime.block_on(async {
            match $service.outbox.database() {
                "postgres" => on!(sqlx::PgConnection, "BEGIN"),
                "mysql" => on!(sqlx::MySqlConnection, "BEGIN"),
                _ => on!(sqlx::SqliteConnection, "BEGIN IMMEDIATE"),
            }
        })
    }};
}

impl<'o> Service<'o> {
    pub(crate) fn new(outbox: &'o Outbox) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { outbox, runtime: runtime.unwrap() }
    }

    fn names(&self) -> Names {
        match (self.outbox.database(), &self.outbox.names) {
            ("postgres", names) => Names::schema(names.as_deref().unwrap_or("sendoff")).unwrap(),
            (_, names) => Names::prefix(names.as_deref().unwrap_or("sendoff_")).unwrap(),
        }
    }

    /// A table of sendoff's, as its own SQL would call it.
    pub(crate) fn table(&self, name: &str) -> String {
        match (self.outbox.database(), &self.outbox.names) {
            ("postgres", names) => format!("{}.{name}", names.as_deref().unwrap_or("sendoff")),
            (_, names) => format!("{}{name}", names.as_deref().unwrap_or("sendoff_")),
        }
    }

    /// Writes a task that may be claimed; its id.
    pub(crate) fn submit(&self, task: NewTask) -> String {
        let tasks = Tasks::named(self.names());
        in_transaction!(self, transaction => {
            tasks.submit(&mut transaction, task).await.unwrap().id().to_string()
        })
    }

    /// Writes one that may not.
    pub(crate) fn create(&self, task: NewTask) -> String {
        let tasks = Tasks::named(self.names());
        in_transaction!(self, transaction => {
            tasks.create(&mut transaction, task).await.unwrap().id().to_string()
        })
    }

    async fn store(&self) -> Arc<dyn Store> {
        let (url, names) = (&self.outbox.store, self.names());
        macro_rules! open {
            ($database:ty) => {
                Arc::new(SqlTasks::open_as(<$database>::connect(url).await.unwrap(), names).await.unwrap())
            };
        }
        match self.outbox.database() {
            "postgres" => open!(PostgresDatabase),
            "mysql" => open!(MysqlDatabase),
            _ => open!(SqliteDatabase),
        }
    }

    /// A worker that lives as long as the test, and takes these kinds.
    pub(crate) fn worker(&self, kinds: &[&str]) -> Worker<'_> {
        let member = Member {
            worker: WorkerId::generate(),
            name: "clerk".to_owned(),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            lease: Duration::from_secs(3_600),
        };
        let store = self.runtime.block_on(async {
            let store = self.store().await;
            store.join(&member).await.unwrap();
            store
        });
        Worker { service: self, store, member }
    }

    /// Runs what is due of a kind: done, unless its payload is a text that says what is wrong.
    pub(crate) fn run_all(&self, kind: &str) {
        let handler = |_: Context, content: serde_json::Value| async move {
            match content.as_str() {
                Some(wrong) => Err(TaskError::fatal(wrong)),
                None => Ok(()),
            }
        };
        self.runtime.block_on(async {
            let runner = Runner::new(self.store().await).handle(kind, handler);
            runner.drain_inline().await.unwrap();
        });
    }

    /// A consumer handles an event of a key.
    pub(crate) fn handle(&self, consumer: &str, event: EventId, key: &str, position: i64) -> Once {
        let inbox = Inbox::named(self.names());
        let arrival = Arrival {
            event_id: event,
            source: Some("/shop".to_owned()),
            key: Some(key.to_owned()),
            position: Some(position),
            epoch: Some(1),
        };
        in_transaction!(self, transaction => {
            let once = inbox.once(&mut transaction, consumer, event).await.unwrap();
            if once.is_first() {
                inbox.follow(&mut transaction, consumer, &arrival).await.unwrap();
            }
            once
        })
    }
}

/// A worker, step by step.
pub(crate) struct Worker<'s> {
    service: &'s Service<'s>,
    store: Arc<dyn Store>,
    member: Member,
}

impl Worker<'_> {
    pub(crate) fn id(&self) -> String {
        self.member.worker.to_string()
    }

    /// Claims one task.
    pub(crate) fn claim(&self) -> Task {
        let claim = Claim { worker: self.member.worker, kinds: self.member.kinds.clone(), limit: 1 };
        self.service.runtime.block_on(self.store.claim(&claim)).unwrap().pop().unwrap()
    }

    /// Whether there was anything to claim.
    pub(crate) fn finds_any(&self) -> bool {
        let claim = Claim { worker: self.member.worker, kinds: self.member.kinds.clone(), limit: 1 };
        !self.service.runtime.block_on(self.store.claim(&claim)).unwrap().is_empty()
    }

    /// Whether it counted.
    pub(crate) fn complete(&self, task: &Task) -> bool {
        let tokens = [task.token().unwrap()];
        self.service.runtime.block_on(self.store.complete(&tokens)).unwrap()[0].is_applied()
    }

    pub(crate) fn fail(&self, task: &Task, error: &str) {
        let failed = self.service.runtime.block_on(self.store.fail(&task.token().unwrap(), error));
        assert!(failed.unwrap().is_applied());
    }
}
