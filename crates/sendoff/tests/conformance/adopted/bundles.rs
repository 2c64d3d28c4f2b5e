//! Claims of many rows as one row beside the table: PostgreSQL, where the host's row says in the end what became of it.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::adopted::{Adopted, Answer};
use sendoff::outbox::Outcome;
use sendoff::stores::postgres::{Pooler, PostgresDatabase};
use sqlx::Row as _;

use super::cases::{LONG, PATIENCE, settle, some};
use super::host::{Host, Kind, Place, Pool, open, start};
use crate::servers::Server;
use crate::trial;

macro_rules! trials {
    ($($case:ident,)*) => {{
        let mut trials = Vec::new();
        for server in [Server::Postgres15, Server::Postgres18] {
            $(let name = format!("{}::adopted::bundles::{}", server.name(), stringify!($case));
            let run = move || async move { $case(Host::new(Kind::Adr003, Place::Server(server)).await).await };
            trials.push(trial(name, Some(server), run));)*
        }
        trials
    }};
}

pub(super) fn trials() -> Vec<Trial> {
    trials!(
        many_rows_are_one_row_beside_the_table,
        a_receipt_that_is_given_twice_settles_no_other_row,
        a_claim_whose_rows_cannot_be_read_is_given_back,
        behind_a_pooler_it_is_the_same,
        what_a_lost_worker_had_is_counted_for_each_row,
        hostile_values_are_written_out_as_they_are,
        the_host_may_write_its_rows_while_they_are_claimed,
        an_index_serves_the_claim_and_no_claim_reads_the_whole_table,
        a_missing_table_of_bundles_is_refused_with_the_statement_that_makes_it,
    )
}

/// How many rows each bundle has.
async fn bundles(host: &Host) -> Vec<usize> {
    let sizes =
        format!("SELECT cardinality(ids)::text FROM {}_sendoff_bundle ORDER BY lease_until", host.table);
    let sizes = host.pool.texts(&sizes).await;
    sizes.into_iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect()
}

async fn many_rows_are_one_row_beside_the_table(host: Host) {
    host.fill(150).await;
    let worker = host.worker(LONG).await;
    let claimed = some(&*worker, 100).await;
    let more = some(&*worker, 100).await;
    assert_eq!((claimed.len(), more.len()), (100, 50));
    assert_eq!((bundles(&host).await, host.rows_beside().await), (vec![100, 50], 0));

    // Parts of it, across two bundles, in an order of their own.
    let mut part: Vec<_> = claimed[..60].iter().chain(&more[..20]).cloned().collect();
    part.reverse();
    assert_eq!(settle(&*worker, &part, &Outcome::Published).await, (80, 0, 0));
    assert_eq!((bundles(&host).await, host.rows_beside().await), (vec![40, 30], 0));
    assert_eq!(settle(&*worker, &part, &Outcome::Published).await.0, 0, "they have left");

    let retry = Outcome::retry(Duration::from_secs(600), "not now");
    assert_eq!(settle(&*worker, &claimed[60..63], &retry).await, (3, 0, 0));
    assert_eq!((bundles(&host).await, host.rows_beside().await), (vec![37, 30], 3));
    assert_eq!(settle(&*worker, &claimed[63..], &Outcome::Published).await, (37, 0, 0));
    assert_eq!(settle(&*worker, &more[20..], &Outcome::Published).await, (30, 0, 0));
    assert_eq!((bundles(&host).await, host.rows_beside().await), (vec![], 3), "an empty bundle is not kept");
    let published = host.rows().await.values().filter(|row| row.status == "PUBLISHED").count();
    assert_eq!(published, 147);
    worker.stop(Duration::ZERO).await.unwrap();
}

/// A bundle that is settled whole is settled without naming its rows: as many receipts as it has rows are not yet one for each.
async fn a_receipt_that_is_given_twice_settles_no_other_row(host: Host) {
    host.fill(3).await;
    let worker = host.worker(LONG).await;
    let claimed = some(&*worker, 10).await;
    assert_eq!((claimed.len(), bundles(&host).await), (3, vec![3]));
    let twice = [claimed[0].clone(), claimed[0].clone(), claimed[1].clone()];
    settle(&*worker, &twice, &Outcome::Published).await;
    assert_eq!(bundles(&host).await, [1], "the third is still to be delivered");
    assert_eq!(settle(&*worker, &claimed[2..], &Outcome::Published).await, (1, 0, 0));
    assert_eq!((bundles(&host).await, host.rows_beside().await), (vec![], 0));
    worker.stop(Duration::ZERO).await.unwrap();
}

/// Its rows are read when it is committed. The host changes a column's type: what is prepared cannot be run any more in a connection that has prepared it.
async fn a_claim_whose_rows_cannot_be_read_is_given_back(host: Host) {
    host.fill(30).await;
    let adopted = host.adopt().await;
    let first = adopted.claim_batch("w", 10, LONG).await.unwrap();
    assert_eq!(first.rows.len(), 10);
    let change = format!("ALTER TABLE {} ALTER COLUMN aggregate_id TYPE text", host.table);
    host.pool.run(&change).await;
    let error = adopted.claim_batch("w", 10, LONG).await.unwrap_err();
    assert!(error.to_string().contains("cached plan"), "{error}");
    assert_eq!(bundles(&host).await, [10], "what was claimed and not read is free again");
    let second = adopted.claim_batch("w", 30, LONG).await.unwrap();
    assert_eq!(second.rows.len(), 20);
}

/// Where no connection keeps what it has prepared.
async fn behind_a_pooler_it_is_the_same(host: Host) {
    host.fill(30).await;
    drop(host.adopt().await);
    let database = PostgresDatabase::connect_through(&host.url, Pooler::Transaction).await.unwrap();
    let beside = host.kind.beside(&host.table).unwrap();
    let adopted = Adopted::beside(&database, host.mapping(), &beside).await.unwrap();
    for round in 0..3 {
        let batch = adopted.claim_batch("w", 10, LONG).await.unwrap();
        assert_eq!((batch.rows.len(), bundles(&host).await), (10, vec![10]), "round {round}");
        let keys: Vec<_> = batch.rows.iter().map(|row| row.key.clone()).collect();
        let answers = adopted.settle_batch(&batch, &keys, &Outcome::Published).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == Answer::Applied), "{answers:?}");
    }
    let published = host.rows().await.values().filter(|row| row.status == "PUBLISHED").count();
    assert_eq!((published, bundles(&host).await, host.rows_beside().await), (30, vec![], 0));
}

async fn what_a_lost_worker_had_is_counted_for_each_row(host: Host) {
    host.fill(5).await;
    let adopted = host.adopt().await;
    let lost = adopted.claim_batch("lost", 5, Duration::from_millis(1)).await.unwrap();
    assert_eq!(lost.rows.len(), 5);
    let worker = start(&adopted, LONG).await;
    let mut taken = Vec::new();
    while taken.len() < 5 {
        taken.extend(some(&*worker, 10).await);
    }
    assert!(taken.iter().all(|claimed| claimed.event.attempts.total() == 1), "each was handed out before");
    assert_eq!((bundles(&host).await, host.rows_beside().await), (vec![], 5));
    let keys: Vec<_> = lost.rows.iter().map(|row| row.key.clone()).collect();
    let answers = adopted.settle_batch(&lost, &keys, &Outcome::Published).await.unwrap();
    assert_eq!(answers, [Answer::Stale; 5]);
    assert_eq!(settle(&*worker, &taken, &Outcome::Published).await, (5, 0, 0));
}

async fn hostile_values_are_written_out_as_they_are(host: Host) {
    let values = [
        "'; DROP TABLE nothing; --",
        r"\",
        r"\'",
        r"ends with \",
        "$$ $1 {:token} {host}",
        "two\nlines\t\u{7f}",
        "E'x' || 'y'",
        "ünï☃ \u{1f980}",
        "",
    ];
    let Pool::Postgres(pool) = &host.pool else { unreachable!("it is PostgreSQL") };
    for value in values {
        let insert = format!(
            "INSERT INTO {} (aggregate_type, aggregate_id, event_type, payload) VALUES ('a', 'k', $1, '1')",
            host.table
        );
        sqlx::query(sqlx::AssertSqlSafe(insert)).bind(value).execute(pool).await.unwrap();
    }
    drop(host.adopt().await);
    // However strings are read there.
    for strings in ["on", "off"] {
        let mark = if host.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{mark}options=-c%20standard_conforming_strings%3D{strings}", host.url);
        let adopted = open(host.kind.name(), &url, &host.table).await;
        for value in values {
            let adopted = adopted.only("event_type", value).unwrap();
            let batch = adopted.claim_batch(r"o'n\e; --", 9, LONG).await.unwrap();
            assert_eq!(batch.rows.len(), 1, "{value:?}, strings {strings}");
            let owner = format!("SELECT owner FROM {}_sendoff_bundle", host.table);
            let owner: String = sqlx::query(sqlx::AssertSqlSafe(owner)).fetch_one(pool).await.unwrap().get(0);
            assert!(owner.starts_with(r"o'n\e; --#"), "{owner}");
            let keys = [batch.rows[0].key.clone()];
            adopted.settle_batch(&batch, &keys, &Outcome::Published).await.unwrap();
        }
        host.pool.run(&format!("UPDATE {} SET status = 'PENDING'", host.table)).await;
    }
}

async fn the_host_may_write_its_rows_while_they_are_claimed(host: Host) {
    let ids = host.fill(3).await;
    let worker = host.worker(LONG).await;
    let Pool::Postgres(pool) = &host.pool else { unreachable!("it is PostgreSQL") };
    let mut held = pool.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = '{}' FOR UPDATE", host.table, ids[1]);
    sqlx::query(sqlx::AssertSqlSafe(lock)).execute(&mut *held).await.unwrap();
    // A claim neither waits for the host's lock nor steps over its row.
    assert_eq!(some(&*worker, 10).await.len(), 3);
    held.rollback().await.unwrap();
    worker.stop(Duration::ZERO).await.unwrap();
}

async fn an_index_serves_the_claim_and_no_claim_reads_the_whole_table(host: Host) {
    const CLAIMS: i64 = 8;
    host.fill(20_000).await;
    host.pool.run(&format!("ANALYZE {}", host.table)).await;
    let adopted = host.adopt().await;
    let scans = async || -> (i64, i64) {
        let scans = format!(
            "SELECT seq_tup_read::text, COALESCE(idx_scan, 0)::text FROM pg_stat_user_tables WHERE relname = '{}'",
            host.table
        );
        let row = host.pool.texts(&scans).await.remove(0);
        let [whole, by_index] = [0, 1].map(|column: usize| row[column].as_ref().unwrap().parse().unwrap());
        (whole, by_index)
    };
    let (whole, by_index) = scans().await;
    // None is settled: what is in flight is stepped over by each.
    for _ in 0..CLAIMS {
        assert_eq!(adopted.claim_batch("w", 900, LONG).await.unwrap().rows.len(), 900);
    }
    let began = Instant::now();
    loop {
        let now = scans().await;
        assert_eq!(now.0, whole, "the whole table was read");
        if now.1 >= by_index + CLAIMS {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "no index was used: {now:?}");
        // The server counts with a delay.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn a_missing_table_of_bundles_is_refused_with_the_statement_that_makes_it(host: Host) {
    drop(host.adopt().await);
    host.pool.run(&format!("DROP TABLE {}_sendoff_bundle", host.table)).await;
    let error = host.try_adopt(host.mapping()).await.unwrap_err();
    assert!(error.to_string().contains("run: CREATE TABLE"), "{error}");
    host.mend(&error).await;
    host.try_adopt(host.mapping()).await.unwrap();
}
