//! The life of a task: which change is possible when, and what it leads to. Decided here, once, for every store.

use std::time::Duration;

use super::history::TaskEventKind;
use super::task::{TaskStatus, TaskToken, kept};
use crate::claim::Timestamp;
use crate::outbox::WorkerId;

/// What must be known of a task to decide about it, read under its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) status: TaskStatus,
    pub(crate) attempt: u32,
    pub(crate) attempts_max: u32,
    pub(crate) owner: Option<WorkerId>,
}

impl Standing {
    /// Whether the token is of the claim that stands.
    pub(crate) fn is_under(&self, token: &TaskToken) -> bool {
        self.status == TaskStatus::Running && self.attempt == token.attempt && self.owner == Some(token.owner)
    }
}

/// When a task is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long after now, by the database's clock.
    In(Duration),
    /// At this moment.
    At(Timestamp),
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Complete,
    Fail {
        error: String,
    },
    Retry {
        when: When,
        error: String,
    },
    Return {
        why: &'static str,
    },
    Cancel {
        by: String,
    },
    /// An operator's: what has ended is tried again.
    Again {
        by: String,
    },
}

/// What becomes of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) status: TaskStatus,
    pub(crate) event: TaskEventKind,
    pub(crate) detail: Option<String>,
    /// Written to the task as what went wrong; none: what is there stays.
    pub(crate) error: Option<String>,
    /// When it is due; none: as before.
    pub(crate) when: Option<When>,
}

impl Step {
    fn to(status: TaskStatus, event: TaskEventKind) -> Self {
        Self { status, event, detail: None, error: None, when: None }
    }

    fn failing(mut self, error: &str) -> Self {
        let error = kept(error);
        self.detail = Some(error.clone());
        self.error = Some(error);
        self
    }
}

/// What a change leads to; none: it is not possible as the task stands.
///
/// `token` is asked for by whom it concerns: a worker's changes are possible only under the claim that stands.
pub(crate) fn step(standing: &Standing, token: Option<&TaskToken>, change: &Change) -> Option<Step> {
    use TaskEventKind as E;
    use TaskStatus as S;
    if token.is_some_and(|token| !standing.is_under(token)) {
        return None;
    }
    let ran_out = standing.attempt >= standing.attempts_max;
    match change {
        Change::Complete => (standing.status == S::Running).then(|| Step::to(S::Completed, E::TaskCompleted)),
        Change::Fail { error } => {
            (standing.status == S::Running).then(|| Step::to(S::Failed, E::TaskFailed).failing(error))
        }
        Change::Retry { when, error } => (standing.status == S::Running).then(|| {
            if ran_out {
                return Step::to(S::Failed, E::TaskFailed).failing(error);
            }
            let step = Step::to(S::Ready, E::TaskRetryScheduled).failing(error);
            Step { when: Some(*when), ..step }
        }),
        Change::Return { why } => (standing.status == S::Running).then(|| {
            if ran_out {
                return Step::to(S::Failed, E::TaskFailed).failing(why);
            }
            let step = Step::to(S::Ready, E::TaskReturned).failing(why);
            Step { when: Some(When::In(Duration::ZERO)), ..step }
        }),
        Change::Cancel { by } => standing
            .status
            .is_live()
            .then(|| Step { detail: Some(kept(by)), ..Step::to(S::Cancelled, E::TaskCancelled) }),
        Change::Again { by } => matches!(standing.status, S::Failed | S::Cancelled).then(|| Step {
            detail: Some(kept(by)),
            when: Some(When::In(Duration::ZERO)),
            ..Step::to(S::Ready, E::TaskReady)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::TaskId;

    fn standing(status: TaskStatus, attempt: u32) -> Standing {
        Standing { status, attempt, attempts_max: 3, owner: Some(WorkerId(uuid::Uuid::from_u128(7))) }
    }

    fn token(attempt: u32, owner: u128) -> TaskToken {
        TaskToken { task: TaskId(uuid::Uuid::nil()), attempt, owner: WorkerId(uuid::Uuid::from_u128(owner)) }
    }

    fn changes() -> Vec<Change> {
        let error = "no".to_owned();
        vec![
            Change::Complete,
            Change::Fail { error: error.clone() },
            Change::Retry { when: When::In(Duration::ZERO), error: error.clone() },
            Change::Return { why: "lost" },
            Change::Cancel { by: error.clone() },
            Change::Again { by: error },
        ]
    }

    #[test]
    fn a_token_of_another_attempt_or_owner_changes_nothing() {
        let running = standing(TaskStatus::Running, 2);
        for change in &changes() {
            for wrong in [token(1, 7), token(3, 7), token(2, 8)] {
                assert_eq!(step(&running, Some(&wrong), change), None, "{change:?} under {wrong:?}");
            }
        }
        assert!(step(&running, Some(&token(2, 7)), &Change::Complete).is_some());
    }

    #[test]
    fn what_has_ended_changes_only_by_an_operator() {
        for status in TaskStatus::ALL.into_iter().filter(|status| !status.is_live()) {
            for change in &changes() {
                let taken = step(&standing(status, 2), None, change);
                let is_operators = matches!(change, Change::Again { .. }) && status != TaskStatus::Completed;
                assert_eq!(taken.is_some(), is_operators, "{change:?} of a task that is {status}");
            }
        }
    }

    #[test]
    fn attempts_run_out_by_failures_and_by_lost_workers() {
        for change in [
            Change::Retry { when: When::In(Duration::ZERO), error: "no".into() },
            Change::Return { why: "lost" },
        ] {
            let early = step(&standing(TaskStatus::Running, 2), None, &change).unwrap();
            assert_eq!(early.status, TaskStatus::Ready, "{change:?}");
            let late = step(&standing(TaskStatus::Running, 3), None, &change).unwrap();
            assert_eq!((late.status, late.event), (TaskStatus::Failed, TaskEventKind::TaskFailed));
        }
    }
}
