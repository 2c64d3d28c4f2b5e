//! What only MariaDB can be asked.

use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::claim::{ClaimSpec, Claimable as _, Record, Table, Timestamp, Value, claim_portable, col, now};
use sendoff::stores::mysql::{MysqlDatabase, Topology};
use sendoff::testkit::{ClaimHarness as _, Shape};
use sendoff::{StoreError, StoreErrorKind};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Executor as _};
use uuid::Uuid;

use crate::harness::mysql::{Mysql, open};
use crate::jobs::{ids, jobs, take, take_by};
use crate::servers::Server;
use crate::trial;

/// Long for a loaded machine. Two of them are less than the 50 s after which InnoDB gives up waiting for a lock, so
/// that such an end is not taken for a deadlock.
const DEADLOCK_TIME_MAX: Duration = Duration::from_secs(20);

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! cases {
        ($($name:ident,)*) => {$(
            trials.push(trial(format!("mariadb::{}", stringify!($name)), Some(Server::Mariadb), $name));
        )*};
    }
    cases![
        a_locked_row_is_stepped_over,
        the_claim_is_served_by_an_index,
        a_second_claimer_is_not_blocked_by_the_first_ones_scan,
        a_lock_that_is_not_released_is_contention,
        deadlocks_never_surface,
        types_of_the_hosts_own,
        a_session_that_is_not_in_utc_is_refused,
        a_single_server_says_so,
    ];
    trials
}

async fn a_locked_row_is_stepped_over() {
    let host = open(Server::Mariadb).await;
    let (shape, table) = jobs(&host, 5).await;
    let mut transaction = host.host.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR UPDATE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    // The lock is held until the end: whoever waited for it would wait for ever.
    let spec = take(&shape, 3);
    let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
    assert_eq!(ids(&claim.await.expect("not blocked").unwrap()), [2, 3, 4]);
    transaction.rollback().await.unwrap();
    assert_eq!(ids(&table.claim(&take(&shape, 3)).await.unwrap()), [1, 5]);
}

async fn hundred_thousand(host: &Mysql) -> Shape {
    let shape = Shape::jobs("explain");
    host.create(&shape).await;
    let fill = format!(
        "INSERT INTO {} (id, status, `rank`, attempts) SELECT seq, IF(seq % 10 = 0, 'ready', 'done'), seq, 0 \
         FROM seq_1_to_100000",
        shape.table
    );
    host.host.execute(AssertSqlSafe(fill)).await.unwrap();
    host.host.execute(AssertSqlSafe(format!("ANALYZE TABLE {}", shape.table))).await.unwrap();
    shape
}

async fn the_claim_is_served_by_an_index() {
    let host = open(Server::Mariadb).await;
    let shape = hundred_thousand(&host).await;
    let table = host.database.table::<Record>(shape.description()).await.unwrap();
    let plan = table.explain(&take(&shape, 100)).await.unwrap();
    assert!(plan.is_served_by_index(), "{}", plan.text);
    let plan = table.explain(&take_by(&shape, "attempts", 100)).await.unwrap();
    assert!(plan.sorts, "an order that no index has must be seen to sort: {}", plan.text);
    assert_eq!(table.claim(&take(&shape, 5)).await.unwrap().len(), 5, "explaining claims nothing");
}

/// InnoDB locks what it scans. The first claimer is held in the middle of its transaction, with the same lock
/// statement as ours; on a small table too, where the optimizer would rather read everything.
async fn a_second_claimer_is_not_blocked_by_the_first_ones_scan() {
    let host = open(Server::Mariadb).await;
    for shape in [hundred_thousand(&host).await, jobs(&host, 30).await.0] {
        let index: String = sqlx::query_scalar(
            "SELECT INDEX_NAME FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_NAME <> 'PRIMARY' LIMIT 1",
        )
        .bind(shape.table.to_string())
        .fetch_one(&host.host)
        .await
        .unwrap();
        let mut first = host
            .host
            .begin_with("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION")
            .await
            .unwrap();
        let lock = format!(
            "SELECT id FROM {} AS t FORCE INDEX ({index}) WHERE t.status = 'ready' ORDER BY t.`rank` LIMIT 10 \
             FOR UPDATE SKIP LOCKED",
            shape.table
        );
        let held: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(lock)).fetch_all(&mut *first).await.unwrap();
        assert_eq!(held.len(), 10);
        let table = host.database.table::<Record>(shape.description()).await.unwrap();
        let spec = take(&shape, 10);
        let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
        let claimed = ids(&claim.await.expect("not blocked").unwrap());
        assert_eq!(claimed.len(), 10, "the first one's scan has locked more than its ten rows");
        assert!(claimed.iter().all(|id| !held.contains(id)));
        first.rollback().await.unwrap();
    }
}

/// The floor waits for a locked row: a bounded time, then it says so and has changed nothing.
async fn a_lock_that_is_not_released_is_contention() {
    let host = open(Server::Mariadb).await;
    let (shape, _) = jobs(&host, 1).await;
    let options: MySqlConnectOptions = Server::Mariadb.url().parse().unwrap();
    let pool = MySqlPoolOptions::new()
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("SET innodb_lock_wait_timeout = 1").await.map(drop) })
        })
        .connect_with(options)
        .await
        .unwrap();
    let database = MysqlDatabase::from_pool(pool).await.unwrap().patience(Duration::from_millis(1_500));
    let table = database.table::<Record>(shape.description()).await.unwrap();
    let mut transaction = host.host.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR UPDATE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    let error = claim_portable(&table, &take(&shape, 1)).await.expect_err("contended");
    assert_eq!(error.kind(), StoreErrorKind::Contended, "{error}");
    assert!(error.to_string().contains("gave up after"), "{error}");
    transaction.rollback().await.unwrap();
    assert_eq!(table.claim(&take(&shape, 1)).await.unwrap().len(), 1);
}

/// InnoDB ends a deadlock by rolling back the claim: it is tried again, and nobody hears of it. That the claim was the
/// one rolled back is shown by the same race without patience, where it has to say so.
async fn deadlocks_never_surface() {
    let host = open(Server::Mariadb).await;
    let (claim, left) = deadlocked(&host, Duration::ZERO).await;
    let error = claim.expect_err("there was no time to try again");
    assert_eq!(error.kind(), StoreErrorKind::Contended, "{error:?}");
    assert!(format!("{error:?}").contains("1213 (40001)"), "not the victim of a deadlock: {error:?}");
    assert_eq!(left, [1, 2], "a claim that was rolled back has taken nothing");

    let (claim, left) = deadlocked(&host, Duration::from_secs(60)).await;
    let claimed = ids(&claim.expect("a deadlock is tried again"));
    assert_eq!(claimed, [2], "job 1 was the rival's by then, and is stepped over");
    assert_eq!(left, [1], "the mark on job 1 went with the deadlock");
}

/// Claims one of two jobs, and has it deadlock with a rival over the first. Answers what came of the claim while the
/// rival was still there, and which jobs can be claimed once it is gone.
async fn deadlocked(host: &Mysql, patience: Duration) -> (Result<Vec<Record>, StoreError>, Vec<i64>) {
    let (shape, _) = jobs(host, 2).await;
    let gate = gate_behind(host, &shape).await;
    let table = host.database.clone().patience(patience).table::<Record>(shape.description()).await.unwrap();
    let before = deadlocks(host).await;

    let mut rival = host.host.begin().await.unwrap();
    let hold = format!("UPDATE {gate} SET passed = passed + 1 WHERE job = 1");
    rival.execute(AssertSqlSafe(hold)).await.unwrap();
    // The victim is whoever has changed less.
    let outweigh = format!("INSERT INTO {gate} SELECT -seq, 0 FROM seq_1_to_100");
    rival.execute(AssertSqlSafe(outweigh)).await.unwrap();

    let (claimer, one) = (table.clone(), take(&shape, 1));
    let mut claim = tokio::spawn(async move { claimer.claim(&one).await });
    tokio::select! {
        () = until_waited_for(host, &gate) => {}
        ended = &mut claim => panic!("the claim has passed a gate that is held: {ended:?}"),
        () = tokio::time::sleep(DEADLOCK_TIME_MAX) => panic!("the claim does not wait for its gate"),
    }

    // The claim holds job 1 and cannot commit: only its rollback lets the rival have it.
    let close = format!("UPDATE {} SET attempts = attempts + 1 WHERE id = 1", shape.table);
    let closing = tokio::time::timeout(DEADLOCK_TIME_MAX, rival.execute(AssertSqlSafe(close)));
    closing.await.expect("no deadlock was detected").expect("the rival must not be the victim");
    assert!(deadlocks(host).await > before, "the server counts no deadlock");

    let claimed = tokio::time::timeout(DEADLOCK_TIME_MAX, claim).await.expect("still claiming").unwrap();
    rival.rollback().await.unwrap();
    let left = ids(&table.claim(&take(&shape, 2)).await.unwrap());
    (claimed, left)
}

/// A table with a row for each job, which every change of the job must change too.
async fn gate_behind(host: &Mysql, shape: &Shape) -> String {
    let (jobs, gate) = (&shape.table, format!("{}_gate", shape.table));
    for statement in [
        format!("CREATE TABLE {gate} (job bigint PRIMARY KEY, passed bigint NOT NULL)"),
        format!("INSERT INTO {gate} SELECT id, 0 FROM {jobs}"),
        // AFTER: the claim has marked its job when it comes to the gate.
        format!(
            "CREATE TRIGGER {gate}_trigger AFTER UPDATE ON {jobs} FOR EACH ROW \
             UPDATE {gate} SET passed = passed + 1 WHERE job = NEW.id"
        ),
    ] {
        host.host.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    gate
}

/// Returns when a session waits for a row of this table. Asks the monitor: the lock tables of `information_schema` are
/// filled anew only after 100 ms in which nobody read them, so that whoever polls faster, or beside others, never sees
/// a change. The monitor shows the last deadlock too, so the table must not have had one.
async fn until_waited_for(host: &Mysql, table: &str) {
    let lock = format!("`{table}` trx id ");
    loop {
        let (_, _, monitor): (String, String, String) =
            sqlx::query_as("SHOW ENGINE INNODB STATUS").fetch_one(&host.host).await.unwrap();
        if monitor.lines().any(|line| line.contains(&lock) && line.ends_with(" waiting")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Deadlocks that the server has ended since it started.
async fn deadlocks(host: &Mysql) -> i64 {
    let sql = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS \
               WHERE VARIABLE_NAME = 'INNODB_DEADLOCKS'";
    sqlx::query_scalar(sql).fetch_one(&host.host).await.unwrap()
}

/// An enum, MariaDB's uuid, an unsigned number, a timestamp.
async fn types_of_the_hosts_own() {
    let host = open(Server::Mariadb).await;
    let name = Shape::new("types").table.to_string();
    let ddl = format!(
        "CREATE TABLE {name} (id uuid PRIMARY KEY, state enum('ready', 'running') NOT NULL, big bigint unsigned, \
         seen timestamp(6) NULL, text_id char(36), price decimal(10, 2))"
    );
    host.host.execute(AssertSqlSafe(ddl)).await.unwrap();
    let (id, other) = (Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001), Uuid::from_u128(7));
    let fill = format!(
        "INSERT INTO {name} VALUES ('{id}', 'ready', 5, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, '{other}', 1.5)"
    );
    host.host.execute(AssertSqlSafe(fill)).await.unwrap();
    let table = host.database.table::<Record>(Table::new(&name, ["id"]).unwrap()).await.unwrap();
    let at = Timestamp::from_micros(1_700_000_000_000_001);
    let spec = |from: &str, to: &str| {
        ClaimSpec::on(&name)
            .eligible(
                col("state")
                    .eq(from)
                    .and(col("id").eq(id))
                    .and(col("text_id").eq(other))
                    .and(col("big").ge(5).and(col("seen").lt(now())).and(col("price").lt(2))),
            )
            .set("state", to)
            .set("seen", at)
            .add("big", 1)
            .build()
            .unwrap()
    };
    let claimed = table.claim(&spec("ready", "running")).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].get("big"), Some(&Value::Int(6)));
    assert_eq!(claimed[0].get("seen"), Some(&Value::Timestamp(at)));
    assert_eq!(claim_portable(&table, &spec("running", "ready")).await.unwrap().len(), 1);
}

async fn a_session_that_is_not_in_utc_is_refused() {
    let options: MySqlConnectOptions = Server::Mariadb.url().parse().unwrap();
    let pool = MySqlPoolOptions::new().connect_with(options.timezone("+12:45".to_owned())).await.unwrap();
    let error = MysqlDatabase::from_pool(pool).await.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("time_zone='+00:00'"), "{error}");
}

async fn a_single_server_says_so() {
    let host = open(Server::Mariadb).await;
    assert_eq!(host.database.server().topology(), &Topology::Single);
    assert!(host.database.server().version().contains("MariaDB"));
    assert_eq!(host.database.server().topology().warning(), None);
    // What a developer prints while looking for something else.
    let (_, table) = jobs(&host, 1).await;
    let shown = format!("{:?} {table:?}", host.database);
    assert!(!shown.contains("sendoff-test"), "a password is shown: {shown}");
}
