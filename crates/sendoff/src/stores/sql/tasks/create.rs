//! Writing tasks in the host's own transaction.

use super::super::HostSession;
use super::tell::{self, Happened};
use super::{Arg, KEYS_PER_STATEMENT, Names, RowReader, Templates, list};
use crate::claim::micros;
use crate::error::{StoreError, StoreErrorKind};
use crate::stores::sql::Dialect;
use crate::tasks::{Created, NewTask, Publish, Settled, TaskEventKind, TaskId, TaskStatus};

/// A key is looked for again if the task that had it ended meanwhile; not for ever.
const TRIES: u32 = 5;

/// Writes tasks in the host's own transaction: they are there if it commits, and never were if it does not.
///
/// ```no_run
/// # #[cfg(feature = "postgres")]
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::tasks::{NewTask, Tasks};
///
/// let mut transaction = pool.begin().await?;
/// // … the host's own statements …
/// let mail = NewTask::new("mail.send").json(&serde_json::json!({ "to": "a@example.org" }))?;
/// Tasks::new().submit(&mut transaction, mail).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// A pool is refused by the compiler, since a task written on a connection of its own is run whatever the host does:
///
/// ```compile_fail
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::tasks::{NewTask, Tasks};
/// Tasks::new().submit(&pool, NewTask::new("mail.send")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    names: Option<Names>,
    publish: Option<Publish>,
}

impl Tasks {
    /// Tasks under their usual names: `sendoff.task` on PostgreSQL, `sendoff_task` elsewhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tasks under other names.
    pub fn named(names: Names) -> Self {
        Self { names: Some(names), publish: None }
    }

    /// Writes every event of a task to the outbox as well, in the same transaction.
    #[must_use]
    pub fn publish_events(mut self, publish: Publish) -> Self {
        self.publish = Some(publish);
        self
    }

    /// Writes a task that nobody may claim until [`mark_ready`](Self::mark_ready). If its unique key is a live task's already, says which that is, and writes nothing.
    ///
    /// # Errors
    /// `Rejected` for a task beyond the limits, before anything is sent; otherwise as the database's, and then the host's
    /// transaction is to be rolled back.
    pub async fn create<C: HostSession>(
        &self,
        mut connection: C,
        task: NewTask,
    ) -> Result<Created, StoreError> {
        self.write_one(&mut connection, task, TaskStatus::NotStarted).await
    }

    /// Lets a task be claimed: its entry and its event are written in the same transaction. Stale: there is no such task, or it was ready before.
    ///
    /// # Errors
    /// As the database's.
    pub async fn mark_ready<C: HostSession>(
        &self,
        mut connection: C,
        task: TaskId,
    ) -> Result<Settled, StoreError> {
        let templates = self.templates(connection.dialect())?;
        let id = Arg::Bound(templates.uuid(task.0));
        let mark = templates.fill(include_str!("mark_ready.sql"), &[("task", id)])?;
        if connection.execute("mark ready", &mark).await? == 0 {
            return Ok(Settled::Stale);
        }
        self.enter(&mut connection, &templates, &[task]).await?;
        let happened = [Happened::early(task, TaskEventKind::TaskReady)];
        self.tell(&mut connection, &templates, &happened).await?;
        Ok(Settled::Applied)
    }

    /// Writes a task that may be claimed when it is due: [`create`](Self::create) and [`mark_ready`](Self::mark_ready) at once.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn submit<C: HostSession>(
        &self,
        mut connection: C,
        task: NewTask,
    ) -> Result<Created, StoreError> {
        self.write_one(&mut connection, task, TaskStatus::Ready).await
    }

    /// Submits many tasks, in a few statements for every five hundred of those without a unique key. None of them if one is beyond the limits.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn submit_all<C: HostSession>(
        &self,
        mut connection: C,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<Created>, StoreError> {
        for task in &tasks {
            task.check()?;
        }
        let templates = self.templates(connection.dialect())?;
        let mut created = Vec::with_capacity(tasks.len());
        let mut plain: Vec<(TaskId, NewTask)> = Vec::new();
        for task in tasks {
            if task.unique_key.is_some() {
                created.push(self.write_one(&mut connection, task, TaskStatus::Ready).await?);
                continue;
            }
            let id = TaskId::generate();
            created.push(Created::New(id));
            plain.push((id, task));
            if plain.len() == KEYS_PER_STATEMENT {
                self.write(&mut connection, &templates, &plain, TaskStatus::Ready).await?;
                plain.clear();
            }
        }
        self.write(&mut connection, &templates, &plain, TaskStatus::Ready).await?;
        Ok(created)
    }

    fn templates(&self, dialect: Dialect) -> Result<Templates, StoreError> {
        let names = match &self.names {
            Some(names) => names.clone(),
            None => Names::default_for(dialect)?,
        };
        Ok(Templates { dialect, names })
    }

    async fn write_one<C: HostSession>(
        &self,
        connection: &mut C,
        task: NewTask,
        status: TaskStatus,
    ) -> Result<Created, StoreError> {
        task.check()?;
        let templates = self.templates(connection.dialect())?;
        let id = TaskId::generate();
        let Some(key) = task.unique_key.clone() else {
            self.write(connection, &templates, &[(id, task)], status).await?;
            return Ok(Created::New(id));
        };
        let rows = Arg::Rows(vec![row(&templates, id, &task, status)]);
        let insert = templates.fill(include_str!("create_unique.sql"), &[("rows", rows)])?;
        let find = |lock| {
            let args = [("key", Arg::from(key.as_str())), ("lock", Arg::Sql(lock))];
            templates.fill(include_str!("find_live.sql"), &args)
        };
        let is_mysql = templates.dialect == Dialect::Mysql;
        if is_mysql {
            // An insert that meets a row there locks it until the host's transaction ends: claims and settlements of that task would wait.
            let found = connection.query("create task", &find("")?).await?.into_iter().next();
            if let Some(found) = found {
                return Ok(Created::Exists(RowReader::new(found).task_id()?));
            }
        }
        // Elsewhere a plain read sees what the insert has met. Here it may be of an older snapshot.
        let find = find(if is_mysql { "FOR UPDATE" } else { "" })?;
        for _ in 0..TRIES {
            connection.execute("create task", &insert).await?;
            let found = connection.query("create task", &find).await?.into_iter().next();
            match found.map(|found| RowReader::new(found).task_id()).transpose()? {
                Some(found) if found == id => {
                    self.follow(connection, &templates, &[id], status).await?;
                    return Ok(Created::New(id));
                }
                Some(found) => return Ok(Created::Exists(found)),
                // The one that had the key ended between the two.
                None => {}
            }
        }
        let detail = "tasks with its unique key kept ending while it was written; try again";
        Err(StoreError::new(StoreErrorKind::Contended, "create task", "unique key", detail))
    }

    async fn write<C: HostSession>(
        &self,
        connection: &mut C,
        templates: &Templates,
        tasks: &[(TaskId, NewTask)],
        status: TaskStatus,
    ) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let rows = tasks.iter().map(|(id, task)| row(templates, *id, task, status)).collect();
        let insert = templates.fill(include_str!("create.sql"), &[("rows", Arg::Rows(rows))])?;
        connection.execute("create task", &insert).await?;
        let ids: Vec<TaskId> = tasks.iter().map(|(id, _)| *id).collect();
        self.follow(connection, templates, &ids, status).await
    }

    /// What a new task brings with it.
    async fn follow<C: HostSession>(
        &self,
        connection: &mut C,
        templates: &Templates,
        tasks: &[TaskId],
        status: TaskStatus,
    ) -> Result<(), StoreError> {
        let mut happened: Vec<Happened> =
            tasks.iter().map(|task| Happened::early(*task, TaskEventKind::TaskCreated)).collect();
        if status == TaskStatus::Ready {
            self.enter(connection, templates, tasks).await?;
            happened.extend(tasks.iter().map(|task| Happened::early(*task, TaskEventKind::TaskReady)));
        }
        self.tell(connection, templates, &happened).await
    }

    async fn enter<C: HostSession>(
        &self,
        connection: &mut C,
        templates: &Templates,
        tasks: &[TaskId],
    ) -> Result<(), StoreError> {
        let args = [("tasks", list(templates, tasks.iter().copied()))];
        connection.execute("mark ready", &templates.fill(include_str!("enter.sql"), &args)?).await?;
        Ok(())
    }

    async fn tell<C: HostSession>(
        &self,
        connection: &mut C,
        templates: &Templates,
        happened: &[Happened],
    ) -> Result<(), StoreError> {
        let at = match &self.publish {
            None => None,
            Some(_) => {
                let rows = connection.query("create task", &tell::clock(templates)?).await?;
                rows.into_iter().next().map(|row| RowReader::new(row).moment("now")).transpose()?
            }
        };
        for statement in tell::statements(templates, self.publish.as_ref(), happened, at)? {
            connection.execute("create task", &statement).await?;
        }
        Ok(())
    }
}

fn row(templates: &Templates, id: TaskId, task: &NewTask, status: TaskStatus) -> Vec<Arg> {
    vec![
        Arg::Bound(templates.uuid(id.0)),
        Arg::from(task.kind.as_str()),
        Arg::from(task.payload.clone()),
        Arg::from(status.word()),
        Arg::from(i64::from(task.priority)),
        Arg::from(task.unique_key.as_deref()),
        task.run_at.map_or(Arg::Now(0), Arg::Moment),
        Arg::from(task.attempts_max),
        Arg::from(task.run_time.map(micros)),
        Arg::Now(0),
    ]
}
