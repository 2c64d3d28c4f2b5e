//! What only SQLite can be asked.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::StoreErrorKind;
use sendoff::claim::{
    ClaimSpec, Claimable as _, EpochUnit, Record, Table, Timestamp, Value, claim_portable, col, now, now_plus,
};
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::testkit::{ClaimHarness as _, Shape};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection, SqlitePool};

use crate::{harness, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! cases {
        ($($name:ident,)*) => {$(
            trials.push(trial(format!("sqlite::{}", stringify!($name)), None, $name));
        )*};
    }
    cases![
        the_claim_is_served_by_an_index,
        a_busy_writer_is_waited_for,
        a_writer_that_never_ends_is_contention,
        a_reader_does_not_hold_up_a_claim,
        times_as_text_seconds_and_milliseconds,
        a_key_that_may_be_null_is_looked_at,
        a_column_added_meanwhile_disturbs_nobody,
    ];
    trials
}

struct File {
    _directory: tempfile::TempDir,
    url: String,
    host: SqlitePool,
    database: SqliteDatabase,
}

async fn file() -> File {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("test.db").display());
    let database = SqliteDatabase::connect(&url).await.unwrap();
    let host = SqlitePool::connect(&url).await.unwrap();
    File { _directory: directory, url, host, database }
}

async fn jobs(file: &File, count: i64) -> Shape {
    let shape = Shape::jobs("lite");
    harness::sqlite::create(&file.host, &shape).await;
    let rows: Vec<Vec<Value>> = (1..=count).map(|id| Shape::job(id, id)).collect();
    harness::sqlite::fill(&file.host, &shape, &rows).await;
    shape
}

fn take(shape: &Shape) -> ClaimSpec {
    ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .order_by("rank")
        .build()
        .unwrap()
}

async fn the_claim_is_served_by_an_index() {
    let file = file().await;
    let shape = jobs(&file, 100_000).await;
    let table = file.database.table::<Record>(shape.description()).await.unwrap();
    let plan = table.explain(&take(&shape)).await.unwrap();
    assert!(plan.is_served_by_index(), "{}", plan.text);
    let unserved = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .order_by("attempts")
        .build()
        .unwrap();
    let plan = table.explain(&unserved).await.unwrap();
    assert!(plan.sorts, "an order that no index has must be seen to sort: {}", plan.text);
}

async fn a_busy_writer_is_waited_for() {
    let file = file().await;
    let shape = jobs(&file, 10).await;
    let table = file.database.table::<Record>(shape.description()).await.unwrap();
    let mut writer = SqliteConnection::connect(&file.url).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    let started = Instant::now();
    let held = Duration::from_millis(1_500);
    let spec = take(&shape);
    let (claimed, ()) = tokio::join!(table.claim(&spec), async {
        tokio::time::sleep(held).await;
        writer.execute("COMMIT").await.unwrap();
    });
    // Longer than the driver's own patience, so ours has been called upon.
    assert_eq!(claimed.unwrap().len(), 10);
    assert!(started.elapsed() >= held);
}

async fn a_writer_that_never_ends_is_contention() {
    let file = file().await;
    let shape = jobs(&file, 1).await;
    let impatient = file.database.clone().patience(Duration::from_millis(100));
    let table = impatient.table::<Record>(shape.description()).await.unwrap();
    let mut writer = SqliteConnection::connect(&file.url).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    for answer in [table.claim(&take(&shape)).await, claim_portable(&table, &take(&shape)).await] {
        let error = answer.expect_err("contended");
        assert_eq!(error.kind(), StoreErrorKind::Contended, "{error}");
    }
    writer.execute("ROLLBACK").await.unwrap();
    assert_eq!(table.claim(&take(&shape)).await.unwrap().len(), 1);
}

async fn a_reader_does_not_hold_up_a_claim() {
    let file = file().await;
    let shape = jobs(&file, 3).await;
    let table = file.database.table::<Record>(shape.description()).await.unwrap();
    let mut reader = SqliteConnection::connect(&file.url).await.unwrap();
    reader.execute("BEGIN").await.unwrap();
    reader.execute(AssertSqlSafe(format!("SELECT count(*) FROM {}", shape.table))).await.unwrap();
    assert_eq!(table.claim(&take(&shape)).await.unwrap().len(), 3);
}

/// SQLite has no type for a moment: each host has a custom of its own.
async fn times_as_text_seconds_and_milliseconds() {
    let file = file().await;
    let ddl =
        "CREATE TABLE leases (id INTEGER PRIMARY KEY, as_text DATETIME, s INTEGER, ms INTEGER, us INTEGER)";
    file.host.execute(ddl).await.unwrap();
    file.host.execute("INSERT INTO leases (id) VALUES (1)").await.unwrap();
    let description = Table::new("leases", ["id"])
        .unwrap()
        .epoch("s", EpochUnit::Seconds)
        .unwrap()
        .epoch("ms", EpochUnit::Millis)
        .unwrap();
    let table = file.database.table::<Record>(description).await.unwrap();
    let at = Timestamp::from_micros(1_700_000_000_123_456);
    let set = |value: Value, eligible| {
        ["as_text", "s", "ms", "us"]
            .into_iter()
            .fold(ClaimSpec::on("leases").eligible(eligible), |spec, column| spec.set(column, value.clone()))
            .build()
            .unwrap()
    };
    let row = table.claim(&set(at.into(), col("id").eq(1))).await.unwrap().pop().unwrap();
    assert_eq!(row.get("as_text"), Some(&Value::from("2023-11-14 22:13:20.123456")));
    assert_eq!(row.get("s"), Some(&Value::Int(1_700_000_000)));
    assert_eq!(row.get("ms"), Some(&Value::Int(1_700_000_000_123)));
    assert_eq!(row.get("us"), Some(&Value::Int(1_700_000_000_123_456)));

    let all = |make: fn(&str) -> sendoff::claim::Predicate| {
        sendoff::claim::Predicate::And(["as_text", "s", "ms", "us"].into_iter().map(make).collect())
    };
    let hour = Duration::from_secs(3_600);
    let expired = all(|column| col(column).lt(now()));
    let active = all(|column| col(column).gt(now_plus(Duration::from_secs(3_000))));
    let renew = set(now_plus(hour), expired.clone());
    assert_eq!(table.claim(&renew).await.unwrap().len(), 1, "all of them were over");
    assert!(table.claim(&renew).await.unwrap().is_empty(), "none of them is over now");
    assert_eq!(table.claim(&set(at.into(), active)).await.unwrap().len(), 1, "all of them end in an hour");
}

async fn a_key_that_may_be_null_is_looked_at() {
    let file = file().await;
    file.host.execute("CREATE TABLE loose (id TEXT PRIMARY KEY, n INTEGER)").await.unwrap();
    let open = || file.database.table::<Record>(Table::new("loose", ["id"]).unwrap());
    assert!(open().await.is_ok());
    file.host.execute("INSERT INTO loose VALUES (NULL, 1)").await.unwrap();
    let error = open().await.expect_err("refused").to_string();
    assert!(error.contains("is null in some row"), "{error}");
}

async fn a_column_added_meanwhile_disturbs_nobody() {
    let file = harness::sqlite::open().await;
    let shape = Shape::jobs("added");
    let table = file.create(&shape).await;
    file.insert(&shape, &[Shape::job(1, 1), Shape::job(2, 2)]).await;
    let spec = take(&shape).with_limit(1);
    assert_eq!(table.claim(&spec).await.unwrap().len(), 1);
    let ddl = format!("ALTER TABLE {} ADD COLUMN extra INTEGER DEFAULT 7", shape.table);
    file.host().execute(AssertSqlSafe(ddl)).await.unwrap();
    let claimed = table.claim(&spec).await.unwrap();
    assert_eq!(claimed[0].get("extra"), Some(&Value::Int(7)));
}
