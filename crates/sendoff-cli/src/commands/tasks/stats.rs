//! `sendoff tasks stats`: how many tasks stand where.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::claim::Timestamp;
use sendoff::tasks::{COUNT_MAX, KindLimit, TaskStats, TaskStatus, WorkerInfo};
use serde::Serialize;

use super::time;
use crate::args::PartStatsArgs;
use crate::exit::Answer;
use crate::output::{Table, count, print, print_json, span};
use crate::shape::{Id, Moment};

/// How tasks stand.
#[derive(Serialize, JsonSchema)]
pub(in crate::commands) struct TaskStatsShape<'s> {
    kinds: Vec<KindShape<'s>>,
    /// Since when the oldest task that may run has been due; null: none is.
    oldest_due_at: Option<Moment>,
    /// How long that is, by the database's clock.
    oldest_due_seconds: Option<f64>,
    workers: Vec<WorkerShape<'s>>,
    /// No count goes further.
    count_max: u64,
}

/// The tasks of a kind.
#[derive(Clone, Copy, Serialize, JsonSchema)]
struct KindShape<'s> {
    kind: &'s str,
    not_started: u64,
    ready: u64,
    running: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    /// Of those that are ready: due, and waiting for a worker.
    due: u64,
    /// And not due yet.
    later: u64,
    /// A live worker takes tasks of this kind.
    taken: bool,
    /// No more than these run at a time; null: as many as there are workers for.
    limit: Option<u32>,
}

/// A worker.
#[derive(Serialize, JsonSchema)]
struct WorkerShape<'s> {
    worker: Id,
    /// Several may have the same.
    name: &'s str,
    /// The kinds it takes.
    kinds: &'s [String],
    started_at: Moment,
    /// It is taken to be there until then.
    lease_until: Moment,
    /// Whether that has passed.
    expired: bool,
}

impl<'s> WorkerShape<'s> {
    fn of(worker: &'s WorkerInfo) -> Self {
        Self {
            worker: Id::of(worker.worker),
            name: &worker.name,
            kinds: &worker.kinds,
            started_at: Moment(worker.started_at.as_micros()),
            lease_until: Moment(worker.lease_until.as_micros()),
            expired: !worker.is_alive,
        }
    }
}

/// Shows it.
pub(in crate::commands) async fn run(args: &PartStatsArgs) -> Result<Answer> {
    let inspect = super::open(&args.store).await?;
    let (stats, limits, now) = (inspect.stats().await?, inspect.limits().await?, inspect.now().await?);
    let kinds = kinds(&stats, &limits);
    let late = stats.oldest_due.map(|due| age(due, now));
    if args.json {
        print_json(&TaskStatsShape {
            kinds,
            oldest_due_at: stats.oldest_due.map(|due| Moment(due.as_micros())),
            oldest_due_seconds: late.map(|late| late.as_secs_f64()),
            workers: stats.workers.iter().map(WorkerShape::of).collect(),
            count_max: COUNT_MAX,
        })?;
        return Ok(Answer::Yes);
    }
    if kinds.is_empty() {
        print("no task is here\n")?;
    } else {
        show_kinds(&kinds).print()?;
    }
    if let Some(late) = late {
        print(&format!("the oldest has been due for {}\n", span(late)))?;
    }
    print("\n")?;
    if stats.workers.is_empty() {
        return print("no worker is there: the service that has the handlers runs them\n")
            .map(|()| Answer::Yes);
    }
    show_workers(&stats.workers).print()?;
    Ok(Answer::Yes)
}

fn age(since: Timestamp, now: Timestamp) -> Duration {
    let micros = now.as_micros().saturating_sub(since.as_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// Every kind that a task, an entry or a limit has, by name.
fn kinds<'s>(stats: &'s TaskStats, limits: &'s [KindLimit]) -> Vec<KindShape<'s>> {
    let live = stats.workers.iter().filter(|worker| worker.is_alive);
    let taken: Vec<&String> = live.flat_map(|worker| &worker.kinds).collect();
    let mut kinds: BTreeMap<&'s str, KindShape<'s>> = BTreeMap::new();
    let names = stats.tasks.iter().map(|count| count.kind.as_str());
    let names = names.chain(stats.entries.iter().map(|entry| entry.kind.as_str()));
    for kind in names.chain(limits.iter().map(|limit| limit.kind.as_str())) {
        let of = |status| stats.count(kind, status);
        let entry = stats.entries.iter().find(|entry| entry.kind == kind);
        let shape = || KindShape {
            kind,
            not_started: of(TaskStatus::NotStarted),
            ready: of(TaskStatus::Ready),
            running: of(TaskStatus::Running),
            completed: of(TaskStatus::Completed),
            failed: of(TaskStatus::Failed),
            cancelled: of(TaskStatus::Cancelled),
            due: entry.map_or(0, |entry| entry.due),
            later: entry.map_or(0, |entry| entry.later),
            taken: taken.iter().any(|taken| *taken == kind),
            limit: limits.iter().find(|limit| limit.kind == kind).map(|limit| limit.most),
        };
        kinds.entry(kind).or_insert_with(shape);
    }
    kinds.into_values().collect()
}

fn show_kinds(kinds: &[KindShape<'_>]) -> Table {
    let mut table = Table::new(&[
        "KIND",
        "#NOT STARTED",
        "#READY",
        "#DUE",
        "#RUNNING",
        "#COMPLETED",
        "#FAILED",
        "#CANCELLED",
        "#LIMIT",
        "",
    ]);
    for kind in kinds {
        let numbers = [
            kind.not_started,
            kind.ready,
            kind.due,
            kind.running,
            kind.completed,
            kind.failed,
            kind.cancelled,
        ];
        let limit = kind.limit.map_or_else(|| "-".to_owned(), |most| most.to_string());
        let note = if kind.due > 0 && !kind.taken { "no worker takes it" } else { "" };
        let numbers = numbers.into_iter().map(|number| count(number, COUNT_MAX));
        table.row([kind.kind.to_owned()].into_iter().chain(numbers).chain([limit, note.to_owned()]));
    }
    table
}

fn show_workers(workers: &[WorkerInfo]) -> Table {
    let mut table = Table::new(&["NAME", "WORKER", "STARTED", "ALIVE UNTIL", "TAKES", ""]);
    for worker in workers {
        table.row([
            worker.name.clone(),
            worker.worker.to_string(),
            time(worker.started_at),
            time(worker.lease_until),
            worker.kinds.join(", "),
            if worker.is_alive { "" } else { "lost" }.to_owned(),
        ]);
    }
    table
}
