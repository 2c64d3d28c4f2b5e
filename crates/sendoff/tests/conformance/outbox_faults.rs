//! Workers that are frozen, killed, misled by their clock, or killed by an event.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::outbox::{Cause, EventState, Inspect, ListQuery, Outcome, Worker, WorkerConfig};
use sendoff::testkit::{HostTransaction as _, StoreHarness};
use sendoff::{DEFAULT_TARGET, NewEvent};

use crate::harness::outbox::{Path, Sql, mysql, postgres, sqlite};
use crate::outbox_torture::{Process, log_file, published, race, race_with_kills};
use crate::outbox_worker::{Fate, Orders, command};
use crate::servers::{Server, is_full_run};
use crate::trial;

/// As long as a race is to last: in `cargo xtask test` long, beside a build short.
fn race_time() -> Duration {
    Duration::from_secs(if is_full_run() { 30 } else { 3 })
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! on {
        ($store:literal, $server:expr, $open:expr) => {
            trials.push(trial(
                concat!($store, "::outbox::a_race_of_eight_producers_and_four_processes").into(),
                $server,
                || async {
                    let store = $open.await;
                    let (url, names) = (store.url.clone(), store.names.clone());
                    race($store, store, &url, &names, race_time()).await;
                },
            ));
            trials.push(trial(
                concat!($store, "::outbox::a_race_with_killed_and_replaced_processes").into(),
                $server,
                || async {
                    let store = $open.await;
                    let (url, names) = (store.url.clone(), store.names.clone());
                    race_with_kills($store, store, &url, &names, race_time()).await;
                },
            ));
            for fate in [Fate::Published, Fate::Retry, Fate::GiveUp, Fate::Release] {
                let name =
                    format!("{}::outbox::a_frozen_worker_settles_nothing_as_{fate:?}", $store).to_lowercase();
                trials.push(trial(name, $server, move || async move { zombie($open.await, fate).await }));
            }
            trials.push(trial(
                concat!($store, "::outbox::an_event_that_kills_its_worker_becomes_a_dead_letter").into(),
                $server,
                || async {
                    deadly($open.await).await;
                },
            ));
        };
    }
    on!("sqlite", None, sqlite(Path::Fast));
    on!("postgres15", Some(Server::Postgres15), postgres(Server::Postgres15, Path::Fast));
    on!("postgres18", Some(Server::Postgres18), postgres(Server::Postgres18, Path::Fast));
    on!("mariadb", Some(Server::Mariadb), mysql(Server::Mariadb, Path::Fast));
    for server in [Server::Postgres15, Server::Postgres18] {
        trials.push(trial(
            format!("{}::outbox::a_killed_workers_lanes_are_taken_over_at_once", server.name()),
            Some(server),
            move || async move { takeover(postgres(server, Path::Fast).await).await },
        ));
    }
    trials.push(trial(
        "postgres15::outbox::a_wrong_clock_changes_no_lease".into(),
        Some(Server::Faketime),
        || async {
            wrong_clock(postgres(Server::Postgres15, Path::Fast).await).await;
        },
    ));
    trials.push(trial(
        "mariadb::outbox::a_wrong_clock_changes_no_lease".into(),
        Some(Server::Faketime),
        || async {
            wrong_clock(mysql(Server::Mariadb, Path::Fast).await).await;
        },
    ));
    trials
}

async fn enqueue<H: StoreHarness>(store: &H, events: &[NewEvent]) {
    let mut transaction = store.begin().await;
    transaction.enqueue(events).await.unwrap();
    transaction.commit().await.unwrap();
}

fn events(count: usize) -> Vec<NewEvent> {
    (0..count).map(|number| NewEvent::new("faults").key(format!("key-{number}")).payload("x")).collect()
}

async fn count(inspect: &dyn Inspect, state: EventState) -> u64 {
    let counts = inspect.counts().await.unwrap();
    counts.targets.iter().map(|target| target.of(state)).sum()
}

/// Waits until it is so.
async fn until<F, Answer>(promise: &str, longest: Duration, is_so: F)
where
    F: Fn() -> Answer,
    Answer: Future<Output = bool>,
{
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < longest, "not within {longest:?}: {promise}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Frozen past its lease it settles late: nothing changes, and it is told so. What its successor decided stands.
async fn zombie<DB: sqlx::Database>(harness: Sql<DB>, fate: Fate)
where
    Sql<DB>: StoreHarness,
{
    enqueue(&harness, &events(20)).await;
    let (_directory, log) = log_file();
    let orders = Orders {
        // Long enough that it is not frozen in the midst of renewing, with rows locked that its successor needs.
        lease_millis: 3_000,
        batch: 20,
        outcome: fate,
        waits_to_settle: true,
        ..Orders::new(&harness.url, &harness.names, &log)
    };
    let mut frozen = Process::start(&orders).await;
    frozen.signal("STOP").await;
    assert_eq!(published(&log).len(), 20, "it has all of them in hand");

    let successor = Worker::start(harness.store(), WorkerConfig::default()).await.unwrap();
    let (mut delivered, mut failed) = (0, 0);
    let began = Instant::now();
    while delivered + failed < 20 {
        assert!(began.elapsed() < Duration::from_secs(30), "the successor has {delivered} + {failed} of 20");
        let mut outcomes = Vec::new();
        for claimed in successor.claim(20).await.unwrap() {
            // Half of them one way, half the other.
            if (delivered + failed) % 2 == 0 {
                delivered += 1;
                outcomes.push((claimed.receipt(), Outcome::Published));
            } else {
                failed += 1;
                outcomes.push((claimed.receipt(), Outcome::retry(Duration::from_secs(3_600), "not now")));
            }
        }
        successor.settle(&outcomes).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    frozen.signal("CONT").await;
    frozen.go_on().await;
    let report = frozen.report().await;
    assert_eq!((report.claimed, report.applied), (20, 0), "{report:?}");
    // What is given back is not written: there is nothing to refuse.
    assert!(report.stale == 20 || fate == Fate::Release, "{report:?}");
    let inspect = harness.inspect();
    let failed_events =
        ListQuery { target: DEFAULT_TARGET.into(), state: EventState::Failed, after: 0, limit: 100 };
    let listed = inspect.list(&failed_events).await.unwrap();
    assert_eq!(listed.len(), 10, "what the successor parked is parked");
    for event in listed {
        assert_eq!(event.failure.unwrap().error, "not now", "the successor's word stands");
    }
    for state in [EventState::Unprocessed, EventState::Processing, EventState::Abandoned, EventState::Dead] {
        assert_eq!(count(&*inspect, state).await, 0, "nothing is {state}");
    }
    successor.stop(Duration::ZERO).await.unwrap();
}

/// With a lease of half a minute, a killed process's lanes change hands in a second or two.
async fn takeover(harness: Sql<sqlx::Postgres>) {
    let (_directory, log) = log_file();
    let orders = Orders::new(&harness.url, &harness.names, &log);
    let (one, two) = (Process::start(&orders).await, Process::start(&orders).await);
    let inspect = harness.inspect();
    let owners = || async {
        let mut owners: std::collections::HashMap<_, usize> = std::collections::HashMap::new();
        for lane in inspect.lanes(DEFAULT_TARGET).await.unwrap() {
            *owners.entry(lane.owner).or_default() += 1;
        }
        owners
    };
    until("they share the lanes", Duration::from_secs(30), || async {
        let owners = owners().await;
        owners.len() == 2 && owners.values().all(|lanes| *lanes == 32)
    })
    .await;
    let began = Instant::now();
    one.kill().await;
    until("the other has all of them", Duration::from_secs(10), || async { owners().await.len() == 1 }).await;
    println!(
        "32 lanes of a killed process taken over after {:.2} s of a 30 s lease",
        began.elapsed().as_secs_f64()
    );
    two.stop().await;
}

/// A worker whose clock is hours off shares the lanes like any other, and loses none.
async fn wrong_clock<DB: sqlx::Database>(harness: Sql<DB>)
where
    Sql<DB>: StoreHarness,
{
    let (_directory, log) = log_file();
    let orders = Orders { lease_millis: 3_000, ..Orders::new(&harness.url, &harness.names, &log) };
    let mut workers = vec![Process::start(&orders).await];
    for clock in ["+5h", "-5h"] {
        let mut child = command(&orders);
        child
            .env("LD_PRELOAD", Server::Faketime.url())
            .env("FAKETIME", clock)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        workers.push(Process::spawn(child).await);
    }
    let inspect = harness.inspect();
    let all_owned = || async {
        let lanes = inspect.lanes(DEFAULT_TARGET).await.unwrap();
        let mut shares: std::collections::HashMap<_, usize> = std::collections::HashMap::new();
        for lane in lanes.iter().filter(|lane| !lane.expired) {
            *shares.entry(lane.owner).or_default() += 1;
        }
        // Evenly, or lanes are still on their way.
        shares.len() == 3
            && !shares.contains_key(&None)
            && shares.values().all(|lanes| (21..=22).contains(lanes))
    };
    until("three share the lanes", Duration::from_secs(30), all_owned).await;
    let before: Vec<i64> =
        inspect.lanes(DEFAULT_TARGET).await.unwrap().iter().map(|lane| lane.epoch).collect();
    for _ in 0..6 {
        enqueue(&harness, &events(100)).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    until("all is published", Duration::from_secs(30), || async { published(&log).len() >= 600 }).await;
    let after: Vec<i64> =
        inspect.lanes(DEFAULT_TARGET).await.unwrap().iter().map(|lane| lane.epoch).collect();
    assert_eq!(before, after, "no lane changed hands in more than a lease");
    assert_eq!(published(&log).len(), 600, "each was published once");
    for worker in workers {
        let report = worker.stop().await;
        assert!(report.claimed > 0, "each had its share");
        assert_eq!((report.stale, report.lost), (0, 0));
    }
}

/// Its worker aborts whenever it is handed out: after its attempts it is dead, with the cause, and the others never waited for long.
async fn deadly<DB: sqlx::Database>(harness: Sql<DB>)
where
    Sql<DB>: StoreHarness,
{
    let mut all = events(200);
    // In the same lane, before and after it: one key each, and the deadly one's own.
    all.insert(100, NewEvent::new("deadly").key("key-7").payload("x"));
    enqueue(&harness, &all).await;
    let (_directory, log) = log_file();
    let orders = Orders {
        lease_millis: 400,
        deadly_topic: Some("deadly".to_owned()),
        crashes_max: 3,
        crash_pause_millis: 100,
        ..Orders::new(&harness.url, &harness.names, &log)
    };
    let inspect = harness.inspect();
    let mut crashes = 0;
    while count(&*inspect, EventState::Dead).await == 0 {
        let worker = Process::start(&orders).await;
        // It dies of the event, or has buried it.
        let is_over = async {
            while count(&*inspect, EventState::Dead).await == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            _ = worker.wait() => crashes += 1,
            () = is_over => {}
        }
        assert!(crashes < 20, "it has killed {crashes} workers and is not dead");
    }
    let dead = ListQuery { target: DEFAULT_TARGET.into(), state: EventState::Dead, after: 0, limit: 10 };
    let dead = inspect.list(&dead).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].event.topic, "deadly");
    assert_eq!(dead[0].failure.as_ref().unwrap().cause, Cause::Crash);
    assert_eq!(dead[0].event.attempts.crashes, 3);

    enqueue(&harness, &events(200)).await;
    let worker = Process::start(&orders).await;
    let all_there = || async {
        let seen: std::collections::HashSet<_> = published(&log).into_iter().map(|(_, id)| id).collect();
        seen.len() == 400
    };
    until("all others are published", Duration::from_secs(30), all_there).await;
    until("the lanes have forgotten", Duration::from_secs(30), || async {
        let lanes = inspect.lanes(DEFAULT_TARGET).await.unwrap();
        lanes.iter().all(|lane| lane.crashes == 0)
    })
    .await;
    worker.stop().await;
    // And at full speed again: a worker that comes now writes nothing down.
    enqueue(&harness, &events(200)).await;
    let worker = Process::start(&orders).await;
    until("these too", Duration::from_secs(30), || async { published(&log).len() >= 600 }).await;
    let report = worker.stop().await;
    assert_eq!(report.named, 0, "no event is written down any more");
    println!("an event killed {crashes} workers before it was a dead letter");
}
