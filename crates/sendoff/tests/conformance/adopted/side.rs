//! What is promised where claims are kept beside a host's table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::adopted::{Adopted, Answer, RowState, presets};
use sendoff::outbox::Outcome;
use sendoff::stores::postgres::PostgresDatabase;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use uuid::Uuid;

use super::cases::{LONG, PATIENCE, settle, some};
use super::host::{Host, Kind, Place, Pool, start};
use crate::servers::{self, Server};
use crate::trial;

pub(super) async fn every_row_is_delivered_and_what_is_beside_is_bounded(host: Host) {
    let ids = host.fill(300).await;
    // Short, so that it sweeps soon.
    let worker = host.worker(Duration::from_secs(1)).await;
    let mut seen = BTreeSet::new();
    while seen.len() < ids.len() {
        let claimed = some(&*worker, 70).await;
        for claimed in &claimed {
            assert!(seen.insert(claimed.event.event_id.0), "handed out twice");
            assert!(claimed.event.topic.contains("orders"));
            assert_eq!(claimed.event.attempts.total(), 0);
        }
        assert_eq!(settle(&*worker, &claimed, &Outcome::Published).await, (claimed.len(), 0, 0));
    }
    assert!(worker.claim(10).await.unwrap().is_empty());
    if host.kind == Kind::Adr003 {
        let rows = host.rows().await;
        assert!(rows.values().all(|row| row.status == "PUBLISHED" && row.attempts == 0));
        assert_eq!(host.rows_beside().await, 0, "what the host's table says is not said beside it");
        return;
    }
    assert_eq!(host.rows_beside().await, 300, "that they were delivered is known while they are there");
    host.pool.run(&format!("DELETE FROM {}", host.table)).await;
    let began = Instant::now();
    while host.rows_beside().await > 0 {
        assert!(began.elapsed() < PATIENCE, "what is beside follows the host's table");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn a_lost_lease_settles_nothing(host: Host) {
    host.fill(4).await;
    let adopted = host.adopt().await;
    let zombie = adopted.claim_batch("zombie", 4, Duration::from_millis(300)).await.unwrap();
    let keys: Vec<_> = zombie.rows.iter().map(|row| row.key.clone()).collect();
    assert_eq!(keys.len(), 4);
    let worker = start(&adopted, LONG).await;
    let mut claimed = Vec::new();
    while claimed.len() < 4 {
        claimed.extend(some(&*worker, 4).await);
    }
    for outcome in [
        Outcome::Published,
        Outcome::Release,
        Outcome::retry(Duration::ZERO, "the zombie says so"),
        Outcome::rejected("the zombie says so"),
    ] {
        let answers = adopted.settle_batch(&zombie, &keys, &outcome).await.unwrap();
        assert_eq!(answers, [Answer::Stale; 4], "{outcome:?}");
        assert_eq!(
            adopted.list(RowState::Processing, 10).await.unwrap().len(),
            4,
            "{outcome:?} changes nothing"
        );
    }
    assert_eq!(settle(&*worker, &claimed, &Outcome::Published).await, (4, 0, 0));
    let answers = adopted.settle_batch(&zombie, &keys, &Outcome::Published).await.unwrap();
    assert_eq!(answers, [Answer::Terminal; 4]);
    host.pool.run(&format!("DELETE FROM {}", host.table)).await;
    if host.kind == Kind::Adr003 {
        let answers = adopted.settle_batch(&zombie, &keys, &Outcome::Published).await.unwrap();
        assert_eq!(answers, [Answer::Missing; 4]);
    }
}

pub(super) async fn each_outcome_is_written(host: Host) {
    host.fill(4).await;
    let adopted = host.adopt().await;
    let worker = start(&adopted, LONG).await;
    let claimed = some(&*worker, 4).await;
    assert_eq!(claimed.len(), 4);
    let id = |index: usize| claimed[index].event.event_id.0;
    let (wait, began) = (Duration::from_millis(400), Instant::now());
    let outcomes = vec![
        (claimed[0].receipt(), Outcome::Published),
        (claimed[1].receipt(), Outcome::retry(wait, "not now")),
        (claimed[2].receipt(), Outcome::rejected("never")),
        (claimed[3].receipt(), Outcome::Release),
    ];
    assert_eq!(worker.settle(&outcomes).await.unwrap().applied, 4);
    if host.kind == Kind::Adr003 {
        let rows = host.rows().await;
        let state = |index: usize| (rows[&id(index)].status.as_str(), rows[&id(index)].attempts);
        assert_eq!(
            [state(0), state(1), state(2), state(3)],
            [("PUBLISHED", 0), ("PENDING", 0), ("FAILED", 1), ("PENDING", 0)]
        );
    } else {
        let listed = |state: RowState| {
            let adopted = &adopted;
            async move {
                let rows = adopted.list(state, 10).await.unwrap();
                rows.into_iter().map(|row| row.event.unwrap().event_id.0).collect::<Vec<_>>()
            }
        };
        assert_eq!(listed(RowState::Published).await, [id(0)]);
        assert_eq!(listed(RowState::Failed).await, [id(1)]);
        assert_eq!(listed(RowState::Dead).await, [id(2)]);
        assert_eq!(listed(RowState::Unprocessed).await, [id(3)]);
    }
    let again = some(&*worker, 4).await;
    assert_eq!(
        (again[0].event.event_id.0, again[0].event.attempts.total()),
        (id(3), 0),
        "what was given back comes at once"
    );
    let retried = some(&*worker, 4).await;
    assert_eq!((retried[0].event.event_id.0, retried[0].event.attempts.total()), (id(1), 1));
    assert!(began.elapsed() >= wait, "a retry waits");
}

pub(super) async fn attempts_run_out(host: Host) {
    host.fill(1).await;
    let adopted = host.adopt_as(host.mapping().attempts_max(3)).await;
    let worker = start(&adopted, LONG).await;
    for attempt in 0..3 {
        let claimed = some(&*worker, 1).await;
        assert_eq!(claimed[0].event.attempts.total(), attempt);
        settle(&*worker, &claimed, &Outcome::retry(Duration::ZERO, "no luck")).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(worker.claim(1).await.unwrap().is_empty());
    match host.kind {
        Kind::Adr003 => {
            let rows = host.rows().await;
            assert!(rows.values().all(|row| row.status == "FAILED" && row.attempts == 3), "{rows:?}");
        }
        _ => assert_eq!(adopted.list(RowState::Dead, 10).await.unwrap().len(), 1),
    }
}

pub(super) async fn a_row_that_the_host_takes_back_is_forgotten(host: Host) {
    let ids = host.fill(3).await;
    let adopted = host.adopt().await;
    let worker = start(&adopted, LONG).await;
    let claimed = some(&*worker, 1).await;
    settle(&*worker, &claimed, &Outcome::Release).await;
    host.pool.run(&format!("DELETE FROM {} WHERE id = '{}'", host.table, claimed[0].event.event_id)).await;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(some(&*worker, 10).await);
    }
    assert!(seen.iter().all(|one| ids.contains(&one.event.event_id.0)));
    assert!(seen.iter().all(|one| one.event.event_id != claimed[0].event.event_id), "it is not delivered");
    let began = Instant::now();
    while host.rows_beside().await > 2 {
        assert!(worker.claim(10).await.unwrap().is_empty());
        assert!(began.elapsed() < PATIENCE, "it is not kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn an_index_serves_each_claim_without_a_sort(host: Host) {
    // It is checked when it is opened, for the rows that there may be; refused without its index.
    drop(host.adopt().await);
    if matches!(host.pool, Pool::Mysql(_)) {
        // The places have an index of their own there, which gives them in their order too.
        return;
    }
    host.pool.run(&format!("DROP INDEX {}_sendoff_by_place", host.table)).await;
    let error = host.try_adopt(host.mapping()).await.unwrap_err().to_string();
    assert!(error.contains("run: CREATE INDEX"), "{error}");
}

/// A transaction that wrote before others and commits after they were delivered.
pub(super) async fn a_late_commit_is_delivered(host: Host) {
    let late = Uuid::now_v7();
    let tuple = host.kind.tuple(&late, "k", "late", "'2020-01-01 00:00:00'");
    let insert = format!("INSERT INTO {} ({}) VALUES {tuple}", host.table, host.kind.inserted().join(", "));
    let worker = host.worker(LONG).await;
    macro_rules! race {
        ($pool:expr) => {{
            let mut open = $pool.begin().await.unwrap();
            open.execute(AssertSqlSafe(insert)).await.unwrap();
            host.fill(5).await;
            let first = some(&*worker, 10).await;
            assert_eq!(settle(&*worker, &first, &Outcome::Published).await, (5, 0, 0));
            assert!(worker.claim(10).await.unwrap().is_empty(), "what is not committed is not delivered");
            open.commit().await.unwrap();
        }};
    }
    match &host.pool {
        // It has one writer at a time.
        Pool::Sqlite(_) => return,
        Pool::Postgres(pool) => race!(pool),
        Pool::Mysql(pool) => race!(pool),
    }
    let found = some(&*worker, 10).await;
    assert_eq!(found[0].event.event_id.0, late);
}

pub(super) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for server in [Server::Postgres15, Server::Postgres18] {
        let name =
            format!("{}::adopted::debezium::a_table_that_may_not_be_written_is_drained", server.name());
        trials.push(trial(name, Some(server), move || a_table_that_may_not_be_written_is_drained(server)));
    }
    trials
}

const WRITERS: usize = 8;

/// Transactions that commit in an order of their own: some are held open while others begin and end, a tenth is rolled back.
async fn write(pool: PgPool, table: String, number: usize, count: usize) -> Vec<Uuid> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut written = Vec::with_capacity(count);
    let mut open = Vec::new();
    while written.len() < count {
        let ids: Vec<Uuid> = (0..random.usize(1..=40)).map(|_| Uuid::new_v4()).collect();
        let tuples: Vec<String> = ids
            .iter()
            .map(|id| Kind::Debezium.tuple(id, &format!("k{}", random.usize(..500)), "x", ""))
            .collect();
        let columns = Kind::Debezium.inserted().join(", ");
        let mut transaction = pool.begin().await.unwrap();
        let sql = format!("INSERT INTO {table} ({columns}) VALUES {}", tuples.join(", "));
        transaction.execute(AssertSqlSafe(sql)).await.unwrap();
        if random.u8(..10) == 0 {
            transaction.rollback().await.unwrap();
            continue;
        }
        open.push(transaction);
        written.extend(ids);
        while open.len() > 3 || (!open.is_empty() && random.bool()) {
            open.swap_remove(random.usize(..open.len())).commit().await.unwrap();
        }
    }
    for transaction in open {
        transaction.commit().await.unwrap();
    }
    written
}

/// The table as a role has it that may read it and no more, with claims in a schema of its own.
async fn as_reader(host: &Host) -> (Adopted, String) {
    let (table, role) = (host.table.clone(), format!("reader_{:08x}", fastrand::u32(..)));
    host.pool
        .run(&format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT ON {table} TO {role}; CREATE SCHEMA {role} AUTHORIZATION {role}"
        ))
        .await;
    let url = host.url.replacen("sendoff@", &format!("{role}@"), 1);
    let reader = PgPool::connect(&url).await.unwrap();
    for refused in [format!("UPDATE {table} SET type = 'x'"), format!("DELETE FROM {table}")] {
        let error = reader.execute(AssertSqlSafe(refused)).await.unwrap_err().to_string();
        assert!(error.contains("permission denied"), "{error}");
    }
    let database = PostgresDatabase::connect(&url).await.unwrap();
    let (mapping, beside) = presets::debezium(&table, &format!("{role}.claims")).unwrap();
    Adopted::make_beside(&database, &mapping, &beside).await.unwrap();
    let adopted = Adopted::beside(&database, mapping, &beside).await.unwrap();
    (adopted, role)
}

async fn a_table_that_may_not_be_written_is_drained(server: Server) {
    let host = Host::new(Kind::Debezium, Place::Server(server)).await;
    let table = host.table.clone();
    let (adopted, role) = as_reader(&host).await;
    let total = if servers::is_full_run() { 100_000 } else { 10_000 };
    // Each writer has several transactions open.
    let pool = PgPoolOptions::new().max_connections(4 * WRITERS as u32 + 4).connect(&host.url).await.unwrap();
    let began = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| tokio::spawn(write(pool.clone(), table.clone(), number, total / WRITERS)))
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (adopted, done) = (adopted.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let worker = start(&adopted, LONG).await;
                let mut seen: HashMap<Uuid, usize> = HashMap::new();
                loop {
                    let is_last = done.load(Ordering::SeqCst);
                    let claimed = worker.claim(500).await.unwrap();
                    for one in &claimed {
                        *seen.entry(one.event.event_id.0).or_default() += 1;
                    }
                    let (applied, stale, missing) = settle(&*worker, &claimed, &Outcome::Published).await;
                    assert_eq!((applied, stale, missing), (claimed.len(), 0, 0));
                    if claimed.is_empty() {
                        if is_last {
                            return seen;
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            })
        })
        .collect();
    let mut expected = Vec::new();
    for writer in writers {
        expected.extend(writer.await.unwrap());
    }
    // All are committed: whoever finds nothing from now on, twice, has nothing left to find.
    let left = format!(
        "SELECT 'x' FROM {table} AS h WHERE NOT EXISTS (SELECT 1 FROM {role}.claims AS s WHERE s.id = h.id AND s.state = 1)"
    );
    while !host.pool.texts(&left).await.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(300), "not all was delivered");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    done.store(true, Ordering::SeqCst);
    let mut seen: HashMap<Uuid, usize> = HashMap::new();
    for worker in workers {
        for (id, times) in worker.await.unwrap() {
            *seen.entry(id).or_default() += times;
        }
    }
    assert!(seen.values().all(|times| *times == 1), "each once");
    assert_eq!(seen.len(), expected.len());
    assert!(expected.iter().all(|id| seen.contains_key(id)), "none is lost, late ones included");
    host.pool.run(&format!("DROP TABLE {table}; DROP SCHEMA {role} CASCADE; DROP ROLE {role}")).await;
}
