//! An outbox in PostgreSQL: one trip to read all lanes, one to settle, floors that a pinned snapshot cannot spoil, and takeover
//! at once from a worker whose session is gone.

mod database;
mod enqueue;
mod fetch;
mod floors;
mod session;
mod settle;
mod tid;
mod wake;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row as _};

use self::session::Sessions;
pub use self::wake::{Announcer, Listening};
use super::{Pooler, PostgresDatabase, errors};
use crate::error::{StoreError, StoreErrorKind};
use crate::outbox::{
    Census, Fetch, Fetched, Flush, HorizonProbe, Lane, LaneFloor, LaneSet, Leased, Member, Page, ParkedFetch,
    Peer, Scope, Settled, Store, Token, WorkerId,
};
use crate::stores::sql::{Names, SqlOutbox, Templates, paused_name};

/// An outbox in PostgreSQL.
///
/// Each worker has a connection of its own beside those of `database`, which holds its session lock; behind a transaction-mode pooler there is
/// none, and a lost worker's lanes go over when its leases end.
#[derive(Debug, Clone)]
pub struct PostgresOutbox {
    /// What is done the portable way.
    floor: SqlOutbox<PostgresDatabase>,
    statements: Arc<Statements>,
    sessions: Arc<Sessions>,
    settles_asynchronously: bool,
    keeps_published: bool,
}

/// The filled statements of the fast path.
#[derive(Debug)]
struct Statements {
    fetch: String,
    fetch_large: String,
    settle_published: String,
    settle_named: String,
    settle_flush: String,
    census: String,
    forget_gone: String,
    horizon_position: String,
    horizon_writers: String,
    keep_floors: String,
    /// The event table as a regclass is written.
    event: String,
}

impl Statements {
    fn new(templates: &Templates) -> Result<Self, StoreError> {
        let fill = |template| Ok::<_, StoreError>(templates.fill(template, &[])?.sql);
        let event = templates.names.quoted(templates.dialect, "event")?;
        let position = include_str!("horizon_1_position.sql");
        // An identity column's sequence is called so, in its table's schema.
        let sequence = templates.names.quoted(templates.dialect, "event_id_seq")?;
        Ok(Self {
            fetch: fill(include_str!("fetch.sql"))?,
            fetch_large: fill(include_str!("fetch_large.sql"))?,
            settle_published: fill(include_str!("settle_published.sql"))?,
            settle_named: fill(include_str!("settle_named.sql"))?,
            settle_flush: include_str!("settle_flush.sql")
                .replace("{schema}", &templates.names.quoted_schema(templates.dialect)),
            census: fill(include_str!("census.sql"))?,
            forget_gone: fill(include_str!("forget_gone.sql"))?,
            horizon_position: position.replace("{sequence}", &sequence),
            horizon_writers: fill(include_str!("horizon_2_writers.sql"))?,
            keep_floors: fill(include_str!("keep_floors.sql"))?,
            event,
        })
    }
}

impl PostgresOutbox {
    /// Opens the outbox of this database in its usual schema, `sendoff`.
    ///
    /// # Errors
    /// `Schema` if it is not there, or is of a version that this program does not speak.
    pub async fn open(database: PostgresDatabase) -> Result<Self, StoreError> {
        Self::open_as(database, Names::schema("sendoff")?).await
    }

    /// Opens the outbox of this database in another schema.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_as(database: PostgresDatabase, names: Names) -> Result<Self, StoreError> {
        let floor = SqlOutbox::open_as(database, names).await?;
        let statements = Arc::new(Statements::new(&floor.templates)?);
        Ok(Self {
            floor,
            statements,
            sessions: Arc::default(),
            settles_asynchronously: false,
            keeps_published: false,
        })
    }

    /// Keeps published events as history, until they are purged.
    #[must_use]
    pub fn keep_published(mut self, keep: bool) -> Self {
        self.floor = self.floor.keep_published(keep);
        self.keeps_published = keep;
        self
    }

    /// Does not wait for the disk when it settles published events: after a crash of the database the last ones are delivered again. Whatever else it settles, and every
    /// lease, waits always.
    #[must_use]
    pub fn settle_asynchronously(mut self, asynchronously: bool) -> Self {
        self.settles_asynchronously = asynchronously;
        self
    }

    fn database(&self) -> &PostgresDatabase {
        &self.floor.database
    }

    fn options(&self) -> Arc<PgConnectOptions> {
        self.database().connections.options()
    }

    fn has_sessions(&self) -> bool {
        self.database().pooler == Pooler::None
    }

    /// Runs a statement by itself.
    async fn fetch_all(
        &self,
        op: &'static str,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let convert = |error| errors::convert(op, "outbox", error);
        let mut connection = self.database().connections.acquire().await.map_err(convert)?;
        let rows = self.database().run_query(&mut connection, query).await.map_err(convert)?;
        connection.keep();
        Ok(rows)
    }

    async fn fetch_one(
        &self,
        op: &'static str,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<PgRow, StoreError> {
        let missing =
            || StoreError::new(StoreErrorKind::Corrupt, op, "outbox", "the server answered with no row");
        self.fetch_all(op, query).await?.pop().ok_or_else(missing)
    }

    /// The census as the worker's own session sees it: if that is broken, this fails, and the worker stops handing out.
    async fn census_in_session(&self, member: &Member) -> Result<(Census, Vec<WorkerId>), StoreError> {
        let convert = |error| errors::convert("census", "worker", error);
        let session = self.sessions.of(member.worker, &self.options()).await?;
        let mut session = session.lock().await;
        let rows = sqlx::query(AssertSqlSafe(self.statements.census.as_str()))
            .bind(&member.target)
            .bind(paused_name(&member.target))
            .fetch_all(&mut *session)
            .await
            .map_err(|error| {
                self.sessions.close(member.worker);
                convert(error)
            })?;
        let mut census = Census::default();
        let mut without_lock = Vec::new();
        for row in rows {
            let worker = WorkerId(row.try_get("worker").map_err(convert)?);
            let paused: i64 = row.try_get("paused").map_err(convert)?;
            census.paused = paused > 0;
            let scope: Option<String> = row.try_get("scope").map_err(convert)?;
            census
                .workers
                .push(Peer { worker, scope: scope.map_or_else(Scope::default, |text| Scope::read(&text)) });
            if row.try_get("is_gone").map_err(convert)? {
                without_lock.push(worker);
            }
        }
        let gone = self.sessions.gone(&without_lock);
        census.workers.retain(|peer| !gone.contains(&peer.worker));
        census.workers.sort_unstable_by_key(|peer| peer.worker);
        Ok((census, gone))
    }
}

#[async_trait]
impl Store for PostgresOutbox {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        if self.has_sessions() {
            // The lock first: a worker that is registered as having one must have it.
            self.sessions.of(member.worker, &self.options()).await?;
        }
        self.floor.register(member, self.has_sessions()).await
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        if self.has_sessions() {
            return Ok(self.census_in_session(member).await?.0);
        }
        self.floor.census(member).await
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        if !self.has_sessions() {
            return self.floor.take(member, lanes, most).await;
        }
        let (_, gone) = self.census_in_session(member).await?;
        self.floor.forget_workers(member).await?;
        let leased = self.floor.take_from(member, &gone, lanes, most).await?;
        if !gone.is_empty() {
            let ids: Vec<uuid::Uuid> = gone.iter().map(|worker| worker.0).collect();
            let forget = sqlx::query(AssertSqlSafe(self.statements.forget_gone.as_str()));
            self.fetch_all("take", forget.bind(&member.target).bind(ids)).await?;
            self.floor.forget_scopes().await?;
        }
        Ok(leased)
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        self.floor.renew(member, tokens).await
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        self.floor.give(member, tokens).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        self.floor.leave(member).await?;
        self.sessions.close(member.worker);
        Ok(())
    }

    fn abandon(&self, worker: WorkerId) {
        self.sessions.close(worker);
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        if !self.has_sessions() {
            // The driver looks up the type of a row's address between preparing and running, which a pooler tears apart.
            return self.floor.fetch(want).await;
        }
        self.fetch_fast(want).await
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        self.floor.fetch_parked(want).await
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        self.floor.find(member, lane, position).await
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        self.floor.name(member, token, position).await
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        self.settle_fast(flush).await
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        self.position().await.map(Some)
    }

    async fn horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        self.find_horizon(probe).await
    }

    async fn note_sink(&self, member: &Member, down: Option<&str>) -> Result<(), StoreError> {
        self.floor.note_sink(member, down).await
    }

    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        self.write_floors(member, lanes).await
    }
}
