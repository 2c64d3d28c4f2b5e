//! Tasks in SQL: one engine, and its statements, for every dialect. PostgreSQL claims and completes in one statement each.

mod check;
mod claim;
mod create;
mod inspect;
mod rows;
mod settle;
mod store;
mod tell;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

pub use create::Tasks;

use super::outbox::{
    Arg, Migration, Names, RowReader, SchemaSet, SqlDatabase, SqlTransaction, Templates, check_schema,
};
use super::{Bind, Dialect, KEYS_PER_STATEMENT, Statement, retry};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::outbox::WorkerId;
use crate::tasks::{Publish, TaskId};

/// Tasks in a SQL database.
#[derive(Debug, Clone)]
pub struct SqlTasks<D: SqlDatabase> {
    pub(crate) database: D,
    pub(crate) templates: Templates,
    publish: Option<Publish>,
    is_on_floor: bool,
    pace: Arc<Mutex<Pace>>,
}

/// What need not be asked before every claim.
#[derive(Debug, Default)]
struct Pace {
    promoted: Option<Instant>,
    /// The kinds that were limited when it was last asked. A kind that has been limited since is not claimed until it is asked again.
    limited: Option<(Instant, HashSet<String>)>,
}

impl<D: SqlDatabase> SqlTasks<D> {
    /// What makes their tables, under their usual names: `sendoff.task` on PostgreSQL, `sendoff_task` elsewhere. It stands apart from the outbox's: a database may have one without the other.
    ///
    /// # Errors
    /// None in practice: the usual names are good ones.
    pub fn migration(database: D) -> Result<Migration<D>, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Ok(Self::migration_as(database, names))
    }

    /// The same under other names.
    pub fn migration_as(database: D, names: Names) -> Migration<D> {
        Migration::of(SchemaSet::TASKS, database, names)
    }

    /// Opens the tasks of this database under their usual names.
    ///
    /// # Errors
    /// `Schema` if they are not there, or are of a version that this program does not speak.
    pub async fn open(database: D) -> Result<Self, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Self::open_as(database, names).await
    }

    /// Opens the tasks of this database under other names.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_as(database: D, names: Names) -> Result<Self, StoreError> {
        let templates = Templates { dialect: database.dialect(), names };
        check_schema(&database, &templates, &SchemaSet::TASKS).await?;
        Ok(Self { database, templates, publish: None, is_on_floor: false, pace: Arc::default() })
    }

    /// Writes every event of a task to the outbox as well, in the same transaction. The outbox is in the same database, under the same names.
    #[must_use]
    pub fn publish_events(mut self, publish: Publish) -> Self {
        self.publish = Some(publish);
        self
    }

    /// Claims and completes by the portable statements instead of this database's fast path.
    #[must_use]
    pub fn on_floor(mut self, floor: bool) -> Self {
        self.is_on_floor = floor;
        self
    }

    /// One statement does it all. What is published is made by the portable way.
    fn is_fast(&self) -> bool {
        self.templates.dialect == Dialect::Postgres && !self.is_on_floor && self.publish.is_none()
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subject(&self) -> String {
        self.templates.names.subject()
    }

    async fn read(&self, op: &'static str, statement: &Statement) -> Result<Vec<RowReader>, StoreError> {
        let patience = self.database.time_to_try();
        let rows = retry(op, &self.subject(), patience, || self.database.query(op, statement)).await?;
        Ok(rows.into_iter().map(RowReader::new).collect())
    }

    /// Runs one statement that writes, again if it was contended; how many rows it changed, or matched.
    async fn write(&self, op: &'static str, statement: &Statement) -> Result<u64, StoreError> {
        retry(op, &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin(op).await?;
            let changed = transaction.execute(statement).await?;
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }

    fn lock(&self) -> Arg {
        Arg::Sql(lock(self.templates.dialect))
    }

    /// What somebody else has locked is stepped over.
    fn lock_free(&self) -> Arg {
        Arg::Sql(if self.templates.dialect == Dialect::Sqlite { "" } else { "FOR UPDATE SKIP LOCKED" })
    }

    fn worker(&self, worker: WorkerId) -> Arg {
        self.templates.worker(worker)
    }

    fn task(&self, task: TaskId) -> Arg {
        Arg::Bound(self.templates.uuid(task.0))
    }

    /// Deletes by ids, where MariaDB and MySQL want to be told how.
    fn delete(
        &self,
        template: &'static str,
        on_mysql: &'static str,
        tasks: &[TaskId],
    ) -> Result<Statement, StoreError> {
        if self.templates.dialect != Dialect::Mysql {
            return self.templates.fill(template, &[("tasks", self.tasks(tasks.iter().copied()))]);
        }
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable();
        let which = tasks.iter().map(|task| vec![("task", self.task(*task))]).collect();
        let which = Arg::Union(include_str!("../../mysql/tasks/which.sql"), which);
        self.templates.fill(on_mysql, &[("which", which)])
    }

    fn delete_entries(&self, tasks: &[TaskId]) -> Result<Statement, StoreError> {
        let on_mysql = include_str!("../../mysql/tasks/drop_entries.sql");
        self.delete(include_str!("drop_entries.sql"), on_mysql, tasks)
    }

    /// Lowest first: whoever meets the same rows meets them in the same order.
    fn tasks(&self, tasks: impl IntoIterator<Item = TaskId>) -> Arg {
        list(&self.templates, tasks)
    }
}

fn lock(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Sqlite { "" } else { "FOR UPDATE" }
}

fn list(templates: &Templates, tasks: impl IntoIterator<Item = TaskId>) -> Arg {
    let mut tasks: Vec<TaskId> = tasks.into_iter().collect();
    tasks.sort_unstable();
    Arg::List(tasks.into_iter().map(|task| templates.uuid(task.0)).collect())
}

/// The first of all ids, and of no task.
fn from_the_start(after: Option<TaskId>) -> TaskId {
    after.unwrap_or(TaskId(uuid::Uuid::nil()))
}

fn later(moment: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_micros(moment.as_micros().saturating_add(micros))
}
