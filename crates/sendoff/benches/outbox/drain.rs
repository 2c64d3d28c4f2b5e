//! Draining a backlog with four workers: leased lanes beside `FOR UPDATE SKIP LOCKED` and a status column.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sendoff::NewEvent;
use sendoff::outbox::{Claimed, Outcome, Receipt, Store, Worker, WorkerConfig};
use sendoff::stores::postgres::PostgresOutbox;
use sqlx::AssertSqlSafe;
use tokio::sync::mpsc;

use super::{Bench, median, rates};

const EVENTS: usize = 200_000;
const KEYS: usize = 10_000;
const WORKERS: usize = 4;
const ROUNDS: usize = 5;
/// As the relay has it.
const FLUSH_MAX: usize = 1_000;
/// As long as the payload that was measured for the design.
const PAYLOAD_BYTES: usize = 272;

pub(crate) async fn run(bench: &Bench) {
    bench.execute(include_str!("seed.sql")).await;
    let (mut lanes, mut seed_500, mut seed_100) = (Vec::new(), Vec::new(), Vec::new());
    let (mut wal, mut seed_wal) = (Vec::new(), Vec::new());
    let (mut equal, mut own) = (Vec::new(), Vec::new());
    let (mut relaxed, mut relaxed_equal, mut relaxed_own) = (Vec::new(), Vec::new(), Vec::new());
    let asynchronous = bench.outbox.clone().settle_asynchronously(true);
    for _ in 0..ROUNDS {
        let (ours, ours_wal) = drain_lanes(bench, &bench.outbox, 500).await;
        let (seed, wal_of_seed) = drain_seed(bench, 500).await;
        let (seed_small, _) = drain_seed(bench, 100).await;
        let (unwaited, _) = drain_lanes(bench, &asynchronous, 500).await;
        relaxed_equal.push(unwaited / seed);
        relaxed_own.push(unwaited / seed_small);
        relaxed.push(unwaited);
        equal.push(ours / seed);
        own.push(ours / seed_small);
        lanes.push(ours);
        seed_500.push(seed);
        seed_100.push(seed_small);
        wal.push(ours_wal);
        seed_wal.push(wal_of_seed);
    }
    let sync = bench.synchronous;
    println!(
        "\ndrain, {EVENTS} events, {WORKERS} workers, synchronous_commit={sync}, median [least-most] of {ROUNDS}"
    );
    println!(
        "  leased lanes, batch 500     {:>22} events/s  {:>5.0} B WAL/event",
        rates(&lanes),
        median(wal)
    );
    println!(
        "  seed's statement, batch 500 {:>22} events/s  {:>5.0} B WAL/event",
        rates(&seed_500),
        median(seed_wal)
    );
    println!("  seed's statement, batch 100 {:>22} events/s", rates(&seed_100));
    println!(
        "  ratio at equal batch 500: {:.2}; with the seed's own batch of 100: {:.2}",
        median(equal),
        median(own)
    );
    println!(
        "  leased lanes, settled asynchronously: {} events/s; ratios {:.2}, {:.2}",
        rates(&relaxed),
        median(relaxed_equal),
        median(relaxed_own)
    );
}

fn payload() -> Vec<u8> {
    let filler = "x".repeat(PAYLOAD_BYTES - 20);
    format!("{{\"content\":\"{filler}\"}}").into_bytes()
}

/// Events a second, and WAL bytes an event, of the drain alone.
async fn drain_lanes(bench: &Bench, outbox: &PostgresOutbox, batch: usize) -> (f64, f64) {
    let events: Vec<NewEvent> = (0..EVENTS)
        .map(|_| NewEvent::new("bench").key(format!("key-{}", fastrand::usize(..KEYS))).payload(payload()))
        .collect();
    // Before the filling, not after it: the first change of a page after a checkpoint writes the whole page to the WAL.
    bench.execute("CHECKPOINT").await;
    for chunk in events.chunks(1_000) {
        let mut transaction = bench.host.begin().await.unwrap();
        bench.enqueue.enqueue_all(&mut transaction, chunk.to_vec()).await.unwrap();
        transaction.commit().await.unwrap();
    }
    bench.execute("VACUUM (ANALYZE) {schema}.event").await;
    let store: Arc<dyn Store> = Arc::new(outbox.clone());
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(Worker::start(Arc::clone(&store), WorkerConfig::default()).await.unwrap());
    }
    while workers.iter().any(|worker| worker.lanes().len() != 64 / WORKERS) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let wal = bench.wal().await;
    let started = Instant::now();
    let left = Arc::new(AtomicUsize::new(EVENTS));
    let tasks: Vec<_> = workers
        .into_iter()
        .map(|worker| tokio::spawn(drain(Arc::new(worker), Arc::clone(&left), batch)))
        .collect();
    let mut stopping = Vec::new();
    for task in tasks {
        stopping.push(task.await.unwrap());
    }
    let (seconds, wal) = (started.elapsed().as_secs_f64(), bench.wal().await - wal);
    for worker in stopping {
        worker.stop(Duration::ZERO).await.unwrap();
    }
    #[allow(clippy::cast_precision_loss)]
    let answer = (EVENTS as f64 / seconds, wal as f64 / EVENTS as f64);
    answer
}

/// One worker as a relay drives it: the next events are read while the last ones are settled, as many together as have come.
async fn drain(worker: Arc<Worker>, left: Arc<AtomicUsize>, batch: usize) -> Arc<Worker> {
    let (published, mut outcomes) = mpsc::channel::<Vec<(Receipt, Outcome)>>(2);
    let (settler, to_settle) = (Arc::clone(&worker), Arc::clone(&left));
    let settling = tokio::spawn(async move {
        while let Some(mut flush) = outcomes.recv().await {
            while flush.len() < FLUSH_MAX
                && let Ok(more) = outcomes.try_recv()
            {
                flush.extend(more);
            }
            let settled = settler.settle(&flush).await.unwrap();
            assert_eq!(settled.applied, flush.len(), "{settled:?}");
            to_settle.fetch_sub(flush.len(), Ordering::Relaxed);
        }
    });
    while left.load(Ordering::Relaxed) > 0 {
        let claimed = worker.claim(batch).await.unwrap();
        if claimed.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let receipts: Vec<Receipt> = claimed.iter().map(Claimed::receipt).collect();
        published
            .send(receipts.iter().map(|receipt| (*receipt, Outcome::Published)).collect())
            .await
            .unwrap();
        worker.delivered(&receipts);
    }
    drop(published);
    settling.await.unwrap();
    worker
}

/// The same with the seed's table and statement: locks held in a transaction, then a status.
async fn drain_seed(bench: &Bench, batch: usize) -> (f64, f64) {
    bench.execute("TRUNCATE {schema}.outbox_events").await;
    bench.execute("CHECKPOINT").await;
    let fill = format!(
        "INSERT INTO {{schema}}.outbox_events (aggregate_type, aggregate_id, event_type, payload, created_at) \
         SELECT 'bench', 'key-' || (random() * {KEYS})::int, 'bench', convert_from('\\x{}', 'UTF8')::jsonb, \
         clock_timestamp() FROM generate_series(1, {EVENTS})",
        payload().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    );
    bench.execute(&fill).await;
    bench.execute("VACUUM (ANALYZE) {schema}.outbox_events").await;
    let select = format!(
        "SELECT id, aggregate_type, aggregate_id, event_type, payload FROM {}.outbox_events \
         WHERE status = 'PENDING' ORDER BY created_at ASC LIMIT {batch} FOR UPDATE SKIP LOCKED",
        bench.schema
    );
    let update = format!(
        "UPDATE {}.outbox_events SET status = 'PUBLISHED', published_at = now() WHERE id = ANY ($1)",
        bench.schema
    );
    let wal = bench.wal().await;
    let started = Instant::now();
    let left = Arc::new(AtomicUsize::new(EVENTS));
    let tasks: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (left, select, update) = (Arc::clone(&left), select.clone(), update.clone());
            let host = bench.host.clone();
            tokio::spawn(async move {
                let mut connection = host.acquire().await.unwrap();
                while left.load(Ordering::Relaxed) > 0 {
                    let mut transaction = sqlx::Connection::begin(&mut *connection).await.unwrap();
                    let rows: Vec<(uuid::Uuid, String, String, String, serde_json::Value)> =
                        sqlx::query_as(AssertSqlSafe(select.clone()))
                            .fetch_all(&mut *transaction)
                            .await
                            .unwrap();
                    let ids: Vec<uuid::Uuid> = rows.iter().map(|row| row.0).collect();
                    sqlx::query(AssertSqlSafe(update.clone()))
                        .bind(&ids)
                        .execute(&mut *transaction)
                        .await
                        .unwrap();
                    transaction.commit().await.unwrap();
                    left.fetch_sub(ids.len(), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let (seconds, wal) = (started.elapsed().as_secs_f64(), bench.wal().await - wal);
    #[allow(clippy::cast_precision_loss)]
    let answer = (EVENTS as f64 / seconds, wal as f64 / EVENTS as f64);
    answer
}
