//! What only SQLite can be asked.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::StoreErrorKind;
use sendoff::claim::{
    ClaimSpec, Claimable as _, EpochUnit, Record, Table, Timestamp, Value, claim_portable, col, now, now_plus,
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};

use crate::jobs::{jobs, take, take_by};
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

async fn the_claim_is_served_by_an_index() {
    let file = harness::sqlite::open().await;
    let (shape, table) = jobs(&file, 100_000).await;
    let plan = table.explain(&take(&shape, 100)).await.unwrap();
    assert!(plan.is_served_by_index(), "{}", plan.text);
    let plan = table.explain(&take_by(&shape, "attempts", 100)).await.unwrap();
    assert!(plan.sorts, "an order that no index has must be seen to sort: {}", plan.text);
}

async fn a_busy_writer_is_waited_for() {
    let file = harness::sqlite::open().await;
    let (shape, table) = jobs(&file, 10).await;
    let mut writer = SqliteConnection::connect(&file.url).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    let started = Instant::now();
    let held = Duration::from_millis(1_500);
    let spec = take(&shape, 100);
    let (claimed, ()) = tokio::join!(table.claim(&spec), async {
        tokio::time::sleep(held).await;
        writer.execute("COMMIT").await.unwrap();
    });
    // Longer than the driver's own patience, so ours has been called upon.
    assert_eq!(claimed.unwrap().len(), 10);
    assert!(started.elapsed() >= held);
}

async fn a_writer_that_never_ends_is_contention() {
    let file = harness::sqlite::open().await;
    let (shape, _) = jobs(&file, 1).await;
    let impatient = file.database.clone().patience(Duration::from_millis(100));
    let table = impatient.table::<Record>(shape.description()).await.unwrap();
    let mut writer = SqliteConnection::connect(&file.url).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    for answer in [table.claim(&take(&shape, 100)).await, claim_portable(&table, &take(&shape, 100)).await] {
        let error = answer.expect_err("contended");
        assert_eq!(error.kind(), StoreErrorKind::Contended, "{error}");
    }
    writer.execute("ROLLBACK").await.unwrap();
    assert_eq!(table.claim(&take(&shape, 100)).await.unwrap().len(), 1);
}

async fn a_reader_does_not_hold_up_a_claim() {
    let file = harness::sqlite::open().await;
    let (shape, table) = jobs(&file, 3).await;
    let mut reader = SqliteConnection::connect(&file.url).await.unwrap();
    reader.execute("BEGIN").await.unwrap();
    reader.execute(AssertSqlSafe(format!("SELECT count(*) FROM {}", shape.table))).await.unwrap();
    assert_eq!(table.claim(&take(&shape, 100)).await.unwrap().len(), 3);
}

/// SQLite has no type for a moment: each host has a custom of its own.
async fn times_as_text_seconds_and_milliseconds() {
    let file = harness::sqlite::open().await;
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
    let file = harness::sqlite::open().await;
    file.host.execute("CREATE TABLE loose (id TEXT PRIMARY KEY, n INTEGER)").await.unwrap();
    let open = || file.database.table::<Record>(Table::new("loose", ["id"]).unwrap());
    assert!(open().await.is_ok());
    file.host.execute("INSERT INTO loose VALUES (NULL, 1)").await.unwrap();
    let error = open().await.expect_err("refused").to_string();
    assert!(error.contains("is null in some row"), "{error}");
}

async fn a_column_added_meanwhile_disturbs_nobody() {
    let file = harness::sqlite::open().await;
    let (shape, table) = jobs(&file, 2).await;
    let spec = take(&shape, 1);
    assert_eq!(table.claim(&spec).await.unwrap().len(), 1);
    let ddl = format!("ALTER TABLE {} ADD COLUMN extra INTEGER DEFAULT 7", shape.table);
    file.host.execute(AssertSqlSafe(ddl)).await.unwrap();
    let claimed = table.claim(&spec).await.unwrap();
    assert_eq!(claimed[0].get("id"), Some(&Value::Int(2)));
    assert_eq!(claimed[0].get("extra"), None, "the columns are those the table had when it was opened");
}
