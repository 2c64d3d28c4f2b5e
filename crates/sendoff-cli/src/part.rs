//! The parts of sendoff that have tables of their own: each is made, checked and opened apart from the others.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use sendoff::stores::{Migration, SchemaSet, SchemaState, SqlInbox, SqlTasks};
use sendoff::tasks::Publish;
use sendoff::{inbox, tasks};

use crate::site::Site;

/// A part with tables of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Outbox,
    Tasks,
    Inbox,
}

impl Part {
    fn tables(self) -> SchemaSet {
        match self {
            Self::Outbox => SchemaSet::OUTBOX,
            Self::Tasks => SchemaSet::TASKS,
            Self::Inbox => SchemaSet::INBOX,
        }
    }

    /// What makes its tables.
    pub(crate) fn migrate_command(self) -> &'static str {
        match self {
            Self::Outbox => "sendoff migrate",
            Self::Tasks => "sendoff tasks migrate",
            Self::Inbox => "sendoff inbox migrate",
        }
    }

    /// Whose tables they are.
    pub(crate) fn owner(self) -> &'static str {
        match self {
            Self::Outbox => "the outbox's",
            Self::Tasks => "the tasks'",
            Self::Inbox => "the inbox's",
        }
    }
}

/// The host's own connections as a database of the library's, whichever it is.
macro_rules! on_database {
    ($site:expr, $database:ident => $then:expr) => {
        match &$site.host {
            $crate::site::Host::Postgres(pool) => {
                let pooler = sendoff::stores::postgres::Pooler::None;
                let $database =
                    sendoff::stores::postgres::PostgresDatabase::from_pool(pool.clone(), pooler).await?;
                $then
            }
            $crate::site::Host::Sqlite(pool) => {
                let $database = sendoff::stores::sqlite::SqliteDatabase::from_pool(pool.clone()).await?;
                $then
            }
            $crate::site::Host::Mysql(pool) => {
                let $database = sendoff::stores::mysql::MysqlDatabase::from_pool(pool.clone()).await?;
                $then
            }
        }
    };
}
pub(crate) use on_database;

impl Site {
    /// Makes a part's tables.
    pub(crate) async fn migrate(&self, part: Part) -> Result<()> {
        let names = self.names()?;
        on_database!(self, database => Ok(Migration::of(part.tables(), database, names).run().await?))
    }

    /// How a part's tables are made, as SQL.
    pub(crate) async fn script(&self, part: Part) -> Result<String> {
        let names = self.names()?;
        on_database!(self, database => Ok(Migration::of(part.tables(), database, names).script()?))
    }

    /// How a part's tables stand to this program.
    pub(crate) async fn schema_state(&self, part: Part) -> Result<SchemaState> {
        let names = self.names()?;
        on_database!(self, database => Ok(Migration::of(part.tables(), database, names).state().await?))
    }

    /// Says why a part's tables are not as they must be, if they are not.
    pub(crate) async fn check(&self, part: Part) -> Result<()> {
        match part {
            Part::Outbox => self.inspect().await.map(drop),
            Part::Tasks => self.tasks(None).await.map(drop),
            Part::Inbox => self.inbox().await.map(drop),
        }
    }

    /// Tasks, for operators. What they do is published, if that is wanted.
    pub(crate) async fn tasks(&self, publish: Option<Publish>) -> Result<Arc<dyn tasks::Inspect>> {
        let opened: Result<Arc<dyn tasks::Inspect>> = async {
            let names = self.names()?;
            on_database!(self, database => {
                let tasks = SqlTasks::open_as(database, names).await?;
                Ok(match publish {
                    Some(publish) => Arc::new(tasks.publish_events(publish)) as Arc<dyn tasks::Inspect>,
                    None => Arc::new(tasks),
                })
            })
        }
        .await;
        opened.context("tasks could not be opened (`sendoff tasks migrate` makes their tables)")
    }

    /// The inbox, for who looks after it.
    pub(crate) async fn inbox(&self) -> Result<Arc<dyn inbox::Inspect>> {
        let opened: Result<Arc<dyn inbox::Inspect>> = async {
            let names = self.names()?;
            on_database!(self, database => {
                Ok(Arc::new(SqlInbox::open_as(database, names).await?) as Arc<dyn inbox::Inspect>)
            })
        }
        .await;
        opened.context("the inbox could not be opened (`sendoff inbox migrate` makes its tables)")
    }
}
