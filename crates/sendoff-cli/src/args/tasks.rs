//! The command line of `tasks`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use sendoff::tasks::{TaskId, TaskStatus};

use super::{MigrateArgs, PartStatsArgs, StoreArgs};

/// `sendoff tasks`
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

/// What about them.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// How many tasks stand where, how late they are, limits and workers
    #[command(after_help = "Examples:
  sendoff tasks stats
  sendoff tasks stats --json | jq '.kinds[] | select(.due > 0 and (.taken | not)) | .kind'")]
    Stats(PartStatsArgs),
    /// List tasks, by status, kind and age
    #[command(after_help = "Examples:
  sendoff tasks list
  sendoff tasks list --status failed --kind mail.send
  sendoff tasks list --status failed --after 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001    the page behind that task")]
    List(TaskListArgs),
    /// Everything that is known of one task, and what happened to it
    #[command(after_help = "Example:
  sendoff tasks show 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001")]
    Show(TaskArgs),
    /// Try tasks again that failed or were cancelled
    ///
    /// They are due at once; one that has used up its attempts has one more. The exit code is 1 if one of them stays as it is.
    #[command(after_help = "Examples:
  sendoff tasks retry 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001
  sendoff tasks list --status failed --json | jq -r '.tasks[].id' | xargs sendoff tasks retry")]
    Retry(TaskChangeArgs),
    /// Call off tasks that have not ended
    ///
    /// Also those that run: their worker is told, what it does until then is not undone, and its result does not count. The exit code is 1 if one of them stays as it is.
    #[command(after_help = "Example:
  sendoff tasks cancel 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001")]
    Cancel(TaskChangeArgs),
    /// Show or set how many tasks of a kind run at a time, in all workers together
    ///
    /// 0 lets none begin. What runs already goes on. Workers follow within a second.
    #[command(after_help = "Examples:
  sendoff tasks limit                      the limits there are
  sendoff tasks limit mail.send 10
  sendoff tasks limit mail.send --remove")]
    Limit(TaskLimitArgs),
    /// Delete tasks that ended long ago, and their history
    #[command(after_help = "Example:
  sendoff tasks purge --older-than 30d")]
    Purge(TaskPurgeArgs),
    /// Make the tasks' tables, or bring them up to date
    #[command(after_help = "Examples:
  sendoff tasks migrate --store postgres://localhost/shop
  sendoff tasks migrate --store postgres://localhost/shop --print | psql shop")]
    Migrate(MigrateArgs),
}

/// A status, as it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StatusWord {
    /// Created, and nobody has said that it may run
    NotStarted,
    /// It may be claimed when it is due
    Ready,
    /// A worker has it
    Running,
    /// Done
    Completed,
    /// Given up
    Failed,
    /// Called off
    Cancelled,
}

impl From<StatusWord> for TaskStatus {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::NotStarted => Self::NotStarted,
            StatusWord::Ready => Self::Ready,
            StatusWord::Running => Self::Running,
            StatusWord::Completed => Self::Completed,
            StatusWord::Failed => Self::Failed,
            StatusWord::Cancelled => Self::Cancelled,
        }
    }
}

/// `sendoff tasks list`
#[derive(Debug, Args)]
pub(crate) struct TaskListArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only of this status [default: all, one status after the other]
    #[arg(long, value_enum)]
    pub(crate) status: Option<StatusWord>,
    /// Only of this kind
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Only behind this task: the last one of the page before
    #[arg(long, value_name = "TASK", requires = "status")]
    pub(crate) after: Option<TaskId>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff tasks show`
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The task's id, a UUID
    #[arg(value_name = "TASK")]
    pub(crate) task: TaskId,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff tasks retry` and `sendoff tasks cancel`
#[derive(Debug, Args)]
pub(crate) struct TaskChangeArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The tasks' ids, UUIDs
    #[arg(value_name = "TASK", required = true)]
    pub(crate) tasks: Vec<TaskId>,
    /// Tell it through the outbox as well, under this topic: as the service does that runs them, if it does
    #[arg(long, value_name = "TOPIC")]
    pub(crate) publish: Option<String>,
    /// Of which target the events are that tell it
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET, requires = "publish")]
    pub(crate) target: String,
    /// Print what became of them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff tasks limit`
#[derive(Debug, Args)]
pub(crate) struct TaskLimitArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Of this kind; without it, all limits are shown
    #[arg(value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// No more than these; without it, the kind's limit is shown
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(i32::MAX)))]
    pub(crate) most: Option<u32>,
    /// Take the kind's limit away
    #[arg(long, requires = "kind", conflicts_with = "most")]
    pub(crate) remove: bool,
    /// Print the limits as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff tasks purge`
#[derive(Debug, Args)]
pub(crate) struct TaskPurgeArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only what ended longer ago: 12h, 30d
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Duration,
    /// So many are deleted at a time
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Print how many as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
