//! How claims and completions are run when there is much: no sort, nothing read that is not due, and no more than is completed.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Names, SqlTasks};
use sendoff::tasks::{Claim, NewTask, Settled, TaskToken};
use sendoff::testkit::TaskHarness as _;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::harness::outbox::Path;
use crate::harness::tasks::{mysql, postgres, sqlite};
use crate::servers::Server;
use crate::trial;

/// So many entries are due, and as many with a higher priority are not.
const ENTRIES: usize = 100_000;

pub(super) fn trials() -> Vec<Trial> {
    let name = |store: &str| format!("{store}::tasks::a_claim_neither_sorts_nor_reads_what_is_not_due");
    let mut trials = vec![
        trial(name("sqlite"), None, on_sqlite),
        trial(name("mariadb"), Some(Server::Mariadb), on_mariadb),
    ];
    for server in [Server::Postgres15, Server::Postgres18] {
        trials.push(trial(name(server.name()), Some(server), move || on_postgres(server)));
        let name = |case: &str| format!("{}::tasks::{case}", server.name());
        trials.push(trial(name("a_completion_reads_no_more_than_it_completes"), Some(server), move || {
            completion(server)
        }));
        trials.push(trial(name("a_completion_waits_for_whoever_has_its_task"), Some(server), move || {
            completion_waits(server)
        }));
    }
    trials
}

fn claim(kinds: &[&str]) -> Claim {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    Claim { worker: sendoff::tasks::WorkerId::generate(), kinds, limit: 100 }
}

async fn on_postgres(server: Server) {
    let harness = postgres(server, Path::Fast).await;
    let entry = harness.table("task_entry");
    let fill = format!(
        "INSERT INTO {entry} (task, kind, waiting, turn, due_at) \
         SELECT gen_random_uuid(), 'k' || i % 5, i % 2, -(i % 7), now() + CASE i % 2 WHEN 1 THEN interval '1 day' ELSE interval '0' END \
         FROM generate_series(1, {}) AS i; ANALYZE {entry}",
        ENTRIES * 2
    );
    harness.host.execute(sqlx::raw_sql(AssertSqlSafe(fill))).await.unwrap();
    let database = PostgresDatabase::connect(&harness.url).await.unwrap();
    let names = Names::schema(&harness.names).unwrap();
    let store = SqlTasks::open_as(database, names).await.unwrap();
    for kinds in [&["k0"][..], &["k0", "k1", "k2"]] {
        let text = store.explain(&claim(kinds)).await.unwrap().text;
        println!("{text}");
        let entries: Vec<&str> = text.lines().filter(|line| line.contains(" on task_entry e")).collect();
        assert!(
            entries.iter().any(|line| line.contains("using task_entry_by_turn on task_entry e")),
            "{text}"
        );
        assert!(!entries.iter().any(|line| line.contains("Seq Scan")), "{text}");
        assert!(!text.contains("task_by_status"), "tasks are found by their ids: {text}");
        // Every look at the backlog ends at its limit. What is put in order are the first hundred of each of several kinds.
        let lines: Vec<&str> = text.lines().map(|line| line.trim_start_matches([' ', '-', '>'])).collect();
        for (number, line) in lines.iter().enumerate() {
            let above = &lines[number.saturating_sub(2)..number];
            let is_bounded = !line.contains("using task_entry_by_turn")
                || above.iter().any(|line| line.starts_with("Limit"));
            assert!(is_bounded, "{line}: {text}");
        }
        assert!(kinds.len() > 1 || !text.contains("Sort"), "{text}");
    }
    quick(&harness, &harness.table("task_entry")).await;
}

/// Claims find what little is due behind a hundred thousand that is not, and quickly.
async fn quick(harness: &crate::harness::tasks::Sql<sqlx::Postgres>, entry: &str) {
    harness.host.execute(AssertSqlSafe(format!("DELETE FROM {entry} WHERE waiting = 0"))).await.unwrap();
    harness.submit_all((0..200).map(|_| NewTask::new("k0").priority(-9))).await;
    let member = sendoff::tasks::Member {
        worker: sendoff::tasks::WorkerId::generate(),
        name: "quick".to_owned(),
        kinds: vec!["k0".to_owned()],
        lease: Duration::from_secs(600),
    };
    harness.store().join(&member).await.unwrap();
    let began = Instant::now();
    let mut taken = 0;
    for _ in 0..20 {
        let claim = Claim { worker: member.worker, kinds: member.kinds.clone(), limit: 10 };
        taken += harness.store().claim(&claim).await.unwrap().len();
    }
    assert_eq!(taken, 200, "what is due is found behind what is not");
    println!("20 claims behind {ENTRIES} entries for later took {:?}", began.elapsed());
}

/// A worker that has claimed tasks of kind `k`.
async fn claimed(harness: &crate::harness::tasks::Sql<sqlx::Postgres>, limit: u32) -> Vec<TaskToken> {
    let member = sendoff::tasks::Member {
        worker: sendoff::tasks::WorkerId::generate(),
        name: "claims".to_owned(),
        kinds: vec!["k".to_owned()],
        lease: Duration::from_secs(600),
    };
    harness.store().join(&member).await.unwrap();
    let claim = Claim { worker: member.worker, kinds: member.kinds, limit };
    let tasks = harness.store().claim(&claim).await.unwrap();
    assert_eq!(tasks.len(), limit as usize);
    tasks.iter().filter_map(sendoff::tasks::Task::token).collect()
}

/// The statistics know of no running task: a plan by them would read the whole table, and compare all that runs with all that is completed.
async fn completion(server: Server) {
    let harness = postgres(server, Path::Fast).await;
    let task = harness.table("task");
    // It is not to be looked at again while the test runs.
    let alone = format!("ALTER TABLE {task} SET (autovacuum_enabled = false)");
    harness.host.execute(AssertSqlSafe(alone)).await.unwrap();
    for _ in 0..20 {
        harness.submit_all((0..1_000).map(|_| NewTask::new("k"))).await;
    }
    harness.host.execute(AssertSqlSafe(format!("ANALYZE {task}"))).await.unwrap();
    let tokens = claimed(&harness, 1_000).await;
    let database = PostgresDatabase::connect(&harness.url).await.unwrap();
    let names = Names::schema(&harness.names).unwrap();
    let store = SqlTasks::open_as(database, names).await.unwrap();
    for tokens in [&tokens[..1], &tokens[..100], &tokens] {
        let text = store.explain_completion(tokens).await.unwrap().text;
        println!("{text}");
        let tasks: Vec<&str> = text.lines().filter(|line| line.contains(" on task t")).collect();
        assert!(tasks.iter().any(|line| line.contains("using task_pkey on task t")), "{text}");
        assert!(!text.contains("Seq Scan on task"), "{text}");
        assert!(!text.contains("task_by_status"), "tasks are found by their ids: {text}");
        assert!(!text.contains("Nested Loop"), "no task is compared with every token: {text}");
        assert!(text.contains("hashed SubPlan"), "tokens are looked up: {text}");
    }
    let began = Instant::now();
    let settled = harness.store().complete(&tokens).await.unwrap();
    println!("{} tasks were completed in {:?}", tokens.len(), began.elapsed());
    assert!(settled.iter().all(|settled| *settled == Settled::Applied), "{settled:?}");
}

/// What has changed since the statement began is judged as it is then: a note of its progress takes nothing away, another's claim does.
async fn completion_waits(server: Server) {
    let harness = postgres(server, Path::Fast).await;
    let task = harness.table("task");
    harness.submit_all((0..3).map(|_| NewTask::new("k"))).await;
    let tokens = claimed(&harness, 3).await;
    let mut other = harness.host.begin().await.unwrap();
    for (token, change) in tokens.iter().zip(["progress = 'half'", "attempt = attempt + 1"]) {
        let update = format!("UPDATE {task} SET {change} WHERE id = $1");
        sqlx::query(AssertSqlSafe(update)).bind(token.task.0).execute(&mut *other).await.unwrap();
    }
    let other_id: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *other).await.unwrap();
    let store = harness.store();
    let asked = tokens.clone();
    let completing = tokio::spawn(async move { store.complete(&asked).await });
    let began = Instant::now();
    let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))";
    while !sqlx::query_scalar::<_, bool>(waits).bind(other_id).fetch_one(&harness.host).await.unwrap() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    other.commit().await.unwrap();
    let settled = completing.await.unwrap().unwrap();
    assert_eq!(settled, [Settled::Applied, Settled::Stale, Settled::Applied]);
}

async fn on_mariadb() {
    let harness = mysql(Server::Mariadb).await;
    let entry = harness.table("task_entry");
    let fill = format!(
        "INSERT INTO {entry} (task, kind, waiting, turn, due_at) \
         SELECT UNHEX(MD5(seq)), CONCAT('k', seq % 5), seq % 2, -(seq % 7), UTC_TIMESTAMP(6) + INTERVAL (seq % 2) DAY \
         FROM seq_1_to_{}",
        ENTRIES * 2
    );
    harness.host.execute(AssertSqlSafe(fill)).await.unwrap();
    let database = MysqlDatabase::connect(&harness.url).await.unwrap();
    let names = Names::prefix(&harness.names).unwrap();
    let plan = SqlTasks::open_as(database, names).await.unwrap().explain(&claim(&["k0"])).await.unwrap();
    assert_eq!(plan.index.as_deref(), Some("by_turn"), "{}", plan.text);
    assert!(plan.is_served_by_index(), "{}", plan.text);
}

async fn on_sqlite() {
    let harness = sqlite().await;
    let entry = harness.table("task_entry");
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         INSERT INTO {entry} (task, kind, waiting, turn, due_at) \
         SELECT lower(hex(randomblob(16))), 'k' || i % 5, i % 2, -(i % 7), i FROM n",
        ENTRIES * 2
    );
    harness.host.execute(AssertSqlSafe(fill)).await.unwrap();
    let database = SqliteDatabase::connect(&harness.url).await.unwrap();
    let names = Names::prefix(&harness.names).unwrap();
    let plan = SqlTasks::open_as(database, names).await.unwrap().explain(&claim(&["k0"])).await.unwrap();
    assert!(plan.index.as_deref().is_some_and(|index| index.contains("by_turn")), "{}", plan.text);
    assert!(plan.is_served_by_index(), "{}", plan.text);
}
