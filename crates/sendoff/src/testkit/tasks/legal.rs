//! Which histories can be.

use crate::tasks::{Task, TaskEvent, TaskEventKind, TaskStatus};

/// Follows a task's history from its beginning: every event must be possible after the one before, every claim must have the next attempt, every
/// settlement the attempt and the owner of the last claim, and the task must stand where its history ends.
///
/// # Errors
/// What cannot be, in words.
pub fn legal_history(task: &Task, events: &[TaskEvent]) -> Result<(), String> {
    use TaskEventKind as E;
    use TaskStatus as S;
    let mut status: Option<S> = None;
    let mut attempt = 0;
    let mut owner = None;
    for (number, event) in events.iter().enumerate() {
        let wrong = |what: &str| {
            Err(format!("task {}, event {number} ({:?}): {what}; the whole: {events:?}", task.id, event.kind))
        };
        let next = match (status, event.kind) {
            (None, E::TaskCreated) => S::NotStarted,
            // Ready for the first time, or an operator's retry.
            (Some(S::NotStarted | S::Failed | S::Cancelled), E::TaskReady) => S::Ready,
            (Some(S::Ready), E::TaskClaimed) => S::Running,
            (Some(S::Running), E::TaskExtended) => S::Running,
            (Some(S::Running), E::TaskCompleted) => S::Completed,
            (Some(S::Running), E::TaskFailed) => S::Failed,
            (Some(S::Running), E::TaskRetryScheduled | E::TaskReturned) => S::Ready,
            (Some(S::NotStarted | S::Ready | S::Running), E::TaskCancelled) => S::Cancelled,
            (before, _) => return wrong(&format!("it cannot happen to a task that is {before:?}")),
        };
        if event.kind == E::TaskClaimed {
            if event.attempt != attempt + 1 {
                return wrong(&format!("it is attempt {} after {attempt}", event.attempt));
            }
            if event.owner.is_none() {
                return wrong("nobody claimed it");
            }
            (attempt, owner) = (event.attempt, event.owner);
        } else if (event.attempt, event.owner) != (attempt, owner) {
            return wrong("it is of another attempt, or of another's");
        }
        status = Some(next);
    }
    if status != Some(task.status) || task.attempt != attempt {
        return Err(format!(
            "task {} is {} after {} attempts, but its history ends {status:?} after {attempt}: {events:?}",
            task.id, task.status, task.attempt
        ));
    }
    Ok(())
}
