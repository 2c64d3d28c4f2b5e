//! `sendoff tasks show`: everything that is known of one task, and what happened to it.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use sendoff::tasks::{LIST_MAX, Task, TaskEvent, TaskEventKind, TaskId, TaskStatus};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{statuses, time};
use crate::args::TaskArgs;
use crate::exit::Answer;
use crate::output::{Table, print, print_json, span, visible};
use crate::shape::{Id, Moment};

/// A task and its history, or that there is none.
#[derive(Serialize, JsonSchema)]
pub(in crate::commands) struct TaskShown<'t> {
    id: Id,
    /// Null: there is no such task.
    task: Option<TaskJson<'t>>,
    /// What happened to it, from the beginning.
    history: Vec<HappenedShape<'t>>,
    /// There may be more: only the first events are here.
    history_is_cut: bool,
}

/// A task with all that is known of it.
#[derive(Serialize, JsonSchema)]
pub(in crate::commands) struct TaskJson<'t> {
    id: Id,
    kind: &'t str,
    #[schemars(extend("enum" = statuses()))]
    status: &'static str,
    /// If it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    payload: Option<&'t RawValue>,
    /// If it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    payload_base64: Option<String>,
    /// Higher ones go first.
    priority: i16,
    /// At most one live task has it.
    unique_key: Option<&'t str>,
    /// Not before then.
    run_at: Moment,
    /// How often it was claimed.
    attempt: u32,
    /// So often it is tried.
    attempts_max: u32,
    /// How long one attempt may take.
    run_time_seconds: Option<f64>,
    /// The worker that has it, or had it last.
    owner: Option<Id>,
    /// When this attempt is taken from its worker, if it has a limit of its own.
    lease_until: Option<Moment>,
    created_at: Moment,
    /// When it was last claimed.
    started_at: Option<Moment>,
    /// When it was completed, given up or called off.
    finished_at: Option<Moment>,
    /// What went wrong last.
    error: Option<&'t str>,
    /// What its handler last said about how far it is.
    progress: Option<&'t str>,
}

impl<'t> TaskJson<'t> {
    pub(super) fn of(task: &'t Task) -> Self {
        let at = |at: sendoff::claim::Timestamp| Moment(at.as_micros());
        let payload: Option<&RawValue> = serde_json::from_slice(&task.payload).ok();
        Self {
            id: Id::of(task.id),
            kind: &task.kind,
            status: task.status.word(),
            payload,
            payload_base64: payload.is_none().then(|| STANDARD.encode(&task.payload)),
            priority: task.priority,
            unique_key: task.unique_key.as_deref(),
            run_at: at(task.run_at),
            attempt: task.attempt,
            attempts_max: task.attempts_max,
            run_time_seconds: task.run_time.map(|time| time.as_secs_f64()),
            owner: task.owner.map(Id::of),
            lease_until: task.lease_until.map(at),
            created_at: at(task.created_at),
            started_at: task.started_at.map(at),
            finished_at: task.finished_at.map(at),
            error: task.error.as_deref(),
            progress: task.progress.as_deref(),
        }
    }
}

/// One thing that happened to a task.
#[derive(Serialize, JsonSchema)]
struct HappenedShape<'t> {
    #[schemars(extend("enum" = TaskEventKind::ALL.map(TaskEventKind::word)))]
    event: &'static str,
    /// During which attempt; 0: before the first.
    attempt: u32,
    /// Whose attempt that was.
    worker: Option<Id>,
    at: Moment,
    /// What is said about it: an error, who called it off.
    detail: Option<&'t str>,
}

impl<'t> HappenedShape<'t> {
    fn of(event: &'t TaskEvent) -> Self {
        Self {
            event: event.kind.word(),
            attempt: event.attempt,
            worker: event.owner.map(Id::of),
            at: Moment(event.at.as_micros()),
            detail: event.detail.as_deref(),
        }
    }
}

/// Shows it.
pub(in crate::commands) async fn run(args: &TaskArgs) -> Result<Answer> {
    let found = super::open(&args.store).await?.get(args.task).await?;
    let (task, history) = match &found {
        Some((task, history)) => (Some(task), &history[..]),
        None => (None, &[][..]),
    };
    let history_is_cut = history.len() == LIST_MAX as usize;
    if args.json {
        let (id, task) = (Id::of(args.task), task.map(TaskJson::of));
        let history = history.iter().map(HappenedShape::of).collect();
        print_json(&TaskShown { id, task, history, history_is_cut })?;
    }
    let Some(task) = task else {
        eprintln!("{}", no_such_task(args.task));
        return Ok(Answer::No);
    };
    if !args.json {
        print(&shown(task))?;
        happened(history).print()?;
        if history_is_cut {
            eprintln!("only the first {LIST_MAX} events of its history are shown");
        }
    }
    Ok(Answer::Yes)
}

pub(super) fn no_such_task(task: TaskId) -> String {
    format!("there is no task {task}: it was purged, or its transaction never committed")
}

fn shown(task: &Task) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&format!("{name:>12}  {}\n", visible(value)));
    line("task", &task.id.to_string());
    line("kind", &task.kind);
    line("status", task.status.word());
    line("attempts", &format!("{} of {}", task.attempt, task.attempts_max));
    if task.priority != 0 {
        line("priority", &task.priority.to_string());
    }
    if let Some(key) = &task.unique_key {
        line("unique key", key);
    }
    line("written", &time(task.created_at));
    if task.status.is_live() {
        line("due", &time(task.run_at));
    }
    if let Some(time) = task.run_time {
        line("time limit", &format!("{} for an attempt", span(time)));
    }
    if let Some(owner) = task.owner {
        let name = if task.status == TaskStatus::Running { "worker" } else { "last worker" };
        line(name, &owner.to_string());
    }
    for (name, at) in
        [("claimed", task.started_at), ("taken away", task.lease_until), ("ended", task.finished_at)]
    {
        if let Some(at) = at {
            line(name, &time(at));
        }
    }
    if let Some(progress) = &task.progress {
        line("progress", progress);
    }
    if let Some(error) = &task.error {
        line("error", error);
    }
    line("payload", &format!("{} bytes", task.payload.len()));
    text.push('\n');
    if !task.payload.is_empty() {
        match std::str::from_utf8(&task.payload) {
            Ok(payload) => text.push_str(&payload.split('\n').map(visible).collect::<Vec<_>>().join("\n")),
            Err(_) => text.push_str(&format!("base64: {}", STANDARD.encode(&task.payload))),
        }
        text.push_str("\n\n");
    }
    text
}

fn happened(history: &[TaskEvent]) -> Table {
    let mut table = Table::new(&["WHEN", "EVENT", "#ATTEMPT", "WORKER", "DETAIL"]);
    for event in history {
        table.row([
            time(event.at),
            event.kind.word().to_owned(),
            event.attempt.to_string(),
            event.owner.map_or_else(|| "-".to_owned(), |owner| owner.to_string()),
            event.detail.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}
