//! `sendoff tasks retry` and `sendoff tasks cancel`: what an operator does to tasks, one by one.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::tasks::{
    Inspect, LIST_MAX, Publish, Settled, Task, TaskEvent, TaskEventKind, TaskId, TaskStatus, WorkerId,
};
use sendoff::{Limits, NewEvent, StoreErrorKind};
use serde::Serialize;

use super::show::no_such_task;
use super::statuses;
use crate::args::TaskChangeArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};
use crate::part::Part;
use crate::shape::Id;
use crate::site::Site;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Change {
    Retry,
    Cancel,
}

/// What became of the tasks.
#[derive(Serialize, JsonSchema)]
pub(in crate::commands) struct Changed {
    /// In the order they were given, up to one that could not be asked about.
    tasks: Vec<ChangedShape>,
}

/// What became of a task.
#[derive(Serialize, JsonSchema)]
struct ChangedShape {
    task: Id,
    /// If it is not `yes`, nothing was changed, and this says why.
    #[schemars(extend("enum" = ["yes", "no_such_task", "not_ended", "has_ended", "completed", "unique_key_taken", "changed_meanwhile"]))]
    done: &'static str,
    /// How it stands now; null: there is no such task.
    #[schemars(extend("enum" = statuses().map(Some).into_iter().chain([None]).collect::<Vec<_>>()))]
    status: Option<&'static str>,
    /// The worker that was running it when it was cancelled, or that keeps it from being tried again.
    worker: Option<Id>,
}

/// What became of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// It was done; who ran it until then.
    Yes {
        ran: Option<WorkerId>,
    },
    NoSuchTask,
    /// It has not ended, and cannot be tried again.
    NotEnded {
        status: TaskStatus,
        worker: Option<WorkerId>,
    },
    /// It has, and cannot be called off.
    HasEnded {
        status: TaskStatus,
    },
    /// What is done is not done again.
    Completed,
    /// Another live task has its unique key.
    KeyTaken {
        status: TaskStatus,
    },
    /// It could have been done as the task stands by now, and could not when it was asked for.
    Meanwhile {
        status: TaskStatus,
    },
}

impl Outcome {
    fn is_done(&self) -> bool {
        matches!(self, Self::Yes { .. })
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Yes { .. } => "yes",
            Self::NoSuchTask => "no_such_task",
            Self::NotEnded { .. } => "not_ended",
            Self::HasEnded { .. } => "has_ended",
            Self::Completed => "completed",
            Self::KeyTaken { .. } => "unique_key_taken",
            Self::Meanwhile { .. } => "changed_meanwhile",
        }
    }

    fn status(&self, change: Change) -> Option<TaskStatus> {
        match self {
            Self::Yes { .. } if change == Change::Retry => Some(TaskStatus::Ready),
            Self::Yes { .. } => Some(TaskStatus::Cancelled),
            Self::NoSuchTask => None,
            Self::Completed => Some(TaskStatus::Completed),
            Self::NotEnded { status, .. }
            | Self::HasEnded { status }
            | Self::KeyTaken { status }
            | Self::Meanwhile { status } => Some(*status),
        }
    }

    fn worker(&self) -> Option<WorkerId> {
        match self {
            Self::Yes { ran } => *ran,
            Self::NotEnded { worker, .. } => *worker,
            _ => None,
        }
    }

    /// Why a task that stands so was not changed.
    fn refusal(change: Change, task: &Task) -> Self {
        let status = task.status;
        match (change, status.is_live()) {
            (Change::Retry, true) => {
                Self::NotEnded { status, worker: task.owner.filter(|_| status == TaskStatus::Running) }
            }
            (Change::Retry, false) if status == TaskStatus::Completed => Self::Completed,
            (Change::Cancel, false) => Self::HasEnded { status },
            (Change::Retry, false) | (Change::Cancel, true) => Self::Meanwhile { status },
        }
    }

    /// What is said of it.
    fn said(&self, change: Change, task: TaskId) -> String {
        match self {
            Self::Yes { .. } if change == Change::Retry => format!("task {task} is ready again"),
            Self::Yes { ran: None } => format!("task {task} is cancelled"),
            Self::Yes { ran: Some(worker) } => format!(
                "task {task} is cancelled; worker {worker} was running it and is told: what it has done is not undone, and its result will not count"
            ),
            Self::NoSuchTask => no_such_task(task),
            Self::NotEnded { status, worker } => {
                let who = worker.map(|worker| format!(", worker {worker} has it")).unwrap_or_default();
                format!(
                    "task {task} stays as it is: it is {status}{who}; only what failed or was cancelled is tried again"
                )
            }
            Self::HasEnded { status } => {
                format!("task {task} stays as it is: it has ended, and is {status}")
            }
            Self::Completed => format!(
                "task {task} stays as it is: it is completed, and what is done is not done again; its service can submit another"
            ),
            Self::KeyTaken { status } => format!(
                "task {task} stays as it is, {status}: another live task has its unique key; cancel that one first, or let it end"
            ),
            Self::Meanwhile { status } => {
                format!("task {task} was changed by somebody else meanwhile: it is {status} now; try again")
            }
        }
    }
}

/// Does it to each, and says of each what became of it.
pub(in crate::commands) async fn run(args: &TaskChangeArgs, change: Change) -> Result<Answer> {
    let publish = publish(args)?;
    let inspect = Site::of_part(&args.store, Part::Tasks).await?.tasks(publish).await?;
    let mut outcomes: Vec<(TaskId, Outcome)> = Vec::new();
    let mut failed = None;
    for &task in &args.tasks {
        if outcomes.iter().any(|(known, _)| *known == task) {
            continue;
        }
        match one(&*inspect, change, task).await {
            Ok(outcome) => {
                if !outcome.is_done() {
                    eprintln!("{}", outcome.said(change, task));
                } else if !args.json {
                    print(&format!("{}\n", outcome.said(change, task)))?;
                }
                outcomes.push((task, outcome));
            }
            // Those before it are done, and are told as such.
            Err(error) => {
                failed = Some(error.context(format!("task {task}")));
                break;
            }
        }
    }
    if args.json {
        let shape = |(task, outcome): &(TaskId, Outcome)| ChangedShape {
            task: Id::of(task),
            done: outcome.word(),
            status: outcome.status(change).map(TaskStatus::word),
            worker: outcome.worker().map(Id::of),
        };
        print_json(&Changed { tasks: outcomes.iter().map(shape).collect() })?;
    }
    match failed {
        Some(error) => Err(error),
        None if outcomes.iter().all(|(_, outcome)| outcome.is_done()) => Ok(Answer::Yes),
        None => Ok(Answer::No),
    }
}

/// Where what is done is told. A topic that cannot be is refused here, before anything is done.
fn publish(args: &TaskChangeArgs) -> Result<Option<Publish>> {
    let Some(topic) = &args.publish else { return Ok(None) };
    NewEvent::new(topic).target(&args.target).check(&Limits::default())?;
    Ok(Some(Publish::to(topic).target(&args.target)))
}

async fn one(inspect: &dyn Inspect, change: Change, task: TaskId) -> Result<Outcome> {
    let by = crate::commands::operator();
    let settled = match change {
        Change::Retry => inspect.retry(task, &by).await,
        Change::Cancel => inspect.cancel(task, &by).await,
    };
    let is_key_taken = match &settled {
        Err(error) => change == Change::Retry && error.kind() == StoreErrorKind::Rejected,
        Ok(_) => false,
    };
    let settled = if is_key_taken { Settled::Stale } else { settled? };
    if settled.is_applied() && change == Change::Retry {
        return Ok(Outcome::Yes { ran: None });
    }
    let Some((found, history)) = inspect.get(task).await? else {
        // If it was called off, somebody has purged it since.
        return Ok(if settled.is_applied() { Outcome::Yes { ran: None } } else { Outcome::NoSuchTask });
    };
    Ok(match settled {
        Settled::Applied => Outcome::Yes { ran: who_ran(&history) },
        Settled::Stale if is_key_taken => Outcome::KeyTaken { status: found.status },
        Settled::Stale => Outcome::refusal(change, &found),
    })
}

/// Who had a task when it was last cancelled: its history has what happened in one order, whatever has been done to it since.
fn who_ran(history: &[TaskEvent]) -> Option<WorkerId> {
    let cancelled = history.iter().rposition(|event| event.kind == TaskEventKind::TaskCancelled)?;
    let before = history[..cancelled].last()?;
    let ran = matches!(before.kind, TaskEventKind::TaskClaimed | TaskEventKind::TaskExtended);
    // Of a history that is cut off nobody knows the end.
    before.owner.filter(|_| ran && history.len() < LIST_MAX as usize)
}

#[cfg(test)]
mod tests {
    use sendoff::claim::Timestamp;

    use super::*;

    fn event(kind: TaskEventKind) -> TaskEvent {
        TaskEvent {
            task: TaskId(uuid::Uuid::nil()),
            kind,
            attempt: 1,
            owner: Some(WorkerId(uuid::Uuid::from_u128(7))),
            at: Timestamp::from_micros(0),
            detail: None,
        }
    }

    #[test]
    fn who_ran_a_task_is_told_by_its_history() {
        use TaskEventKind as E;
        let ran = |kinds: &[E]| who_ran(&kinds.iter().copied().map(event).collect::<Vec<_>>()).is_some();
        assert!(ran(&[E::TaskCreated, E::TaskReady, E::TaskClaimed, E::TaskCancelled]));
        assert!(ran(&[E::TaskReady, E::TaskClaimed, E::TaskExtended, E::TaskCancelled]));
        assert!(ran(&[E::TaskClaimed, E::TaskCancelled, E::TaskReady]), "and was tried again since");
        assert!(!ran(&[E::TaskCreated, E::TaskReady, E::TaskCancelled]));
        assert!(!ran(&[E::TaskClaimed, E::TaskRetryScheduled, E::TaskCancelled]));
        assert!(!ran(&[E::TaskCancelled]) && !ran(&[]));
        let mut long = vec![E::TaskExtended; LIST_MAX as usize - 1];
        long.push(E::TaskCancelled);
        assert!(!ran(&long), "nobody knows");
    }
}
