//! What happened to a task, from its beginning.

use serde::Serialize;

use super::task::TaskId;
use crate::claim::Timestamp;
use crate::outbox::WorkerId;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum TaskEventKind {
    /// It was written.
    TaskCreated,
    /// It may be claimed when it is due.
    TaskReady,
    /// A worker has it.
    TaskClaimed,
    /// It has more time.
    TaskExtended,
    /// It is done.
    TaskCompleted,
    /// It was given up.
    TaskFailed,
    /// The attempt failed; it is tried again later.
    TaskRetryScheduled,
    /// Its worker was lost, or its time ran out; it is tried again.
    TaskReturned,
    /// It was called off.
    TaskCancelled,
}

impl TaskEventKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::TaskCreated,
        Self::TaskReady,
        Self::TaskClaimed,
        Self::TaskExtended,
        Self::TaskCompleted,
        Self::TaskFailed,
        Self::TaskRetryScheduled,
        Self::TaskReturned,
        Self::TaskCancelled,
    ];

    /// The word that stands in the table, and in published events.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TaskCreated => "TaskCreated",
            Self::TaskReady => "TaskReady",
            Self::TaskClaimed => "TaskClaimed",
            Self::TaskExtended => "TaskExtended",
            Self::TaskCompleted => "TaskCompleted",
            Self::TaskFailed => "TaskFailed",
            Self::TaskRetryScheduled => "TaskRetryScheduled",
            Self::TaskReturned => "TaskReturned",
            Self::TaskCancelled => "TaskCancelled",
        }
    }

    /// From the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// One thing that happened to a task. Appended in the transaction that made it so, and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEvent {
    /// To which task.
    pub task: TaskId,
    /// What.
    pub kind: TaskEventKind,
    /// During which attempt; 0: before the first.
    pub attempt: u32,
    /// Whose attempt that was.
    pub owner: Option<WorkerId>,
    /// When, by the database's clock.
    pub at: Timestamp,
    /// What is said about it: an error, who called it off.
    pub detail: Option<String>,
}
