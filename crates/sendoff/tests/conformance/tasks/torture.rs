//! Runners that are real processes: killed and replaced, busy for longer than their lease, frozen past it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sendoff::tasks::{Inspect, NewTask, TaskEventKind, TaskId, TaskStatus};
use sendoff::testkit::legal_history;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use super::journal::{Journal, Ran, now_micros};
use super::worker::{Orders, Report, command};

const PROCESSES: usize = 8;
/// Two races at once would be sixteen processes: each would show the other's load.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Only a broken promise takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many tasks: `SENDOFF_TEST_TASKS=100000` is the long form.
pub(crate) fn race_tasks() -> usize {
    std::env::var("SENDOFF_TEST_TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

/// One process that works.
pub(crate) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    pid: u32,
}

impl Process {
    pub(crate) async fn start(orders: &Orders) -> Self {
        let mut child = command(orders).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id().unwrap();
        let mut process = Self { child, out, pid };
        assert_eq!(process.line().await, "ready", "a worker did not start");
        process
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).await.unwrap();
        line.trim().to_owned()
    }

    pub(crate) async fn signal(&self, signal: &str) {
        let status = tokio::process::Command::new("kill")
            .args([format!("-{signal}"), self.pid.to_string()])
            .status()
            .await
            .unwrap();
        assert!(status.success(), "kill -{signal} {}", self.pid);
    }

    /// SIGKILL; when it was gone.
    async fn kill(mut self) -> (i64, i64) {
        self.child.kill().await.unwrap();
        (i64::from(self.pid), now_micros())
    }

    /// Lets it finish, settle and leave.
    pub(crate) async fn stop(mut self) -> Report {
        drop(self.child.stdin.take());
        loop {
            let line = self.line().await;
            if line != "began" {
                self.child.wait().await.unwrap();
                return serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("a worker's report: {error}: {line}"));
            }
        }
    }
}

pub(crate) async fn until_completed(inspect: &dyn Inspect, total: u64, patience: Duration) {
    let began = Instant::now();
    loop {
        let stats = inspect.stats().await.unwrap();
        let done = stats.count("work", TaskStatus::Completed);
        if done >= total.min(sendoff::tasks::COUNT_MAX) {
            return;
        }
        assert!(began.elapsed() < patience, "{done} of {total} tasks are completed: {stats:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Every second one of eight is killed and replaced, until everything is done.
pub(crate) async fn race_with_kills(
    name: &str,
    inspect: &dyn Inspect,
    url: &str,
    names: &str,
    tasks: &[TaskId],
) {
    let orders = Orders::new(url, names);
    let _alone = ONE_AT_A_TIME.lock().await;
    let began = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..PROCESSES {
        workers.push(Process::start(&orders).await);
    }
    let mut killed: HashMap<i64, i64> = HashMap::new();
    let patience = PATIENCE + Duration::from_millis(tasks.len() as u64 * 20);
    loop {
        let next = tokio::time::sleep(Duration::from_secs(1));
        let left = inspect.stats().await.unwrap().tasks.iter().filter(|count| count.status.is_live()).count();
        if left == 0 && !killed.is_empty() {
            break;
        }
        assert!(began.elapsed() < patience, "not done in {patience:?}");
        next.await;
        let one = fastrand::usize(..workers.len());
        let (pid, at) = workers.swap_remove(one).kill().await;
        killed.insert(pid, at);
        workers.push(Process::start(&orders).await);
    }
    let took = began.elapsed();
    let mut all = Report::default();
    for worker in workers {
        let report = worker.stop().await;
        all.stale += report.stale;
        all.lost += report.lost;
        all.mended += report.mended;
        all.reaped += report.reaped;
    }
    let ran = Journal::open(url, names).await.read().await;
    let verdict = judge(inspect, &ran, &killed, tasks).await;
    println!(
        "{name}: {} tasks, {} attempts, {} kills in {:.1} s: completed {}, run twice at the same time {}, taken from a live worker {}, returned {}, stale {}, mended {}",
        tasks.len(),
        ran.len(),
        killed.len(),
        took.as_secs_f64(),
        verdict.completed,
        verdict.overlaps,
        verdict.late,
        verdict.returned,
        all.stale,
        all.mended,
    );
    assert_eq!(verdict.completed, tasks.len(), "every task is completed");
    assert_eq!(verdict.overlaps, 0, "none is run twice at the same time");
    assert!(verdict.late <= tasks.len() / 100, "{} attempts outlived their worker's lease", verdict.late);
    assert_eq!(all.mended, 0, "nothing was ever broken");
    let stats = inspect.stats().await.unwrap();
    assert!(stats.entries.is_empty(), "no entry is left: {:?}", stats.entries);
    // Who was killed last is alive until its lease has ended; who has stopped has left.
    let ended = Instant::now();
    while inspect.stats().await.unwrap().workers.iter().any(|worker| worker.is_alive) {
        let lease = Duration::from_millis(orders.lease_millis);
        assert!(ended.elapsed() < lease * 2, "a worker that has stopped is registered still");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What was found in the journal and in the histories.
#[derive(Debug, Default)]
struct Verdict {
    completed: usize,
    /// Two handlers at once, both of workers that were alive and within their lease.
    overlaps: usize,
    /// Attempts that went on after their worker's lease had ended.
    late: usize,
    returned: usize,
}

async fn judge(inspect: &dyn Inspect, ran: &[Ran], killed: &HashMap<i64, i64>, tasks: &[TaskId]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut attempts: HashMap<&str, Vec<&Ran>> = HashMap::new();
    for one in ran {
        attempts.entry(one.task.as_str()).or_default().push(one);
    }
    for id in tasks {
        let (task, events) = inspect.get(*id).await.unwrap().expect("it is there");
        legal_history(&task, &events).unwrap();
        verdict.completed += usize::from(task.status == TaskStatus::Completed);
        let text = id.to_string();
        let of_task = attempts.get(text.as_str()).map_or(&[][..], Vec::as_slice);
        // The one that completed it ran to its end: a stale completion is none.
        let completing = of_task.iter().find(|one| one.attempt == i64::from(task.attempt));
        assert!(
            completing.is_some_and(|one| one.ended.is_some()),
            "{id} was completed by nobody: {of_task:?}"
        );
        for pair in of_task.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let returned = events.iter().find(|event| {
                event.kind == TaskEventKind::TaskReturned && i64::from(event.attempt) == before.attempt
            });
            verdict.returned += usize::from(returned.is_some());
            let gone = before.ended.or_else(|| killed.get(&before.pid).copied());
            let ended = gone.unwrap_or(i64::MAX);
            if returned.is_some_and(|returned| returned.at.as_micros() < ended) {
                // Its worker had not given a sign of life in time: from then on the task was not its own.
                verdict.late += 1;
            } else {
                verdict.overlaps += usize::from(after.began < ended);
            }
        }
    }
    verdict
}

/// A handler that takes several leases keeps its task: its worker is alive.
pub(crate) async fn long_handler(inspect: &dyn Inspect, url: &str, names: &str, task: TaskId) {
    let orders = Orders {
        lease_millis: 2_000,
        work_millis: 5_000,
        failures: 0,
        tells: true,
        ..Orders::new(url, names)
    };
    let mut busy = Process::start(&orders).await;
    assert_eq!(busy.line().await, "began");
    let other = Process::start(&Orders { tells: false, ..orders }).await;
    until_completed(inspect, 1, PATIENCE).await;
    let (found, events) = inspect.get(task).await.unwrap().unwrap();
    assert_eq!(found.attempt, 1, "nobody else had it: {events:?}");
    assert_eq!((busy.stop().await.completed, other.stop().await.completed), (1, 0));
}

/// One that is frozen past its lease loses its task, and its late result is refused.
pub(crate) async fn frozen(inspect: &dyn Inspect, url: &str, names: &str, task: TaskId) {
    let orders =
        Orders { lease_millis: 2_500, work_millis: 500, failures: 0, tells: true, ..Orders::new(url, names) };
    let mut zombie = Process::start(&orders).await;
    assert_eq!(zombie.line().await, "began");
    zombie.signal("STOP").await;
    let mut heir = Process::start(&orders).await;
    assert_eq!(heir.line().await, "began", "its task is taken over when the lease has ended");
    until_completed(inspect, 1, PATIENCE).await;
    let completed = inspect.get(task).await.unwrap().unwrap();
    zombie.signal("CONT").await;
    let late = zombie.stop().await;
    assert_eq!((late.completed, late.stale), (0, 1), "its late result is refused: {late:?}");
    assert_eq!(heir.stop().await.completed, 1);
    let (found, events) = inspect.get(task).await.unwrap().unwrap();
    assert_eq!((&found, &events), (&completed.0, &completed.1), "and changes nothing");
    assert_eq!(found.status, TaskStatus::Completed);
    assert!(found.attempt > 1, "{events:?}");
    legal_history(&found, &events).unwrap();
}

pub(crate) fn work() -> NewTask {
    NewTask::new("work").attempts_max(1_000)
}
