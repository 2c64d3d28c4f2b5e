//! Tasks: work that is claimed and run in process, instead of published.
//!
//! A task is created, and marked ready, in the host's own transaction (`Tasks`). Its *entry* is what a claim finds: whoever claims the task deletes the entry, marks the
//! task running with a new attempt and appends `TaskClaimed`, in one transaction, and nobody else can come between. Settlements are fenced by the attempt and its
//! owner; a [`TaskToken`] is the proof.
//!
//! - [`NewTask`] is what is written, [`Task`] what is read back, [`TaskEvent`] what happened to it.
//! - [`Runner`] runs tasks with the host's handlers.
//! - [`Store`] is the contract of where tasks are kept; [`Inspect`] is the operator's.
//!
//! **Who is alive.** A worker gives signs of life, not each of its tasks: one row for each worker, by the database's clock. The tasks of a worker that is lost, or unknown, are returned by
//! whoever looks first, and the lost attempt counts: a task that kills its workers runs out of attempts. A task may have a time limit of its own as well.

mod history;
mod inspect;
mod publish;
mod runner;
mod store;
mod task;
pub(crate) mod transition;

#[cfg(feature = "_sql")]
pub use crate::stores::Tasks;

pub use crate::outbox::WorkerId;
pub use history::{TaskEvent, TaskEventKind};
pub use inspect::{
    COUNT_MAX, EntryCount, Inspect, KindLimit, LIST_MAX, Listing, TaskCount, TaskStats, WorkerInfo,
};
pub use publish::Publish;
pub use runner::{Bell, Context, Drained, RetryPolicy, Runner, RunnerConfig, RunnerStats, TaskError};
pub use store::{BATCH_MAX, CheckPoint, Checked, Claim, KINDS_MAX, Member, Reaped, Store};
pub use task::{
    ATTEMPTS, ATTEMPTS_MAX, Created, KIND_BYTES_MAX, NewTask, Settled, TEXT_CHARS_MAX, Task, TaskId,
    TaskStatus, TaskToken, UNIQUE_KEY_BYTES_MAX,
};
pub(crate) use task::{check_kind, kept};
pub use transition::When;
