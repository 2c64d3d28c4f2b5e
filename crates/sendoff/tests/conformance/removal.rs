//! Claims that remove their rows, where the suite does not get: a row type that does not fit, and rows that others hold.

use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::claim::{ClaimSpec, Claimable, FromRecord, Record, Value, col};
use sendoff::stores::memory::MemoryDatabase;
use sendoff::testkit::{ClaimHarness, Shape};
use sendoff::{StoreError, StoreErrorKind};
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Executor as _, FromRow};

use crate::harness;
use crate::jobs::{ids, jobs};
use crate::servers::Server;
use crate::trial;

const POSTGRES: [Server; 2] = [Server::Postgres15, Server::Postgres18];

pub(crate) fn trials() -> Vec<Trial> {
    let unread = |store: &str| format!("{store}::removal::a_row_that_cannot_be_read_stays");
    let locked = |store: &str| format!("{store}::removal::a_locked_row_is_stepped_over");
    let mut trials = vec![
        trial(unread("memory"), None, unread_in_memory),
        trial(unread("sqlite"), None, unread_in_sqlite),
        trial(unread("mariadb"), Some(Server::Mariadb), unread_in_mariadb),
        trial(locked("mariadb"), Some(Server::Mariadb), locked_in_mariadb),
    ];
    for server in POSTGRES {
        trials.push(trial(unread(server.name()), Some(server), move || unread_in_postgres(server)));
        trials.push(trial(locked(server.name()), Some(server), move || locked_in_postgres(server)));
    }
    trials
}

fn remove(shape: &Shape, limit: u32) -> ClaimSpec {
    let spec = ClaimSpec::on_table(shape.table.clone()).eligible(col("status").eq("ready")).remove();
    spec.order_by("rank").limit(limit).build().unwrap()
}

/// The id of a job, unless it is 2.
struct Readable(i64);

impl Readable {
    fn of(record: &Record) -> Option<Self> {
        match record.get("id") {
            Some(Value::Int(2)) => None,
            Some(Value::Int(id)) => Some(Self(*id)),
            other => panic!("id is {other:?}"),
        }
    }
}

impl FromRecord for Readable {
    fn from_record(record: Record) -> Result<Self, StoreError> {
        Self::of(&record).ok_or_else(|| StoreError::new(StoreErrorKind::Corrupt, "read", "job", "it is two"))
    }
}

macro_rules! from_row {
    ($($row:ty,)*) => {$(
        impl<'r> FromRow<'r, $row> for Readable {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                Self::of(&Record::from_row(row)?).ok_or_else(|| sqlx::Error::Decode("it is two".into()))
            }
        }
    )*};
}

from_row!(PgRow, MySqlRow, SqliteRow,);

/// A removal that cannot hand over what it deletes has deleted nothing: neither that row nor those it took with it.
async fn unread<H: ClaimHarness, T: Claimable<Row = Readable>>(harness: &H, shape: &Shape, table: &T) {
    let spec = remove(shape, 3);
    let error = table.claim(&spec).await.err().expect("row 2 cannot be read");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert_eq!(ids(&harness.rows(shape).await), [1, 2, 3]);

    let found = table.find(&spec).await.unwrap();
    let error = table.claim_one(&spec, &found[1]).await.err().expect("row 2 cannot be read");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert_eq!(ids(&harness.rows(shape).await), [1, 2, 3], "on the floor");
    assert_eq!(table.claim_one(&spec, &found[2]).await.unwrap().map(|row| row.0), Some(3));
    let first = table.claim(&spec.with_limit(1)).await.unwrap();
    assert_eq!(first.iter().map(|row| row.0).collect::<Vec<_>>(), [1]);
    assert_eq!(ids(&harness.rows(shape).await), [2], "what can be read goes");
}

async fn unread_in_memory() {
    let (shape, database) = (Shape::jobs("jobs"), MemoryDatabase::new());
    let names: Vec<&str> = shape.columns.iter().map(|column| column.name.as_str()).collect();
    let table = database.create::<Readable>(shape.description(), &names).unwrap();
    let job = |id| names.iter().copied().zip(Shape::job(id, id)).collect::<Vec<_>>();
    table.insert(&[job(1), job(2), job(3)]).unwrap();
    let error = table.claim(&remove(&shape, 3)).await.err().expect("row 2 cannot be read");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert_eq!(ids(&table.rows()), [1, 2, 3]);
    let first = table.claim(&remove(&shape, 1)).await.unwrap();
    assert_eq!(first.iter().map(|row| row.0).collect::<Vec<_>>(), [1]);
    assert_eq!(ids(&table.rows()), [2, 3]);
}

async fn unread_in_sqlite() {
    let host = harness::sqlite::open().await;
    let (shape, _) = jobs(&host, 3).await;
    unread(&host, &shape, &host.database.table::<Readable>(shape.description()).await.unwrap()).await;
}

async fn unread_in_mariadb() {
    let host = harness::mysql::open(Server::Mariadb).await;
    let (shape, _) = jobs(&host, 3).await;
    unread(&host, &shape, &host.database.table::<Readable>(shape.description()).await.unwrap()).await;
}

async fn unread_in_postgres(server: Server) {
    let host = harness::postgres::open(server).await;
    let (shape, _) = jobs(&host, 3).await;
    unread(&host, &shape, &host.database.table::<Readable>(shape.description()).await.unwrap()).await;
}

/// Removes three of five while row 1 is held. The lock is held until the end: whoever waited for it would wait for ever.
async fn beside_a_lock<T: Claimable<Row = Record>>(shape: &Shape, table: &T) {
    let spec = remove(shape, 3);
    let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
    assert_eq!(ids(&claim.await.expect("not blocked").unwrap()), [2, 3, 4]);
}

/// So few rows that the server would rather read them all, and with them the one that is held.
async fn locked_in_mariadb() {
    let host = harness::mysql::open(Server::Mariadb).await;
    let (shape, table) = jobs(&host, 5).await;
    let mut transaction = host.host.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR UPDATE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    beside_a_lock(&shape, &table).await;
    transaction.rollback().await.unwrap();
    assert_eq!(ids(&table.claim(&remove(&shape, 3)).await.unwrap()), [1, 5]);
}

async fn locked_in_postgres(server: Server) {
    let host = harness::postgres::open(server).await;
    let (shape, table) = jobs(&host, 5).await;
    let mut transaction = host.host.begin().await.unwrap();
    // What a host holds on a row while it inserts another one that points at it.
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR KEY SHARE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    beside_a_lock(&shape, &table).await;
    transaction.rollback().await.unwrap();
    assert_eq!(ids(&table.claim(&remove(&shape, 3)).await.unwrap()), [1, 5]);
}
