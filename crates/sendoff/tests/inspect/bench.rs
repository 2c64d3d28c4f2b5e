//! One outbox, wherever it is kept, as an operator's test needs it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use sendoff::outbox::{
    Change, EventState, Explanation, Fetch, Flush, Inspect, KeyInfo, LANES, LaneFetch, LaneSet, ListQuery,
    Listed, Member, Place, Scope, Settled, Settlement, Store, Token, WorkerId,
};
use sendoff::stores::memory::MemoryOutbox;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Names, Outbox, SqlOutbox};
use sendoff::{EventId, NewEvent};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

pub(crate) enum Host {
    Memory(MemoryOutbox),
    Sqlite(sqlx::SqlitePool, Outbox),
    Postgres(sqlx::PgPool, Outbox),
    Mysql(sqlx::MySqlPool, Outbox),
}

/// An outbox with a host's connections to it.
pub(crate) struct Bench {
    pub(crate) host: Host,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inspect: Arc<dyn Inspect>,
    /// Its schema, or the prefix of its tables.
    name: String,
    /// Where a file of it is; gone with it.
    _directory: Option<tempfile::TempDir>,
}

/// The tables, in an order in which they can be dropped.
const TABLES: [&str; 8] = ["operation", "published", "dead", "parked", "worker", "lane", "event", "meta"];

impl Bench {
    pub(crate) fn memory() -> Self {
        let outbox = MemoryOutbox::new().unwrap().keep_published(true);
        let (store, inspect) = (Arc::new(outbox.clone()), Arc::new(outbox.clone()));
        Self { host: Host::Memory(outbox), store, inspect, name: String::new(), _directory: None }
    }

    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", directory.path().join("test.db").display());
        let database = SqliteDatabase::connect(&url).await.unwrap();
        let names = Names::prefix("t_").unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        let outbox = SqlOutbox::open_as(database, names.clone()).await.unwrap().keep_published(true);
        let host = Host::Sqlite(pool, Outbox::named(names));
        Self {
            host,
            store: Arc::new(outbox.clone()),
            inspect: Arc::new(outbox),
            name: "t_".to_owned(),
            _directory: Some(directory),
        }
    }

    pub(crate) async fn postgres(url: &str) -> Self {
        let database = PostgresDatabase::connect(url).await.unwrap();
        let name = format!("t_{:08x}", fastrand::u32(..));
        let names = Names::schema(&name).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let pool = sqlx::PgPool::connect(url).await.unwrap();
        let outbox = SqlOutbox::open_as(database, names.clone()).await.unwrap().keep_published(true);
        let host = Host::Postgres(pool, Outbox::named(names));
        Self { host, store: Arc::new(outbox.clone()), inspect: Arc::new(outbox), name, _directory: None }
    }

    pub(crate) async fn mysql(url: &str) -> Self {
        let database = MysqlDatabase::connect(url).await.unwrap();
        let name = format!("t{:08x}_", fastrand::u32(..));
        let names = Names::prefix(&name).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let pool = sqlx::MySqlPool::connect(url).await.unwrap();
        let outbox = SqlOutbox::open_as(database, names.clone()).await.unwrap().keep_published(true);
        let host = Host::Mysql(pool, Outbox::named(names));
        Self { host, store: Arc::new(outbox.clone()), inspect: Arc::new(outbox), name, _directory: None }
    }

    /// Drops what was made. How many operations had been written down, where that can be asked.
    pub(crate) async fn end(self) -> Option<i64> {
        let name = &self.name;
        match &self.host {
            Host::Memory(_) => None,
            Host::Sqlite(pool, _) => {
                let count = format!("SELECT COUNT(*) FROM {name}operation");
                Some(sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(pool).await.unwrap())
            }
            Host::Postgres(pool, _) => {
                let count = format!("SELECT COUNT(*) FROM {name}.operation");
                let count = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(pool).await.unwrap();
                let drop = format!("DROP SCHEMA {name} CASCADE");
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(pool).await.unwrap();
                Some(count)
            }
            Host::Mysql(pool, _) => {
                let count = format!("SELECT COUNT(*) FROM {name}operation");
                let count = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(pool).await.unwrap();
                for table in TABLES {
                    let drop = format!("DROP TABLE {name}{table}");
                    sqlx::raw_sql(AssertSqlSafe(drop)).execute(pool).await.unwrap();
                }
                Some(count)
            }
        }
    }

    /// Writes one event, in a transaction of its own. Events are known by their numbers.
    pub(crate) async fn enqueue(&self, number: u128, event: NewEvent) {
        let event = event.event_id(id(number));
        match &self.host {
            Host::Memory(outbox) => {
                let mut transaction = outbox.begin();
                transaction.enqueue(&[event]).unwrap();
                transaction.commit().unwrap();
            }
            Host::Sqlite(pool, outbox) => {
                let mut transaction = pool.begin().await.unwrap();
                outbox.enqueue(&mut transaction, event).await.unwrap();
                transaction.commit().await.unwrap();
            }
            Host::Postgres(pool, outbox) => {
                let mut transaction = pool.begin().await.unwrap();
                outbox.enqueue(&mut transaction, event).await.unwrap();
                transaction.commit().await.unwrap();
            }
            Host::Mysql(pool, outbox) => {
                let mut transaction = pool.begin().await.unwrap();
                outbox.enqueue(&mut transaction, event).await.unwrap();
                transaction.commit().await.unwrap();
            }
        }
    }

    /// Lets the outbox's time pass.
    pub(crate) async fn wait(&self, time: Duration) {
        match &self.host {
            Host::Memory(outbox) => outbox.advance(time),
            _ => tokio::time::sleep(time).await,
        }
    }

    /// A worker with all lanes of its target.
    pub(crate) async fn lease(&self, target: &str, lease: Duration) -> Leased {
        let member = Member {
            worker: WorkerId::generate(),
            name: format!("worker of {target}"),
            target: target.to_owned(),
            lease,
            scope: Scope::default(),
        };
        self.store.join(&member).await.unwrap();
        let lanes = self.store.take(&member, LaneSet::ALL, LANES).await.unwrap();
        assert_eq!(lanes.len(), usize::from(LANES));
        let tokens = lanes.into_iter().map(|lane| (lane.token.lane, lane.token)).collect();
        Leased { member, tokens }
    }

    /// Settles one event, wherever it is.
    pub(crate) async fn settle(&self, by: &Leased, number: u128, change: Change) -> Settled {
        let found = self.inspect.get(id(number)).await.unwrap().expect("the event is there");
        let event = found.event;
        let settlement = Settlement {
            lane: event.lane,
            position: event.position,
            place: if found.reason.is_some() { Place::Parked } else { Place::Hot(None) },
            key: event.key.map(Into::into),
            change,
        };
        let flush = Flush {
            target: event.target,
            tokens: vec![by.tokens[&event.lane]],
            settlements: vec![settlement],
            calm: Vec::new(),
        };
        let settled = self.store.settle(&flush).await.unwrap();
        assert!(settled.stale.is_empty(), "{settled:?}");
        settled
    }

    pub(crate) async fn list(&self, target: &str, state: EventState) -> Vec<Listed> {
        let query = ListQuery { target: target.to_owned(), state, after: 0, limit: 1_000 };
        self.inspect.list(&query).await.unwrap()
    }

    /// All that a worker would be given now: parked ones, then the others, each with how its key stands.
    pub(crate) async fn fetched(&self, target: &str) -> String {
        let lanes = (0..LANES).map(|lane| LaneFetch { lane, above: 0, limit: 1_000 }).collect();
        let want = Fetch { target: target.to_owned(), lanes, limit: 1_000, bytes_per_lane: 1_000_000 };
        let mut text = String::from("parked:");
        for row in self.store.fetch_parked(&want).await.unwrap().events {
            write!(text, " {} {:?};", number(row.event.event_id), row.reason.unwrap()).unwrap();
        }
        text.push_str(" hot:");
        let mut hot = self.store.fetch(&want).await.unwrap().events;
        hot.sort_by_key(|row| row.event.position);
        for row in hot {
            write!(text, " {} {:?};", number(row.event.event_id), row.hold).unwrap();
        }
        text
    }

    /// Everything that is known of a target, but for lanes, positions and moments.
    pub(crate) async fn picture(&self, target: &str) -> String {
        let mut text = String::new();
        let mut numbers = Vec::new();
        for state in EventState::ALL {
            for listed in self.list(target, state).await {
                assert_eq!(listed.state, state);
                numbers.push(number(listed.event.event_id));
                writeln!(text, "{}", show(&listed)).unwrap();
            }
        }
        for info in self.inspect.parked_keys(target, 1_000).await.unwrap() {
            writeln!(text, "{}", show_key(&info)).unwrap();
        }
        numbers.sort_unstable();
        for number in numbers {
            let why = self.inspect.explain(id(number)).await.unwrap();
            writeln!(text, "{number}: {}", show_why(&why)).unwrap();
        }
        let counts = self.inspect.counts().await.unwrap();
        for of in counts.targets.iter().filter(|counts| counts.target == target) {
            let numbers: Vec<u64> = EventState::ALL.iter().map(|state| of.of(*state)).collect();
            writeln!(text, "{numbers:?} old {} paused {}", of.oldest.is_some(), of.paused).unwrap();
        }
        text
    }
}

/// A worker and its lanes.
pub(crate) struct Leased {
    pub(crate) member: Member,
    pub(crate) tokens: BTreeMap<u16, Token>,
}

pub(crate) fn id(number: u128) -> EventId {
    EventId(Uuid::from_u128(number))
}

pub(crate) fn number(id: EventId) -> u128 {
    id.0.as_u128()
}

fn show(listed: &Listed) -> String {
    let event = &listed.event;
    format!(
        "{} {} {:?} key {:?} payload {:?} headers {:?} due {} failure {:?} attempts {:?} since {}",
        number(event.event_id),
        listed.state,
        listed.reason,
        event.key,
        String::from_utf8_lossy(&event.payload),
        event.headers,
        listed.due_at.is_some(),
        listed.failure,
        event.attempts,
        listed.since.is_some(),
    )
}

fn show_key(info: &KeyInfo) -> String {
    let KeyInfo { key, reason, due_at, behind, failure, .. } = info;
    format!("key {key:?} {reason:?} due {} behind {behind} failure {failure:?}", due_at.is_some())
}

pub(crate) fn show_why(why: &Explanation) -> String {
    match why {
        Explanation::Behind { event, .. } => format!("behind {}", number(*event)),
        Explanation::Published { .. } => "published".to_owned(),
        Explanation::Dead { failure, attempts, .. } => format!("dead {failure:?} {attempts:?}"),
        Explanation::NotDue { .. } => "not due".to_owned(),
        Explanation::Parked { until, failure, attempts } => {
            format!("parked {} {failure:?} {attempts:?}", until.is_some())
        }
        Explanation::Unleased { .. } => "unleased".to_owned(),
        // How many go first depends on which keys share a lane.
        Explanation::Leased { name, .. } => format!("leased by {name}"),
        Explanation::Abandoned { .. } => "abandoned".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Fails with the lines that differ, and nothing of the many that do not.
pub(crate) fn assert_same(expected: &str, seen: &str, context: impl FnOnce() -> String) {
    if expected == seen {
        return;
    }
    let only = |a: &str, b: &str| {
        let others: Vec<&str> = b.lines().collect();
        a.lines().filter(|line| !others.contains(line)).collect::<Vec<_>>().join("\n")
    };
    panic!("{}\nin memory:\n{}\nhere:\n{}", context(), only(expected, seen), only(seen, expected));
}
