//! Runners in this process, on every store.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sendoff::tasks::{
    Bell, Context, Drained, NewTask, RetryPolicy, Runner, RunnerConfig, RunnerStats, Settled, TaskError,
    TaskEventKind, TaskId, TaskStatus,
};
use sendoff::testkit::{Damage, TaskHarness, TaskTransaction as _};
use sendoff::{StoreError, StoreErrorKind};
use tokio::sync::{Notify, Semaphore, oneshot};

type Case<H> = (&'static str, fn(Arc<H>) -> Pin<Box<dyn Future<Output = ()> + Send>>);

pub(super) fn cases<H: TaskHarness>() -> Vec<Case<H>> {
    macro_rules! cases {
        ($($name:ident,)*) => { vec![$((stringify!($name), |harness| Box::pin($name(harness)),)),*] };
    }
    cases![
        a_handler_decides_what_becomes_of_its_task,
        no_more_run_at_a_time_than_may,
        a_runner_that_stops_lets_its_tasks_end,
        a_runner_that_stops_gives_back_what_does_not_end,
        a_handler_is_told_that_its_task_was_cancelled,
        a_runner_that_was_taken_for_lost_begins_anew,
        a_bell_wakes_a_runner_at_once,
        everything_due_is_run_inline,
        a_runner_that_could_run_nothing_is_refused,
    ]
}

const PATIENCE: Duration = Duration::from_secs(20);

fn config() -> RunnerConfig {
    RunnerConfig {
        lease: Duration::from_secs(3),
        poll_first: Duration::from_millis(5),
        poll_most: Duration::from_millis(50),
        watch: Duration::from_millis(50),
        retry: RetryPolicy { first: Duration::from_millis(10), ..RetryPolicy::default() },
        ..RunnerConfig::default()
    }
}

/// A runner under way.
struct Started {
    stop: oneshot::Sender<()>,
    bell: Bell,
    running: tokio::task::JoinHandle<Result<RunnerStats, StoreError>>,
}

impl Started {
    fn start(runner: Runner) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let bell = runner.bell();
        let running = tokio::spawn(runner.run(async move { drop(stopped.await) }));
        Self { stop, bell, running }
    }

    async fn stop(self) -> RunnerStats {
        self.stop.send(()).unwrap();
        self.running.await.unwrap().unwrap()
    }
}

async fn submit<H: TaskHarness>(harness: &H, task: NewTask) -> TaskId {
    let mut transaction = harness.begin().await;
    let id = transaction.submit(task).await.unwrap().id();
    transaction.commit().await.unwrap();
    id
}

async fn until<H: TaskHarness>(harness: &H, task: TaskId, status: TaskStatus) {
    let began = Instant::now();
    loop {
        let (found, events) = harness.inspect().get(task).await.unwrap().unwrap();
        if found.status == status {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "not {status}: {found:?} {events:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[derive(serde::Deserialize)]
struct Order {
    ends: String,
}

async fn a_handler_decides_what_becomes_of_its_task<H: TaskHarness>(harness: Arc<H>) {
    let runner = Runner::new(harness.store()).config(config()).handle(
        "order",
        |context: Context, order: Order| async move {
            context.progress("began").await?;
            match (order.ends.as_str(), context.attempt()) {
                ("well", _) | ("late", 2) | ("panic", 2) => Ok(()),
                ("late", _) => Err(TaskError::retry_in(Duration::from_millis(20), "not yet")),
                ("panic", _) => panic!("on purpose"),
                ("never", _) => Err("x".parse::<u32>().unwrap_err().into()),
                _ => Err(TaskError::fatal("unknown")),
            }
        },
    );
    let order = |ends: &str| {
        NewTask::new("order").json(&serde_json::json!({ "ends": ends })).unwrap().attempts_max(3)
    };
    let ends = [
        (order("well"), TaskStatus::Completed, 1, None),
        (order("late"), TaskStatus::Completed, 2, Some("not yet")),
        (order("panic"), TaskStatus::Completed, 2, Some("its handler panicked: on purpose")),
        (order("never"), TaskStatus::Failed, 3, Some("invalid digit found in string")),
        (order("badly"), TaskStatus::Failed, 1, Some("unknown")),
        (
            NewTask::new("order").payload("{"),
            TaskStatus::Failed,
            1,
            Some("its payload is not what its handler takes"),
        ),
    ];
    let mut tasks = Vec::new();
    for (task, ..) in &ends {
        tasks.push(submit(&*harness, task.clone()).await);
    }
    let started = Started::start(runner);
    for (id, (_, status, attempts, error)) in tasks.iter().zip(&ends) {
        until(&*harness, *id, *status).await;
        let (task, _) = harness.inspect().get(*id).await.unwrap().unwrap();
        assert_eq!(task.attempt, *attempts, "{task:?}");
        let said = task.error.clone().unwrap_or_default();
        assert!(error.is_none_or(|error| said.starts_with(error)), "{task:?}");
    }
    let stats = started.stop().await;
    assert_eq!((stats.completed, stats.failed, stats.panicked, stats.stale), (3, 2, 1, 0), "{stats:?}");
    assert!(harness.inspect().stats().await.unwrap().workers.is_empty(), "it has left");
}

async fn no_more_run_at_a_time_than_may<H: TaskHarness>(harness: Arc<H>) {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, highest) = (Arc::clone(&now), Arc::clone(&most));
    let config = RunnerConfig { concurrency: 3, ..config() };
    let runner =
        Runner::new(harness.store()).config(config).handle_bytes("a", move |_: Context, _: Vec<u8>| {
            let (now, most) = (Arc::clone(&counted), Arc::clone(&highest));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        });
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(submit(&*harness, NewTask::new("a")).await);
    }
    let started = Started::start(runner);
    for id in tasks {
        until(&*harness, id, TaskStatus::Completed).await;
    }
    assert_eq!(started.stop().await.completed, 20);
    assert_eq!(most.load(Ordering::SeqCst), 3, "as many as may, and no more");
}

/// A runner whose handler says that it has begun, and waits for a word.
fn patient<H: TaskHarness>(harness: &H, config: RunnerConfig) -> (Started, Arc<Notify>, Arc<Semaphore>) {
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (says, waits) = (Arc::clone(&began), Arc::clone(&go_on));
    let runner =
        Runner::new(harness.store()).config(config).handle_bytes("a", move |_: Context, _: Vec<u8>| {
            let (says, waits) = (Arc::clone(&says), Arc::clone(&waits));
            async move {
                says.notify_one();
                waits.acquire().await.unwrap().forget();
                Ok(())
            }
        });
    (Started::start(runner), began, go_on)
}

async fn a_runner_that_stops_lets_its_tasks_end<H: TaskHarness>(harness: Arc<H>) {
    let (started, began, go_on) = patient(&*harness, config());
    let id = submit(&*harness, NewTask::new("a")).await;
    began.notified().await;
    let stopping = tokio::spawn(started.stop());
    // It claims nothing more, and ends when its task does.
    let later = submit(&*harness, NewTask::new("a")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!stopping.is_finished());
    go_on.add_permits(1);
    let stats = stopping.await.unwrap();
    assert_eq!((stats.claimed, stats.completed), (1, 1));
    until(&*harness, id, TaskStatus::Completed).await;
    until(&*harness, later, TaskStatus::Ready).await;
}

async fn a_runner_that_stops_gives_back_what_does_not_end<H: TaskHarness>(harness: Arc<H>) {
    let config =
        RunnerConfig { drain: Duration::from_millis(100), lease: Duration::from_secs(600), ..config() };
    let (started, began, _go_on) = patient(&*harness, config);
    let id = submit(&*harness, NewTask::new("a")).await;
    began.notified().await;
    let stats = started.stop().await;
    assert_eq!((stats.claimed, stats.completed), (1, 0));
    let (task, events) = harness.inspect().get(id).await.unwrap().unwrap();
    assert_eq!(task.status, TaskStatus::Ready, "at once, not when the lease has ended");
    assert_eq!(events.last().unwrap().kind, TaskEventKind::TaskReturned);
}

async fn a_handler_is_told_that_its_task_was_cancelled<H: TaskHarness>(harness: Arc<H>) {
    let (says, told) = oneshot::channel();
    let says = Arc::new(std::sync::Mutex::new(Some(says)));
    let began = Arc::new(Notify::new());
    let notify = Arc::clone(&began);
    let runner = Runner::new(harness.store()).config(config()).handle_bytes(
        "a",
        move |context: Context, _: Vec<u8>| {
            let (says, began) = (Arc::clone(&says), Arc::clone(&notify));
            async move {
                assert!(!context.is_cancelled());
                began.notify_one();
                context.cancelled().await;
                says.lock().unwrap().take().unwrap().send(context.is_cancelled()).unwrap();
                Ok(())
            }
        },
    );
    let id = submit(&*harness, NewTask::new("a")).await;
    let started = Started::start(runner);
    began.notified().await;
    assert_eq!(harness.inspect().cancel(id, "an operator").await.unwrap(), Settled::Applied);
    let is_told = tokio::time::timeout(PATIENCE, told).await.expect("its handler is told").unwrap();
    assert!(is_told);
    let stats = started.stop().await;
    assert_eq!((stats.completed, stats.stale), (0, 1), "what it came to counts for nothing");
    until(&*harness, id, TaskStatus::Cancelled).await;
}

async fn a_runner_that_was_taken_for_lost_begins_anew<H: TaskHarness>(harness: Arc<H>) {
    let config = RunnerConfig { lease: Duration::from_millis(600), ..config() };
    let (started, began, go_on) = patient(&*harness, config);
    let id = submit(&*harness, NewTask::new("a")).await;
    began.notified().await;
    let stats = harness.inspect().stats().await.unwrap();
    let first = stats.workers[0].worker;
    harness.damage(Damage::LoseWorker(first)).await;
    // Its own task comes back to it, as another attempt, under another name.
    tokio::time::timeout(PATIENCE, began.notified()).await.expect("it goes on");
    go_on.add_permits(2);
    until(&*harness, id, TaskStatus::Completed).await;
    let (task, _) = harness.inspect().get(id).await.unwrap().unwrap();
    assert_eq!(task.attempt, 2);
    assert_ne!(task.owner, Some(first));
    let stats = started.stop().await;
    assert_eq!((stats.lost, stats.completed, stats.stale), (1, 1, 1), "{stats:?}");
}

async fn a_bell_wakes_a_runner_at_once<H: TaskHarness>(harness: Arc<H>) {
    let sleepy = Duration::from_secs(3_600);
    let config = RunnerConfig { poll_first: sleepy, poll_most: sleepy, lease: sleepy, ..config() };
    let runner = Runner::new(harness.store()).config(config);
    let started = Started::start(runner.handle_bytes("a", |_: Context, _: Vec<u8>| async { Ok(()) }));
    let began = Instant::now();
    while harness.inspect().stats().await.unwrap().workers.is_empty() {
        assert!(began.elapsed() < PATIENCE, "it did not join");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let id = submit(&*harness, NewTask::new("a")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    until(&*harness, id, TaskStatus::Ready).await;
    started.bell.ring();
    until(&*harness, id, TaskStatus::Completed).await;
    started.stop().await;
}

async fn everything_due_is_run_inline<H: TaskHarness>(harness: Arc<H>) {
    let runner = Runner::new(harness.store()).config(RunnerConfig {
        retry: RetryPolicy { first: Duration::from_secs(600), ..RetryPolicy::default() },
        ..config()
    });
    let store = Arc::clone(&harness);
    let runner = runner
        .handle_bytes("first", move |_: Context, _: Vec<u8>| {
            let store = Arc::clone(&store);
            async move {
                // What a handler submits is due as well.
                submit(&*store, NewTask::new("second")).await;
                Ok(())
            }
        })
        .handle_bytes("second", |_: Context, _: Vec<u8>| async { Ok(()) })
        .handle_bytes("fails", |_: Context, _: Vec<u8>| async { Err(TaskError::fatal("no")) })
        .handle_bytes("later", |_: Context, _: Vec<u8>| async { panic!("not now") });
    for kind in ["first", "first", "fails", "later"] {
        submit(&*harness, NewTask::new(kind)).await;
    }
    let drained = runner.drain_inline().await.unwrap();
    assert_eq!(drained, Drained { completed: 4, failed: 1, retried: 1 });
    assert_eq!(runner.drain_inline().await.unwrap(), Drained::default(), "nothing is due");
    let stats = harness.inspect().stats().await.unwrap();
    assert_eq!(stats.count("later", TaskStatus::Ready), 1);
    assert!(stats.workers.is_empty());
}

async fn a_runner_that_could_run_nothing_is_refused<H: TaskHarness>(harness: Arc<H>) {
    let with = |kind: &str| {
        Runner::new(harness.store())
            .config(config())
            .handle_bytes(kind, |_: Context, _: Vec<u8>| async { Ok(()) })
    };
    for (runner, part) in [
        (Runner::new(harness.store()), "there are none"),
        (with(""), "it is empty"),
        (with("a").config(RunnerConfig { concurrency: 0, ..config() }), "nothing would ever be run"),
        (with("a").config(RunnerConfig { lease: Duration::ZERO, ..config() }), "no sign of life"),
    ] {
        let error = runner.run(std::future::pending()).await.expect_err("it is refused");
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
        assert!(error.to_string().contains(part), "{error}");
    }
}
