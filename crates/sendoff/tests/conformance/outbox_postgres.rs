//! What only PostgreSQL can be asked of an outbox: pinned snapshots, long backlogs, what a fetch touches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::outbox::{Fetch, Inspect as _, LANES, LaneFetch, Outcome, Worker, WorkerConfig};
use sendoff::stores::postgres::{PostgresDatabase, PostgresOutbox};
use sendoff::stores::{Names, SqlOutbox};
use sendoff::testkit::StoreHarness as _;
use sendoff::{DEFAULT_TARGET, NewEvent};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::harness::outbox::{Path, Sql, postgres};
use crate::outbox_torture::{Process, log_file, published};
use crate::outbox_worker::Orders;
use crate::servers::Server;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for server in [Server::Postgres15, Server::Postgres18] {
        macro_rules! cases {
            ($($case:ident),* $(,)?) => {$(
                let name = format!("{}::outbox::{}", server.name(), stringify!($case));
                trials.push(trial(name, Some(server), move || $case(server)));
            )*};
        }
        cases!(
            a_pinned_snapshot_does_not_make_a_fetch_dear,
            a_long_backlog_costs_no_more_than_a_short_one,
            delayed_events_of_a_key_do_not_make_a_fetch_dear,
            a_floor_waits_for_a_transaction_that_may_still_write_below_it,
            a_sequence_that_was_set_back_resets_the_floors,
            rows_that_were_moved_are_settled_all_the_same,
            a_commit_that_is_announced_is_heard,
        );
    }
    trials
}

/// The outbox with its floors and its costs.
async fn open(server: Server) -> (Sql<sqlx::Postgres>, PostgresOutbox) {
    let harness = postgres(server, Path::Fast).await;
    let database = PostgresDatabase::connect(&server.url()).await.unwrap();
    let outbox = PostgresOutbox::open_as(database, Names::schema(&harness.names).unwrap()).await.unwrap();
    (harness, outbox)
}

async fn enqueue(harness: &Sql<sqlx::Postgres>, count: usize) {
    let events = (0..count).map(|_| {
        NewEvent::new("cost").key(format!("key-{}", fastrand::u16(..2_000))).payload("x".repeat(200))
    });
    let mut transaction = harness.host.begin().await.unwrap();
    harness.enqueue.enqueue_all(&mut transaction, events.collect()).await.unwrap();
    transaction.commit().await.unwrap();
}

/// A fetch of 500 from all lanes, each from its floor or from the beginning.
async fn fetch(harness: &Sql<sqlx::Postgres>, from_floor: bool) -> Fetch {
    let lanes = harness.inspect().lanes(DEFAULT_TARGET).await.unwrap();
    let floor = |lane: u16| lanes.iter().find(|info| info.lane == lane).map_or(0, |info| info.floor);
    let lanes = (0..LANES).map(|lane| LaneFetch {
        lane,
        above: if from_floor { floor(lane) } else { 0 },
        limit: 500,
    });
    Fetch { target: DEFAULT_TARGET.into(), lanes: lanes.collect(), limit: 500, bytes_per_lane: 1 << 20 }
}

/// Delivers all there is.
async fn drain(worker: &Worker, count: usize) {
    let began = Instant::now();
    let mut left = count;
    while left > 0 {
        let claimed = worker.claim(2_000).await.unwrap();
        let outcomes: Vec<_> = claimed.iter().map(|event| (event.receipt(), Outcome::Published)).collect();
        if outcomes.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        } else {
            worker.settle(&outcomes).await.unwrap();
        }
        left -= outcomes.len();
        assert!(began.elapsed() < Duration::from_secs(60), "{left} of {count} are left");
    }
}

/// Looks for events, as a relay does when there are none, until no lane's floor is far below the highest position.
async fn until_floors_follow(harness: &Sql<sqlx::Postgres>, worker: &Worker) {
    let sequence = format!("SELECT last_value FROM \"{}\".event_id_seq", harness.names);
    let highest: i64 = sqlx::query_scalar(AssertSqlSafe(sequence)).fetch_one(&harness.host).await.unwrap();
    let began = Instant::now();
    loop {
        let lanes = harness.inspect().lanes(DEFAULT_TARGET).await.unwrap();
        let lowest = lanes.iter().map(|lane| lane.floor).min().unwrap_or(0);
        if lowest + 1_000 >= highest {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "a floor is at {lowest}, the events at {highest}");
        assert!(worker.claim(1).await.unwrap().is_empty());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn a_pinned_snapshot_does_not_make_a_fetch_dear(server: Server) {
    let (harness, outbox) = open(server).await;
    let mut pin = harness.host.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    pin.execute("SELECT count(*) FROM pg_class").await.unwrap();
    let worker = Worker::start(harness.store(), WorkerConfig::default()).await.unwrap();
    enqueue(&harness, 1_000).await;
    let first = outbox.fetch_buffers(&fetch(&harness, true).await).await.unwrap();
    drain(&worker, 1_000).await;
    for _ in 0..40 {
        for _ in 0..5 {
            enqueue(&harness, 1_000).await;
        }
        drain(&worker, 5_000).await;
    }
    until_floors_follow(&harness, &worker).await;
    enqueue(&harness, 1_000).await;
    let last = outbox.fetch_buffers(&fetch(&harness, true).await).await.unwrap();
    let without = outbox.fetch_buffers(&fetch(&harness, false).await).await.unwrap();
    println!(
        "buffers of a fetch of 500: first {first}, after 200,000 events under a pinned snapshot {last}, without the floor {without}"
    );
    assert!(last <= 3 * first, "{last} is more than three times {first}");
    assert!(without > 3 * first, "without the floor it would have been cheap too: {without}");
    pin.rollback().await.unwrap();
    worker.stop(Duration::ZERO).await.unwrap();
}

async fn a_long_backlog_costs_no_more_than_a_short_one(server: Server) {
    let (harness, outbox) = open(server).await;
    enqueue(&harness, 1_000).await;
    let analyze = format!("ANALYZE \"{}\".event", harness.names);
    harness.host.execute(AssertSqlSafe(analyze.clone())).await.unwrap();
    let short = outbox.fetch_buffers(&fetch(&harness, true).await).await.unwrap();
    let fill = format!(
        "INSERT INTO \"{}\".event (topic, key, payload) \
         SELECT 'backlog', 'key-' || (random() * 5000)::int, '\\x00' FROM generate_series(1, 2000000)",
        harness.names
    );
    harness.host.execute(AssertSqlSafe(fill)).await.unwrap();
    harness.host.execute(AssertSqlSafe(analyze)).await.unwrap();
    let long = outbox.fetch_buffers(&fetch(&harness, true).await).await.unwrap();
    let (_directory, log) = log_file();
    let orders = Orders { batch: 500, ..Orders::new(&harness.url, &harness.names, &log) };
    let worker = Process::start(&orders).await;
    let began = Instant::now();
    while published(&log).len() < 20_000 {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not get on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let memory = memory_peak(worker.pid);
    worker.kill().await;
    println!(
        "buffers of a fetch of 500: {short} with 1,000 events, {long} with 2,000,000; the worker's memory: {memory} MiB at most"
    );
    assert!(long <= short + short / 2, "{long} against {short}");
    assert!(memory < 100, "{memory} MiB");
    harness.host.execute(AssertSqlSafe(format!("DROP SCHEMA \"{}\" CASCADE", harness.names))).await.unwrap();
}

/// Parks events of the key `key-1` in each lane, so that whichever is that key's has them.
async fn park(harness: &Sql<sqlx::Postgres>, count: u32, reason: &str) {
    let park = format!(
        "INSERT INTO \"{}\".parked (target, lane, id, topic, key, payload, event_id, created_at, reason, due_at, \
         failures, crashes, parked_at) \
         SELECT 'default', lane, -g, 'cost', 'key-1', '', gen_random_uuid(), now(), '{reason}', \
         now() + interval '1 hour', 0, 0, now() FROM generate_series(1, {count}) AS g, generate_series(0, 63) AS lane",
        harness.names
    );
    harness.host.execute(AssertSqlSafe(park)).await.unwrap();
}

/// Each event looks for what holds its key up: past the delayed ones of that key, that would be all of them for each.
async fn delayed_events_of_a_key_do_not_make_a_fetch_dear(server: Server) {
    let (harness, outbox) = open(server).await;
    let events = (0..500).map(|_| NewEvent::new("cost").key("key-1").payload("x")).collect();
    let mut transaction = harness.host.begin().await.unwrap();
    harness.enqueue.enqueue_all(&mut transaction, events).await.unwrap();
    transaction.commit().await.unwrap();
    let none = outbox.fetch_buffers(&fetch(&harness, false).await).await.unwrap();
    park(&harness, 2_000, "delayed").await;
    let delayed = outbox.fetch_buffers(&fetch(&harness, false).await).await.unwrap();
    let retry = format!("UPDATE \"{}\".parked SET reason = 'retry' WHERE id = -1", harness.names);
    harness.host.execute(AssertSqlSafe(retry)).await.unwrap();
    let held = outbox.fetch_buffers(&fetch(&harness, false).await).await.unwrap();
    println!(
        "buffers of a fetch of 500: {none}, with delayed events of its key {delayed}, held as well {held}"
    );
    assert!(delayed <= 2 * none + 10, "{delayed} against {none}");
    assert!(held <= none + 500 * 8, "{held} against {none}");
}

/// The most memory that a process has had, in MiB.
fn memory_peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

async fn floors_of(harness: &Sql<sqlx::Postgres>) -> i64 {
    harness.inspect().lanes(DEFAULT_TARGET).await.unwrap().iter().map(|lane| lane.floor).max().unwrap()
}

/// The case that a floor by the highest published position gets wrong.
async fn a_floor_waits_for_a_transaction_that_may_still_write_below_it(server: Server) {
    let (harness, _) = open(server).await;
    let worker = Worker::start(harness.store(), WorkerConfig::default()).await.unwrap();
    // It has taken its position, and not committed.
    let mut late = harness.host.begin().await.unwrap();
    harness.enqueue.enqueue(&mut late, NewEvent::new("late").key("late")).await.unwrap();
    for _ in 0..3 {
        enqueue(&harness, 1_000).await;
        drain(&worker, 1_000).await;
    }
    // The worker has every reason to raise the floors, and time for it.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        assert!(worker.claim(1).await.unwrap().is_empty());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(floors_of(&harness).await, 0, "a floor was raised over an event that was not committed");
    late.commit().await.unwrap();
    drain(&worker, 1).await;
    until_floors_follow(&harness, &worker).await;
    worker.stop(Duration::ZERO).await.unwrap();
}

async fn a_sequence_that_was_set_back_resets_the_floors(server: Server) {
    let (harness, _) = open(server).await;
    let worker = Worker::start(harness.store(), WorkerConfig::default()).await.unwrap();
    for _ in 0..3 {
        enqueue(&harness, 1_000).await;
        drain(&worker, 1_000).await;
    }
    until_floors_follow(&harness, &worker).await;
    let back = format!("ALTER TABLE \"{}\".event ALTER COLUMN id RESTART WITH 1", harness.names);
    harness.host.execute(AssertSqlSafe(back)).await.unwrap();
    enqueue(&harness, 50).await;
    drain(&worker, 50).await;
    worker.stop(Duration::ZERO).await.unwrap();
}

/// VACUUM FULL gives rows new addresses while they are in flight.
async fn rows_that_were_moved_are_settled_all_the_same(server: Server) {
    let (harness, _) = open(server).await;
    let worker = Worker::start(harness.store(), WorkerConfig::default()).await.unwrap();
    enqueue(&harness, 200).await;
    let mut claimed = Vec::new();
    while claimed.len() < 200 {
        claimed.extend(worker.claim(200).await.unwrap());
    }
    let (gone, moved) = claimed.split_at(100);
    let published = |events: &[sendoff::outbox::Claimed]| {
        events.iter().map(|event| (event.receipt(), Outcome::Published)).collect::<Vec<_>>()
    };
    assert_eq!(worker.settle(&published(gone)).await.unwrap().applied, 100);
    harness.host.execute(AssertSqlSafe(format!("VACUUM FULL \"{}\".event", harness.names))).await.unwrap();
    let settled = worker.settle(&published(moved)).await.unwrap();
    assert_eq!((settled.applied, settled.missing, settled.stale), (100, 0, 0));
    let database = PostgresDatabase::connect(&server.url()).await.unwrap();
    let outbox = SqlOutbox::open_as(database, Names::schema(&harness.names).unwrap()).await.unwrap();
    assert_eq!(outbox.counts().await.unwrap().targets[0].processing, 0, "nothing is left");
    worker.stop(Duration::ZERO).await.unwrap();
}

/// Heard by the outbox it is of and no other, as one however many come at once, and again after the listener's connection was lost.
async fn a_commit_that_is_announced_is_heard(server: Server) {
    let (harness, outbox) = open(server).await;
    let (_, other) = open(server).await;
    let (here, there) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = |counter: &Arc<AtomicUsize>| {
        let counter = Arc::clone(counter);
        move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    };
    let _here = outbox.listen(count(&here)).await.unwrap();
    let _there = other.listen(count(&there)).await.unwrap();
    let announcer = outbox.announcer();
    for _ in 0..1_000 {
        announcer.committed();
    }
    until_heard(&here, 1).await;
    other.announcer().committed();
    // By then the announcements before it have come as well.
    until_heard(&there, 1).await;
    assert_eq!(there.load(Ordering::SeqCst), 1, "it heard of another's events");
    assert!(here.load(Ordering::SeqCst) <= 2, "calls in quick succession are one");
    let before = here.load(Ordering::SeqCst);
    let end =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %sendoff_wake%'";
    sqlx::query(end).fetch_all(&harness.host).await.unwrap();
    until_heard(&here, before + 1).await;
    let before = here.load(Ordering::SeqCst);
    let began = Instant::now();
    while here.load(Ordering::SeqCst) == before {
        announcer.committed();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(began.elapsed() < Duration::from_secs(20), "it does not listen again");
    }
}

async fn until_heard(counter: &AtomicUsize, count: usize) {
    let began = Instant::now();
    while counter.load(Ordering::SeqCst) < count {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing is heard");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
