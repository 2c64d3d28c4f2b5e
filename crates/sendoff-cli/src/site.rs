//! A database that an outbox is in, whichever it is: opened by its URL.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use sendoff::outbox::{Inspect, Store};
use sendoff::stores::mysql::{MysqlDatabase, MysqlOutbox};
use sendoff::stores::postgres::{Listening, PostgresDatabase, PostgresOutbox};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteOutbox};
use sendoff::stores::{Names, SqlOutbox};
use sendoff::{EventId, NewEvent, Outbox};
use sendoff_relay::Bell;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Executor as _, MySqlPool, PgPool, SqlitePool};

use crate::args::StoreArgs;
use crate::exit::{Refused, refuse};
use crate::part::{Part, on_database};
use crate::place::Place;
use crate::table::{HostTable, Opened};

/// How long a writer of SQLite waits for its turn.
const SQLITE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What each session of MariaDB or MySQL begins with, whatever the server says.
const READ_COMMITTED: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// An outbox under names of its own, and the host's connections to the same database.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) names: String,
    pub(crate) host: Host,
    /// The host's own table that is meant, and not sendoff's own.
    pub(crate) table: Option<HostTable>,
}

/// How a worker settles. By default delivered events go, and a settlement waits for the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settling {
    /// Delivered events are kept as history.
    pub(crate) keeps_published: bool,
    /// A settlement does not wait for the disk.
    pub(crate) is_asynchronous: bool,
}

impl Settling {
    /// Refuses what the store at this URL cannot do.
    pub(crate) fn check(self, url: &str) -> Result<()> {
        if self.is_asynchronous && !matches!(scheme(url)?, Scheme::Postgres) {
            refuse!("`settle_asynchronously` is for PostgreSQL alone: leave it out");
        }
        Ok(())
    }
}

/// The host's own connections.
#[derive(Debug, Clone)]
pub(crate) enum Host {
    Postgres(PgPool),
    Sqlite(SqlitePool),
    Mysql(MySqlPool),
}

impl Site {
    /// Connects as a host does.
    pub(crate) async fn connect(url: &str, names: &str, connections: u32) -> Result<Self> {
        let host = match scheme(url)? {
            Scheme::Postgres => {
                let options: PgConnectOptions = options(url, "PostgreSQL")?;
                knock(&options).await.context("PostgreSQL")?;
                Host::Postgres(PgPoolOptions::new().max_connections(connections).connect_lazy_with(options))
            }
            Scheme::Mysql => {
                let options: MySqlConnectOptions = options(url, "MariaDB/MySQL")?;
                knock(&options).await.context("MariaDB/MySQL")?;
                let pool = MySqlPoolOptions::new().max_connections(connections);
                let pool = pool.after_connect(|connection, _| {
                    Box::pin(async move { connection.execute(READ_COMMITTED).await.map(drop) })
                });
                Host::Mysql(pool.connect_lazy_with(options))
            }
            Scheme::Sqlite => {
                let options: SqliteConnectOptions = options(url, "SQLite")?;
                let options = options
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal)
                    .busy_timeout(SQLITE_PATIENCE);
                let pool = SqlitePoolOptions::new().max_connections(connections).connect_with(options).await;
                Host::Sqlite(pool.with_context(|| format!("SQLite, {url}"))?)
            }
        };
        Ok(Self { url: url.to_owned(), names: names.to_owned(), host, table: None })
    }

    /// Connects to the outbox that the command line names, or its configuration.
    pub(crate) async fn of(args: &StoreArgs) -> Result<Self> {
        Self::at(&Place::of(args)?).await
    }

    /// Connects to where a part of sendoff is; what is said of a file that is not there is how that part makes it.
    pub(crate) async fn of_part(args: &StoreArgs, part: Part) -> Result<Self> {
        let place = Place::of(args)?;
        if matches!(scheme(&place.url)?, Scheme::Sqlite) {
            present_file(&place.url, part)?;
        }
        Self::at(&place).await
    }

    /// The same as [`of`](Self::of); a file that is not there is made.
    pub(crate) async fn of_new(args: &StoreArgs) -> Result<Self> {
        let place = Place::of(args)?;
        Self::connect(&place.url, place.names()?, 2).await
    }

    /// Connects to an outbox that is there.
    pub(crate) async fn at(place: &Place) -> Result<Self> {
        if matches!(scheme(&place.url)?, Scheme::Sqlite) {
            if place.table.is_some() {
                // The host's own file: how it keeps its journal is its business.
                return Self::untouched_file(place).await;
            }
            present_file(&place.url, Part::Outbox)?;
        }
        let site = Self::connect(&place.url, place.names()?, 2).await?;
        Ok(Self { table: place.table.clone(), ..site })
    }

    /// The same, and leaves the database as it is: a file keeps its journal mode.
    pub(crate) async fn untouched(args: &StoreArgs) -> Result<Self> {
        Self::untouched_at(&Place::of(args)?).await
    }

    /// The same, of a place.
    pub(crate) async fn untouched_at(place: &Place) -> Result<Self> {
        match scheme(&place.url)? {
            Scheme::Sqlite => Self::untouched_file(place).await,
            _ => Self::at(place).await,
        }
    }

    async fn untouched_file(place: &Place) -> Result<Self> {
        let options = present_file(&place.url, Part::Outbox)?.busy_timeout(SQLITE_PATIENCE);
        let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await;
        let host = Host::Sqlite(pool.with_context(|| format!("SQLite, {}", place.url))?);
        Ok(Self {
            names: place.names()?.to_owned(),
            url: place.url.clone(),
            host,
            table: place.table.clone(),
        })
    }

    pub(crate) fn names(&self) -> Result<Names> {
        Ok(match self.host {
            Host::Postgres(_) => Names::schema(&self.names)?,
            _ => Names::prefix(&self.names)?,
        })
    }

    /// The outbox, for workers.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>> {
        self.store_with(Settling::default()).await
    }

    /// The same, with how they settle.
    pub(crate) async fn store_with(&self, settling: Settling) -> Result<Arc<dyn Store>> {
        let (names, keep) = (self.names()?, settling.keeps_published);
        settling.check(&self.url)?;
        Ok(match self.host {
            Host::Postgres(_) => {
                let outbox = self.postgres_outbox().await?.keep_published(keep);
                Arc::new(outbox.settle_asynchronously(settling.is_asynchronous))
            }
            Host::Sqlite(_) => {
                let outbox = SqliteOutbox::open_as(SqliteDatabase::connect(&self.url).await?, names).await?;
                Arc::new(outbox.keep_published(keep))
            }
            Host::Mysql(_) => {
                let outbox = MysqlOutbox::open_as(MysqlDatabase::connect(&self.url).await?, names).await?;
                Arc::new(outbox.keep_published(keep))
            }
        })
    }

    /// The outbox, for operators.
    pub(crate) async fn inspect(&self) -> Result<Arc<dyn Inspect>> {
        if let Some(table) = &self.table {
            return Ok(Arc::new(table.open(&Opened::of_host(self).await?).await?));
        }
        self.opened().await.context("the outbox could not be opened (`sendoff migrate` makes its tables)")
    }

    async fn opened(&self) -> Result<Arc<dyn Inspect>> {
        let names = self.names()?;
        on_database!(self, database => Ok(Arc::new(SqlOutbox::open_as(database, names).await?)))
    }

    pub(crate) async fn postgres_outbox(&self) -> Result<PostgresOutbox> {
        Ok(PostgresOutbox::open_as(PostgresDatabase::connect(&self.url).await?, self.names()?).await?)
    }

    /// Rings the bell when the host announces a commit.
    pub(crate) async fn listen(&self, bell: Bell) -> Result<Listening> {
        ensure!(matches!(self.host, Host::Postgres(_)), "only PostgreSQL can be listened to");
        Ok(self.postgres_outbox().await?.listen(move || bell.ring()).await?)
    }

    /// For writing events.
    pub(crate) fn outbox(&self) -> Result<Outbox> {
        Ok(Outbox::named(self.names()?))
    }

    /// One transaction of the host's with these events, committed or rolled back.
    pub(crate) async fn write(
        &self,
        outbox: &Outbox,
        events: Vec<NewEvent>,
        commit: bool,
    ) -> Result<Vec<EventId>> {
        macro_rules! write {
            ($begin:expr) => {{
                let mut transaction = $begin.await?;
                let ids = outbox.enqueue_all(&mut *transaction, events).await?;
                if commit {
                    transaction.commit().await?;
                } else {
                    transaction.rollback().await?;
                }
                Ok(ids)
            }};
        }
        match &self.host {
            Host::Postgres(pool) => write!(pool.begin()),
            Host::Mysql(pool) => write!(pool.begin()),
            // A writer that only becomes one later may find that another was faster.
            Host::Sqlite(pool) => write!(pool.begin_with("BEGIN IMMEDIATE")),
        }
    }

    /// Takes the outbox's tables away, which are this program's own.
    pub(crate) async fn remove(&self) -> Result<()> {
        if let Host::Postgres(pool) = &self.host {
            let sql = format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.names);
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await?;
        }
        if let Host::Mysql(pool) = &self.host {
            let sql = "SELECT CAST(table_name AS CHAR) FROM information_schema.tables \
                       WHERE table_schema = database() AND LEFT(table_name, CHAR_LENGTH(?)) = ?";
            let tables: Vec<String> =
                sqlx::query_scalar(sql).bind(&self.names).bind(&self.names).fetch_all(pool).await?;
            for table in tables {
                sqlx::raw_sql(AssertSqlSafe(format!("DROP TABLE `{table}`"))).execute(pool).await?;
            }
        }
        Ok(())
    }
}

impl Place {
    fn names(&self) -> Result<&str> {
        let usual = if matches!(scheme(&self.url)?, Scheme::Postgres) { "sendoff" } else { "sendoff_" };
        Ok(self.names.as_deref().unwrap_or(usual))
    }
}

/// A file that is there: a mistyped path would be a new, empty database.
fn present_file(url: &str, part: Part) -> Result<SqliteConnectOptions> {
    let options: SqliteConnectOptions = options(url, "SQLite")?;
    let file = options.get_filename();
    let (shown, migrate) = (file.display(), part.migrate_command());
    ensure!(file.exists(), "SQLite, {shown}: there is no such file; `{migrate}` makes it");
    Ok(options)
}

/// What a URL says. One that cannot be read is not shown: it may have a password in it.
fn options<O: FromStr<Err = sqlx::Error>>(url: &str, what: &str) -> Result<O> {
    Ok(url.parse().map_err(|error| Refused(format!("{what}: its URL cannot be read: {error}")))?)
}

/// Whether anybody is there: a pool would try for half a minute before it says so.
async fn knock<O: ConnectOptions>(options: &O) -> sqlx::Result<()>
where
    O::Connection: Sized,
{
    options.connect().await?.close().await
}

enum Scheme {
    Postgres,
    Sqlite,
    Mysql,
}

fn scheme(url: &str) -> Result<Scheme> {
    match url.split(':').next().unwrap_or_default() {
        "postgres" | "postgresql" => Ok(Scheme::Postgres),
        "sqlite" => Ok(Scheme::Sqlite),
        "mysql" | "mariadb" => Ok(Scheme::Mysql),
        // Only the scheme: the rest may have a password in it.
        other => refuse!("{other:?} is no store: give postgres://…, mysql://… or sqlite:PATH"),
    }
}
