//! Producers, and workers that are real processes: without faults, killed and replaced, frozen past their lease.

use std::collections::{HashMap, HashSet};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sendoff::testkit::{HostTransaction as _, StoreHarness};
use sendoff::{EventId, NewEvent};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout};
use tokio::sync::Mutex;

use crate::outbox_worker::{Orders, Report, command};

const PRODUCERS: u64 = 8;
const HOT_KEYS: usize = 4;
const KEYS: usize = 500;

/// What the producers know.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) committed: HashSet<EventId>,
    pub(crate) rolled_back: HashSet<EventId>,
    /// The order of each key, as the host serialised it.
    pub(crate) keys: HashMap<String, Vec<EventId>>,
}

/// One process that works.
pub(crate) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) pid: u32,
}

impl Process {
    /// Starts one and waits until it works.
    pub(crate) async fn start(orders: &Orders) -> Self {
        Self::spawn(command(orders)).await
    }

    pub(crate) async fn spawn(mut command: tokio::process::Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).await.unwrap();
        assert_eq!(line.trim(), "ready", "a worker did not start");
        let pid = child.id().unwrap();
        Self { child, out, pid }
    }

    /// `kill -<signal>`.
    pub(crate) async fn signal(&self, signal: &str) {
        let status = tokio::process::Command::new("kill")
            .args([format!("-{signal}"), self.pid.to_string()])
            .status()
            .await
            .unwrap();
        assert!(status.success(), "kill -{signal} {}", self.pid);
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> u32 {
        self.child.kill().await.unwrap();
        self.pid
    }

    /// Lets it finish, settle and release.
    pub(crate) async fn stop(mut self) -> Report {
        drop(self.child.stdin.take());
        self.report().await
    }

    /// Tells it to go on.
    pub(crate) async fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go on\n").await.unwrap();
    }

    pub(crate) async fn report(&mut self) -> Report {
        let mut line = String::new();
        self.out.read_line(&mut line).await.unwrap();
        self.child.wait().await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("a worker's report: {error}: {line}"))
    }

    /// Waits until it ends by itself.
    pub(crate) async fn wait(mut self) -> u32 {
        // Kept open: to wait would close it, and that is the word to stop.
        let _stdin = self.child.stdin.take();
        self.child.wait().await.unwrap();
        self.pid
    }
}

/// Transactions until it is told to stop: hot and cold keys, a third rolled back, some held open while later ones commit.
pub(crate) async fn produce<H: StoreHarness>(
    harness: Arc<H>,
    number: u64,
    keys: Arc<Vec<Mutex<()>>>,
    written: Arc<Mutex<Written>>,
    stop: Arc<AtomicBool>,
) {
    let mut random = fastrand::Rng::with_seed(number);
    while !stop.load(Ordering::SeqCst) {
        let index = if random.bool() { random.usize(..HOT_KEYS) } else { random.usize(..KEYS) };
        // The host serialises the transactions of a key.
        let _alone = keys[index].lock().await;
        let key = format!("key-{index}");
        let new: Vec<NewEvent> = (0..random.usize(1..=5))
            .map(|part| {
                let event = NewEvent::new("race").payload("x".repeat(random.usize(..300)));
                if part == 4 { event } else { event.key(key.clone()) }
            })
            .collect();
        let mut open = harness.begin().await;
        let ids = open.enqueue(&new).await.unwrap();
        // A writer that SQLite lets in keeps all others out.
        let longest = if harness.writes_side_by_side() { 60 } else { 3 };
        if random.u8(..4) == 0 {
            tokio::time::sleep(Duration::from_millis(random.u64(..longest))).await;
        }
        if random.u8(..3) == 0 {
            open.rollback().await;
            written.lock().await.rolled_back.extend(ids);
        } else {
            open.commit().await.unwrap();
            let mut written = written.lock().await;
            written.committed.extend(&ids);
            for (id, event) in ids.iter().zip(&new) {
                if let Some(key) = &event.key {
                    written.keys.entry(key.clone()).or_default().push(*id);
                }
            }
        }
        // On one machine with the workers: leaves them room.
        tokio::time::sleep(Duration::from_millis(random.u64(..8))).await;
    }
}

pub(crate) fn start_producers<H: StoreHarness>(
    harness: &Arc<H>,
    written: &Arc<Mutex<Written>>,
    stop: &Arc<AtomicBool>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let keys = Arc::new((0..KEYS).map(|_| Mutex::new(())).collect::<Vec<_>>());
    let start = |number| {
        let (harness, keys) = (Arc::clone(harness), Arc::clone(&keys));
        tokio::spawn(produce(harness, number, keys, Arc::clone(written), Arc::clone(stop)))
    };
    (0..PRODUCERS).map(start).collect()
}

/// What is written in a log, but for a line that is only half written.
pub(crate) fn whole_lines(log: &FilePath) -> String {
    let mut text = std::fs::read_to_string(log).unwrap_or_default();
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    text
}

/// What the broker saw: who published what, in this order.
pub(crate) fn published(log: &FilePath) -> Vec<(u32, EventId)> {
    whole_lines(log)
        .lines()
        .map(|line| {
            let mut parts = line.split(' ');
            let pid = parts.next().unwrap().parse().unwrap();
            (pid, parts.next().unwrap().parse().unwrap())
        })
        .collect()
}

/// Waits until everything that was committed has been published.
pub(crate) async fn until_published(log: &FilePath, written: &Mutex<Written>) {
    let began = Instant::now();
    loop {
        let seen: HashSet<EventId> = published(log).into_iter().map(|(_, id)| id).collect();
        let missing = written.lock().await.committed.difference(&seen).count();
        if missing == 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{missing} committed events are not published");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What was wrong, counted.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) published: usize,
    pub(crate) duplicates: usize,
    /// Published again though nobody who had published it was killed.
    pub(crate) unexplained: usize,
    pub(crate) rolled_back: usize,
    pub(crate) out_of_order: usize,
}

pub(crate) fn judge(written: &Written, log: &[(u32, EventId)], killed: &HashSet<u32>) -> Verdict {
    let mut verdict = Verdict { published: log.len(), ..Verdict::default() };
    let mut first: HashMap<EventId, usize> = HashMap::new();
    let mut by_killed: HashSet<EventId> = HashSet::new();
    for (index, (pid, id)) in log.iter().enumerate() {
        if first.contains_key(id) {
            verdict.duplicates += 1;
            verdict.unexplained += usize::from(!by_killed.contains(id));
        }
        first.entry(*id).or_insert(index);
        if killed.contains(pid) {
            by_killed.insert(*id);
        }
        verdict.rolled_back += usize::from(!written.committed.contains(id));
    }
    for order in written.keys.values() {
        let seen: Vec<usize> = order.iter().filter_map(|id| first.get(id).copied()).collect();
        verdict.out_of_order += seen.windows(2).filter(|pair| pair[0] > pair[1]).count();
    }
    verdict
}

pub(crate) fn log_file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("published");
    (directory, log)
}

/// Eight producers and four processes for so long, without faults.
pub(crate) async fn race<H: StoreHarness>(name: &str, harness: H, url: &str, names: &str, time: Duration) {
    let harness = Arc::new(harness);
    let (_directory, log) = log_file();
    let orders = Orders::new(url, names, &log);
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(Process::start(&orders).await);
    }
    let (written, stop) = (Arc::<Mutex<Written>>::default(), Arc::new(AtomicBool::new(false)));
    let producers = start_producers(&harness, &written, &stop);
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::SeqCst);
    for producer in producers {
        producer.await.unwrap();
    }
    until_published(&log, &written).await;
    let mut stale = 0;
    for worker in workers {
        let report = worker.stop().await;
        stale += report.stale + report.missing + report.lost;
        assert_eq!(report.named, 0, "without crashes nothing is written down");
    }
    let written = written.lock().await;
    let verdict = judge(&written, &published(&log), &HashSet::new());
    println!(
        "{name} race: {} committed, {} rolled back, {} published in {} s: lost 0, duplicates {}, aborted {}, out of order {}, stale {stale}",
        written.committed.len(),
        written.rolled_back.len(),
        verdict.published,
        time.as_secs(),
        verdict.duplicates,
        verdict.rolled_back,
        verdict.out_of_order,
    );
    assert_eq!((verdict.duplicates, verdict.rolled_back, verdict.out_of_order, stale), (0, 0, 0, 0));
}

/// The same while every second a worker is killed, added, stopped or replaced.
pub(crate) async fn race_with_kills<H: StoreHarness>(
    name: &str,
    harness: H,
    url: &str,
    names: &str,
    time: Duration,
) {
    let harness = Arc::new(harness);
    let (_directory, log) = log_file();
    let orders = Orders { lease_millis: 3_000, ..Orders::new(url, names, &log) };
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(Process::start(&orders).await);
    }
    let (written, stop) = (Arc::<Mutex<Written>>::default(), Arc::new(AtomicBool::new(false)));
    let producers = start_producers(&harness, &written, &stop);
    let (mut killed, mut stopped, mut added) = (HashSet::new(), 0, 0);
    let began = Instant::now();
    while began.elapsed() < time {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let one = fastrand::usize(..workers.len());
        // One is killed in any case, and first.
        let fate = if killed.is_empty() { 0 } else { fastrand::u8(..4) };
        match fate {
            0 | 1 => {
                killed.insert(workers.swap_remove(one).kill().await);
                workers.push(Process::start(&orders).await);
            }
            2 if workers.len() > 2 => {
                workers.swap_remove(one).stop().await;
                stopped += 1;
            }
            _ if workers.len() < 6 => {
                workers.push(Process::start(&orders).await);
                added += 1;
            }
            _ => {}
        }
    }
    stop.store(true, Ordering::SeqCst);
    for producer in producers {
        producer.await.unwrap();
    }
    until_published(&log, &written).await;
    for worker in workers {
        worker.stop().await;
    }
    let written = written.lock().await;
    let verdict = judge(&written, &published(&log), &killed);
    println!(
        "{name} torture: {} committed, {} published, kills {}, stops {stopped}, joins {added}: lost 0, duplicates {} (unexplained {}), aborted {}, out of order {}",
        written.committed.len(),
        verdict.published,
        killed.len(),
        verdict.duplicates,
        verdict.unexplained,
        verdict.rolled_back,
        verdict.out_of_order,
    );
    assert!(!killed.is_empty(), "nobody was killed");
    assert_eq!((verdict.unexplained, verdict.rolled_back, verdict.out_of_order), (0, 0, 0));
}
