//! Workers that are real processes: raced, killed, frozen past their lease.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::cases::PATIENCE;
use super::host::{Host, Kind, Pool};
use crate::outbox_torture::{Process, whole_lines};
use crate::outbox_worker::Orders;
use crate::servers;

const LEASE: Duration = Duration::from_secs(2);

fn orders(host: &Host, log: &Path) -> Orders {
    Orders { adopted: Some(host.kind.name().to_owned()), ..Orders::new(&host.url, &host.table, log) }
}

fn log_file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broker.log");
    std::fs::write(&path, "").unwrap();
    (directory, path)
}

/// What was published: the process, the event, its failures so far.
fn published(log: &Path) -> Vec<(u32, Uuid, u32)> {
    let text = whole_lines(log);
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap();
        (next().parse().unwrap(), next().parse().unwrap(), next().parse().unwrap())
    });
    lines.collect()
}

async fn until_published(log: &Path, count: usize) {
    let began = Instant::now();
    loop {
        let distinct: BTreeSet<Uuid> = published(log).into_iter().map(|(_, id, _)| id).collect();
        if distinct.len() == count {
            return;
        }
        assert!(began.elapsed() < 4 * PATIENCE, "{} of {count} were published", distinct.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn four_processes_take_nothing_twice_and_lose_nothing(host: Host) {
    drop(host.adopt().await);
    let full = servers::is_full_run() && !matches!(host.pool, Pool::Sqlite(_));
    let mut ids = host.fill(if full { 10_000 } else { 1_000 }).await;
    let (_directory, log) = log_file();
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(Process::start(&orders(&host, &log)).await);
    }
    until_published(&log, ids.len()).await;
    // Where one has started so much sooner that it was alone with all of it, there is more to share.
    let began = Instant::now();
    while published(&log).into_iter().map(|(process, ..)| process).collect::<BTreeSet<_>>().len() == 1 {
        assert!(began.elapsed() < PATIENCE, "they share the work");
        ids.extend(host.fill(100).await);
        until_published(&log, ids.len()).await;
    }
    let (mut claimed, mut applied, mut stale) = (0, 0, 0);
    for process in processes {
        let report = process.stop().await;
        (claimed, applied, stale) =
            (claimed + report.claimed, applied + report.applied, stale + report.stale);
    }
    let published = published(&log);
    assert_eq!(published.len(), ids.len(), "each once");
    assert_eq!(
        published.iter().map(|(_, id, _)| *id).collect::<BTreeSet<_>>(),
        ids.iter().copied().collect()
    );
    assert_eq!(
        (claimed, applied, stale),
        (ids.len() as u64, ids.len() as u64, 0),
        "no row was in two claims"
    );
    if host.kind != Kind::Debezium {
        let [_, delivered, ..] = host.kind.words();
        assert!(host.rows().await.values().all(|row| row.status == delivered));
    }
}

pub(super) async fn rows_of_a_killed_process_come_back_after_its_lease(host: Host) {
    drop(host.adopt().await);
    let ids = host.fill(60).await;
    let (_directory, log) = log_file();
    let lease_millis = u64::try_from(LEASE.as_millis()).unwrap();
    let one = Orders { lease_millis, waits_to_settle: true, batch: 20, ..orders(&host, &log) };
    let killed = Process::start(&one).await;
    let held: BTreeSet<Uuid> = published(&log).into_iter().map(|(_, id, _)| id).collect();
    assert_eq!(held.len(), 20);
    let began = Instant::now();
    let killed = killed.kill().await;
    let other = Process::start(&Orders { lease_millis, ..orders(&host, &log) }).await;
    // Everything else goes on at once, and what is leased is left alone.
    until_published(&log, 60).await;
    while published(&log).len() < 80 {
        let again =
            published(&log).into_iter().filter(|(process, id, _)| *process != killed && held.contains(id));
        let leased = LEASE.mul_f64(0.8);
        assert!(began.elapsed() >= leased || again.count() == 0, "an active lease was taken");
        assert!(began.elapsed() < PATIENCE, "an expired lease was not taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let report = other.stop().await;
    assert_eq!((report.applied, report.stale), (60, 0));
    let published = published(&log);
    assert_eq!(published.len(), 80, "only what the killed one had is published twice");
    assert_eq!(
        published.iter().map(|(_, id, _)| *id).collect::<BTreeSet<_>>(),
        ids.iter().copied().collect()
    );
    let counted = published.iter().filter(|(process, id, _)| *process != killed && held.contains(id));
    assert!(
        counted.into_iter().all(|(.., failures)| *failures == 1),
        "to be lost with a worker is an attempt"
    );
}

pub(super) async fn a_frozen_process_settles_nothing(host: Host) {
    drop(host.adopt().await);
    host.fill(10).await;
    let (_directory, log) = log_file();
    let short = Orders { lease_millis: 1_000, waits_to_settle: true, batch: 10, ..orders(&host, &log) };
    let mut frozen = Process::start(&short).await;
    frozen.signal("STOP").await;
    // It has the same rows, and waits with them.
    let mut next = Process::start(&Orders { lease_millis: 30_000, ..short }).await;
    frozen.signal("CONT").await;
    frozen.go_on().await;
    let zombie = frozen.report().await;
    assert_eq!((zombie.claimed, zombie.applied, zombie.stale), (10, 0, 10));
    next.go_on().await;
    let report = next.report().await;
    assert_eq!((report.claimed, report.applied, report.stale), (10, 10, 0), "the successor's result stands");
}
