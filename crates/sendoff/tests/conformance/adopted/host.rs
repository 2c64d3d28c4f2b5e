//! Hosts with outbox tables of their own: their DDL, their inserts, their view of the rows.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use sendoff::adopted::{Adopted, Beside, Mapping, presets};
use sendoff::outbox::{Engine, Source as _, WorkerConfig};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::{StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool, PgPool, Row as _, SqlitePool};
use uuid::Uuid;

use super::cases::PATIENCE;
use crate::servers::Server;

/// A host's kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Framework,
    Governance,
    Adr003,
    Debezium,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Sqlite,
    Server(Server),
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Server(server) => server.name(),
        }
    }

    pub(crate) fn server(self) -> Option<Server> {
        match self {
            Self::Sqlite => None,
            Self::Server(server) => Some(server),
        }
    }
}

/// The host's own connections.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    Postgres(PgPool),
    Mysql(MySqlPool),
    Sqlite(SqlitePool),
}

/// A host with a table of its own.
pub(crate) struct Host {
    pub(crate) kind: Kind,
    pub(crate) pool: Pool,
    pub(crate) url: String,
    pub(crate) table: String,
    _directory: Option<tempfile::TempDir>,
}

/// A row as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: String,
    pub(crate) attempts: i64,
    pub(crate) owner: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) stamp: Option<String>,
}

impl Kind {
    /// Those that have columns for claims.
    pub(crate) const OWN: [Self; 2] = [Self::Framework, Self::Governance];
    /// Those whose claims are kept beside them.
    pub(crate) const BESIDE: [Self; 2] = [Self::Adr003, Self::Debezium];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Framework => "framework",
            Self::Governance => "governance",
            Self::Adr003 => "adr003",
            Self::Debezium => "debezium",
        }
    }

    pub(crate) fn mapping(self, table: &str) -> Mapping {
        match self {
            Self::Framework => presets::framework(table, "default").unwrap(),
            Self::Governance => presets::governance(table).unwrap(),
            Self::Adr003 => presets::adr003(table).unwrap().0,
            Self::Debezium => presets::debezium(table, "unused").unwrap().0,
        }
    }

    pub(crate) fn beside(self, table: &str) -> Option<Beside> {
        match self {
            Self::Framework | Self::Governance => None,
            Self::Adr003 => Some(presets::adr003(table).unwrap().1),
            Self::Debezium => Some(presets::debezium(table, &format!("{table}_sendoff")).unwrap().1),
        }
    }

    fn ddl(self, pool: &Pool) -> &'static str {
        macro_rules! of {
            ($kind:literal) => {
                match pool {
                    Pool::Postgres(_) => include_str!(concat!("../../hosts/", $kind, "/postgres.sql")),
                    Pool::Mysql(_) => include_str!(concat!("../../hosts/", $kind, "/mysql.sql")),
                    Pool::Sqlite(_) => include_str!(concat!("../../hosts/", $kind, "/sqlite.sql")),
                }
            };
        }
        match self {
            Self::Framework => of!("framework"),
            Self::Governance => of!("governance"),
            Self::Adr003 => of!("adr003"),
            Self::Debezium => of!("debezium"),
        }
    }

    pub(crate) fn inserted(self) -> &'static [&'static str] {
        match self {
            Self::Framework => &[
                "id",
                "message_id",
                "stream_name",
                "type",
                "data",
                "metadata_",
                "created_at",
                "target_broker",
            ],
            Self::Governance => &[
                "OutboxEntryId",
                "EnvelopeId",
                "CorrelationId",
                "EventType",
                "EnvelopeJson",
                "Status",
                "CreatedUtc",
                "ConcurrencyStamp",
            ],
            Self::Adr003 => &["id", "aggregate_type", "aggregate_id", "event_type", "payload", "created_at"],
            Self::Debezium => &["id", "aggregatetype", "aggregateid", "type", "payload"],
        }
    }

    /// The values of one row.
    pub(crate) fn tuple(self, id: &Uuid, key: &str, payload: &str, at: &str) -> String {
        let text = if key.is_empty() { "NULL".to_owned() } else { format!("'{key}'") };
        match self {
            Self::Framework => {
                let stream = if key.is_empty() { id.to_string() } else { key.to_owned() };
                format!("('{id}', 'm-{id}', '{stream}', 'orders', '\"{payload}\"', '', {at}, 'default')")
            }
            Self::Governance => {
                format!("('{id}', 'e-{id}', {text}, 'orders', '{payload}', 'Pending', {at}, 'x')")
            }
            Self::Adr003 => format!("('{id}', 'orders', '{key}', 'Placed', '\"{payload}\"', {at})"),
            Self::Debezium => format!("('{id}', 'orders', '{key}', 'Placed', '\"{payload}\"')"),
        }
    }

    /// The words for pending, published, failed and dead.
    pub(crate) fn words(self) -> [&'static str; 4] {
        match self {
            Self::Framework => ["pending", "published", "failed", "abandoned"],
            Self::Governance => ["Pending", "Delivered", "RetryReady", "DeadLettered"],
            Self::Adr003 | Self::Debezium => ["PENDING", "PUBLISHED", "PENDING", "FAILED"],
        }
    }

    /// id, status, attempts, owner, error, stamp.
    fn columns(self) -> [&'static str; 6] {
        match self {
            Self::Framework => ["id", "status", "retry_count", "locked_by", "last_error", "id"],
            Self::Governance => {
                ["OutboxEntryId", "Status", "AttemptCount", "ClaimedBy", "LastError", "ConcurrencyStamp"]
            }
            Self::Adr003 => ["id", "status", "retry_count", "id", "id", "id"],
            Self::Debezium => panic!("it has no state of its own"),
        }
    }
}

impl Pool {
    pub(crate) async fn run(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        let done = match self {
            Self::Postgres(pool) => pool.execute(sqlx::raw_sql(sql)).await.map(drop),
            Self::Mysql(pool) => pool.execute(sqlx::raw_sql(sql)).await.map(drop),
            Self::Sqlite(pool) => pool.execute(sqlx::raw_sql(sql)).await.map(drop),
        };
        done.unwrap();
    }

    /// Rows of texts.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let sql = AssertSqlSafe(sql.to_owned());
        macro_rules! read {
            ($pool:expr) => {{
                let rows = sqlx::query(sql).fetch_all($pool).await.unwrap();
                rows.iter().map(|row| (0..row.len()).map(|index| row.get(index)).collect()).collect()
            }};
        }
        match self {
            Self::Postgres(pool) => read!(pool),
            Self::Mysql(pool) => read!(pool),
            Self::Sqlite(pool) => read!(pool),
        }
    }

    pub(crate) fn quote(&self, name: &str) -> String {
        if matches!(self, Self::Mysql(_)) { format!("`{name}`") } else { format!("\"{name}\"") }
    }

    fn text(&self, column: &str) -> String {
        let column = self.quote(column);
        match self {
            Self::Mysql(_) => format!("CAST({column} AS CHAR)"),
            _ => format!("CAST({column} AS TEXT)"),
        }
    }

    /// So many microseconds after a moment in the past.
    fn moment(&self, micros: usize) -> String {
        let at = format!(
            "2024-01-01 00:{:02}:{:02}.{:06}",
            micros / 60_000_000,
            micros / 1_000_000 % 60,
            micros % 1_000_000
        );
        format!("'{at}'")
    }
}

impl Host {
    /// A table of this kind, empty.
    pub(crate) async fn new(kind: Kind, place: Place) -> Self {
        let (pool, url, directory) = connect(place).await;
        Self { _directory: directory, ..Self::over(kind, pool, url).await }
    }

    /// A table of this kind in the database of this pool, whose address is `url`.
    pub(crate) async fn over(kind: Kind, pool: Pool, url: String) -> Self {
        let table = format!("host_{:012x}", fastrand::u64(..1 << 48));
        pool.run(&kind.ddl(&pool).replace("{table}", &table)).await;
        Self { kind, pool, url, table, _directory: None }
    }

    /// Adds rows: key and payload of each.
    pub(crate) async fn insert(&self, rows: &[(&str, &str)]) -> Vec<Uuid> {
        let ids: Vec<Uuid> = rows.iter().map(|_| Uuid::now_v7()).collect();
        for (batch, (some, ids)) in rows.chunks(1_000).zip(ids.chunks(1_000)).enumerate() {
            let tuples = some.iter().zip(ids).enumerate();
            let tuples: Vec<String> = tuples
                .map(|(number, ((key, payload), id))| {
                    let at = self.pool.moment(batch * 1_000 + number + 1);
                    self.kind.tuple(id, key, payload, &at)
                })
                .collect();
            let columns: Vec<String> =
                self.kind.inserted().iter().map(|column| self.pool.quote(column)).collect();
            let sql =
                format!("INSERT INTO {} ({}) VALUES {}", self.table, columns.join(", "), tuples.join(", "));
            self.pool.run(&sql).await;
        }
        ids
    }

    pub(crate) async fn fill(&self, count: usize) -> Vec<Uuid> {
        let texts: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
        self.insert(&texts.iter().map(|text| ("", text.as_str())).collect::<Vec<_>>()).await
    }

    /// The rows by their ids.
    pub(crate) async fn rows(&self) -> BTreeMap<Uuid, Seen> {
        let columns: Vec<String> = self.kind.columns().iter().map(|column| self.pool.text(column)).collect();
        let rows = self.pool.texts(&format!("SELECT {} FROM {}", columns.join(", "), self.table)).await;
        let seen = rows.into_iter().map(|mut row| {
            let seen = Seen {
                status: row[1].take().unwrap(),
                attempts: row[2].take().unwrap().parse().unwrap(),
                owner: row[3].take(),
                error: row[4].take(),
                stamp: row[5].take(),
            };
            (row[0].take().unwrap().parse().unwrap(), seen)
        });
        seen.collect()
    }

    pub(crate) async fn row(&self, id: Uuid) -> Seen {
        self.rows().await.remove(&id).expect("the row is there")
    }

    /// How many rows there are beside it.
    pub(crate) async fn rows_beside(&self) -> usize {
        self.pool.texts(&format!("SELECT 'x' FROM {}_sendoff", self.table)).await.len()
    }

    pub(crate) fn mapping(&self) -> Mapping {
        self.kind.mapping(&self.table)
    }

    /// Opens it, and does what the error says if it is refused.
    pub(crate) async fn adopt(&self) -> Adopted {
        self.adopt_as(self.mapping()).await
    }

    pub(crate) async fn adopt_as(&self, mapping: Mapping) -> Adopted {
        let (mut done, began) = (HashSet::new(), Instant::now());
        loop {
            let error = match self.try_adopt(mapping.clone()).await {
                Ok(adopted) => return adopted,
                Err(error) => error,
            };
            if done.insert(error.to_string()) {
                self.mend(&error).await;
                continue;
            }
            // PostgreSQL does not use an index before the transactions are over that could see the rows as they were.
            assert!(began.elapsed() < PATIENCE, "what the error says does not mend it: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn try_adopt(&self, mapping: Mapping) -> Result<Adopted, StoreError> {
        try_open(self.kind, &self.url, &self.table, mapping).await
    }

    /// Runs the statements that an error names.
    pub(crate) async fn mend(&self, error: &StoreError) {
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        let text = error.to_string();
        let statements: Vec<&str> = text.split("run: ").skip(1).collect();
        assert!(!statements.is_empty(), "it says what to do: {error}");
        for statement in statements {
            let statement = statement.split(". ").next().unwrap();
            // Beside other tests it would wait for all of their transactions.
            self.pool.run(&statement.replace(" CONCURRENTLY", "")).await;
        }
    }

    pub(crate) async fn worker(&self, lease: Duration) -> Box<dyn Engine> {
        start(&self.adopt().await, lease).await
    }
}

pub(crate) async fn start(adopted: &Adopted, lease: Duration) -> Box<dyn Engine> {
    adopted.start(WorkerConfig { lease, ..WorkerConfig::default() }).await.unwrap()
}

async fn connect(place: Place) -> (Pool, String, Option<tempfile::TempDir>) {
    match place {
        Place::Sqlite => {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("sqlite://{}", directory.path().join("host.db").display());
            // It makes the file, with its write-ahead log.
            SqliteDatabase::connect(&url).await.unwrap();
            let options = url
                .parse::<sqlx::sqlite::SqliteConnectOptions>()
                .unwrap()
                .busy_timeout(Duration::from_secs(20));
            (Pool::Sqlite(SqlitePool::connect_with(options).await.unwrap()), url, Some(directory))
        }
        Place::Server(Server::Mariadb) => {
            let url = Server::Mariadb.url();
            (Pool::Mysql(MySqlPool::connect(&url).await.unwrap()), url, None)
        }
        Place::Server(server) => {
            let url = server.url();
            (Pool::Postgres(PgPool::connect(&url).await.unwrap()), url, None)
        }
    }
}

async fn try_open(kind: Kind, url: &str, table: &str, mapping: Mapping) -> Result<Adopted, StoreError> {
    macro_rules! open {
        ($database:expr) => {
            match kind.beside(table) {
                Some(beside) => Adopted::beside(&$database, mapping, &beside).await,
                None => Adopted::open(&$database, mapping).await,
            }
        };
    }
    match url.split(':').next() {
        Some("mysql") => open!(MysqlDatabase::connect(url).await?),
        Some("sqlite") => open!(SqliteDatabase::connect(url).await?),
        _ => open!(PostgresDatabase::connect(url).await?),
    }
}

/// A table that is there, as a child process opens it.
pub(crate) async fn open(kind: &str, url: &str, table: &str) -> Adopted {
    let kinds = Kind::OWN.into_iter().chain(Kind::BESIDE);
    let kind = kinds.into_iter().find(|known| known.name() == kind).unwrap();
    try_open(kind, url, table, kind.mapping(table)).await.unwrap()
}
