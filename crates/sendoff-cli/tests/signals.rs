//! The relay as a process, under load: stopped by SIGTERM it repeats nothing, killed it repeats only what it had in hand.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "commands/program.rs"]
mod program;
#[path = "commands/schema.rs"]
mod schema;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sendoff::{NewEvent, Outbox};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

/// The most that a worker has claimed and not settled.
const WINDOW: usize = 2_000;
/// One: after the second in a row events go one by one for a while, since one of them may be what kills.
const KILLS: usize = 1;

/// In `cargo xtask test` many, beside a build few.
fn restarts() -> usize {
    if std::env::var_os("SENDOFF_TEST_REQUIRE").is_some_and(|required| !required.is_empty()) { 20 } else { 4 }
}

fn sendoff(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sendoff"));
    command.args(arguments);
    command
}

/// A relay, which does not outlive its test.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a relay and waits until it relays.
fn start(store: &str, sink: &str) -> Relay {
    let mut child = sendoff(&["run", "--store", store, "--sink", sink, "--lease", "2"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("relaying"), "{line}");
    // Read on, or the pipe ends and its next word kills it.
    std::thread::spawn(move || errors.lines().count());
    Relay(child)
}

impl Relay {
    /// Signals it, and waits until it has ended.
    fn end(mut self, by: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, by).unwrap();
        let status = self.0.wait().unwrap();
        assert_eq!(status.success(), by == Signal::TERM, "{status}");
    }
}

/// How often each event was delivered, and how many of a key came late.
fn delivered(path: &Path) -> (HashMap<String, u32>, usize) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut latest: HashMap<String, i64> = HashMap::new();
    let mut late = 0;
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let count = counts.entry(event["id"].as_str().unwrap().to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            let position = event["position"].as_i64().unwrap();
            let highest = latest.entry(event["key"].as_str().unwrap().to_owned()).or_insert(position);
            late += usize::from(position < *highest);
            *highest = position.max(*highest);
        }
    }
    (counts, late)
}

/// Writes until it is told to stop.
fn produce(store: String, stop: Arc<AtomicBool>, written: Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options: SqliteConnectOptions = store.parse().unwrap();
            let options = options.busy_timeout(Duration::from_secs(30));
            let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
            let outbox = Outbox::new();
            while !stop.load(Ordering::SeqCst) {
                let events: Vec<NewEvent> = (0..10)
                    .map(|_| NewEvent::new("load").key(format!("key-{}", fastrand::u8(..))).payload("{}"))
                    .collect();
                let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
                outbox.enqueue_all(&mut *transaction, events).await.unwrap();
                transaction.commit().await.unwrap();
                written.fetch_add(10, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    })
}

/// Restarts a relay so often, under load, by this signal; the counts of each event at the end.
fn restarted(by: Signal, times: usize) -> HashMap<String, u32> {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("load.db").display());
    let path = directory.path().join("events.jsonl");
    let sink = format!("file:{}", path.display());
    assert!(sendoff(&["migrate", "--store", &store]).status().unwrap().success());
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let producer = produce(store.clone(), Arc::clone(&stop), Arc::clone(&written));
    for _ in 0..times {
        let before = std::fs::metadata(&path).map_or(0, |known| known.len());
        let relay = start(&store, &sink);
        // It delivers: it is in the midst of it.
        let began = Instant::now();
        while std::fs::metadata(&path).map_or(0, |known| known.len()) <= before {
            assert!(began.elapsed() < Duration::from_secs(20), "it delivers nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        relay.end(by);
    }
    stop.store(true, Ordering::SeqCst);
    producer.join().unwrap();
    let relay = start(&store, &sink);
    let wanted = written.load(Ordering::SeqCst);
    let began = Instant::now();
    while (delivered(&path).0.len() as u64) < wanted {
        assert!(began.elapsed() < Duration::from_secs(120), "{} of {wanted}", delivered(&path).0.len());
        std::thread::sleep(Duration::from_millis(100));
    }
    relay.end(Signal::TERM);
    let (counts, late) = delivered(&path);
    assert_eq!((counts.len() as u64, late), (wanted, 0), "lost, or out of order");
    counts
}

#[test]
fn a_relay_that_is_told_to_stop_repeats_nothing() {
    let restarts = restarts();
    let counts = restarted(Signal::TERM, restarts);
    let repeated = counts.values().filter(|count| **count > 1).count();
    println!("{} events, {restarts} restarts by SIGTERM, {repeated} repeated", counts.len());
    assert_eq!(repeated, 0);
}

#[test]
fn a_relay_that_is_killed_repeats_what_it_had_in_hand_and_no_more() {
    let counts = restarted(Signal::KILL, KILLS);
    let repeated = counts.values().filter(|count| **count > 1).count();
    println!("{} events, {KILLS} restarts by SIGKILL, {repeated} repeated", counts.len());
    assert!(repeated <= KILLS * WINDOW, "{repeated}");
}

#[test]
fn sinks_and_stores_that_are_none_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("x.db").display());
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let done = program::run(arguments);
        assert_eq!(done.code, code, "{}", done.errors);
        assert!(done.errors.contains(words), "{}", done.errors);
    };
    refused(&["run", "--store", &store, "--sink", "ftp://u:s3cret@x"], 2, "\"ftp\" is no sink");
    refused(&["run", "--store", &store, "--sink", "file:"], 2, "needs a path");
    refused(&["run", "--store", &store, "--sink", "stdout:"], 3, "migrate");
    refused(&["run", "--store", &store, "--sink", "null:", "--lease", "0"], 2, "at least 1");
}
