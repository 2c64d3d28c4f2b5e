//! `sendoff tasks`: work that a service runs in process.

pub(super) mod change;
pub(super) mod limit;
pub(super) mod list;
pub(super) mod show;
pub(super) mod stats;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use sendoff::claim::Timestamp;
use sendoff::tasks::{Inspect, TaskStatus};

use super::batches::all;
use super::migrate;
use super::purge::PurgeShape;
use crate::args::{StoreArgs, TaskPurgeArgs, TasksArgs, TasksCommand};
use crate::exit::Answer;
use crate::output::{moment, print, print_json};
use crate::part::Part;
use crate::site::Site;

/// Nothing is older, and every database can count back so far.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Does what is asked.
pub(crate) async fn run(args: &TasksArgs) -> Result<Answer> {
    match &args.command {
        TasksCommand::Stats(args) => stats::run(args).await,
        TasksCommand::List(args) => list::run(args).await,
        TasksCommand::Show(args) => show::run(args).await,
        TasksCommand::Retry(args) => change::run(args, change::Change::Retry).await,
        TasksCommand::Cancel(args) => change::run(args, change::Change::Cancel).await,
        TasksCommand::Limit(args) => limit::run(args).await,
        TasksCommand::Purge(args) => purge(args).await,
        TasksCommand::Migrate(args) => migrate::of(args, Part::Tasks).await,
    }
}

async fn open(args: &StoreArgs) -> Result<Arc<dyn Inspect>> {
    Site::of_part(args, Part::Tasks).await?.tasks(None).await
}

async fn purge(args: &TaskPurgeArgs) -> Result<Answer> {
    let tasks = open(&args.store).await?;
    let micros = i64::try_from(args.older_than.min(OLDEST).as_micros())?;
    let before = Timestamp::from_micros(tasks.now().await?.as_micros().saturating_sub(micros));
    let purged = all("tasks", || tasks.purge(before, args.batch)).await?;
    if args.json {
        print_json(&PurgeShape { purged })?;
    } else {
        print(&format!("{purged} tasks are deleted\n"))?;
    }
    Ok(Answer::Yes)
}

fn time(at: Timestamp) -> String {
    moment(at.as_micros())
}

/// The statuses of a task.
fn statuses() -> [&'static str; 6] {
    TaskStatus::ALL.map(TaskStatus::word)
}
