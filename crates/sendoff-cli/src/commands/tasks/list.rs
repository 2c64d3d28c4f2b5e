//! `sendoff tasks list`: a page of them.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::tasks::{Inspect, Listing, Task, TaskStatus};
use serde::Serialize;

use super::show::TaskJson;
use super::time;
use crate::args::TaskListArgs;
use crate::exit::{Answer, refuse};
use crate::output::{ERROR_SHOWN, Table, print_json, short};
use crate::shape::Id;

/// A page of tasks.
#[derive(Serialize, JsonSchema)]
pub(in crate::commands) struct TaskPage<'t> {
    tasks: Vec<TaskJson<'t>>,
    /// There may be more.
    has_more: bool,
    /// What `--after` is given for the next page; null: this was the last, or no `--status` was given, without which there are no pages.
    next_after: Option<Id>,
}

/// Shows it.
pub(in crate::commands) async fn run(args: &TaskListArgs) -> Result<Answer> {
    let inspect = super::open(&args.store).await?;
    let tasks = found(args, &*inspect).await?;
    let has_more = tasks.len() == args.limit as usize;
    let next = tasks.last().filter(|_| has_more && args.status.is_some());
    if args.json {
        let next_after = next.map(|last| Id::of(last.id));
        print_json(&TaskPage { tasks: tasks.iter().map(TaskJson::of).collect(), has_more, next_after })?;
        return Ok(Answer::Yes);
    }
    let mut table = Table::new(&["TASK", "KIND", "STATUS", "#ATTEMPT", "WHEN", "ERROR"]);
    for task in &tasks {
        table.row([
            task.id.to_string(),
            task.kind.clone(),
            task.status.word().to_owned(),
            format!("{}/{}", task.attempt, task.attempts_max),
            when(task),
            task.error.as_deref().map_or_else(|| "-".to_owned(), |error| short(error, ERROR_SHOWN)),
        ]);
    }
    table.print()?;
    match next {
        Some(last) => eprintln!("there may be more: --after {}", last.id),
        None if has_more => eprintln!("there may be more: give a larger --limit, or --status for pages"),
        None => {}
    }
    Ok(Answer::Yes)
}

/// Of the status that is wanted, or of one after the other.
async fn found(args: &TaskListArgs, inspect: &dyn Inspect) -> Result<Vec<Task>> {
    let statuses = args.status.map_or_else(|| TaskStatus::ALL.to_vec(), |status| vec![status.into()]);
    let after = match (args.after, &args.kind) {
        (None, _) => None,
        (Some(after), Some(kind)) => Some((kind.clone(), after)),
        (Some(after), None) => match inspect.get(after).await? {
            Some((task, _)) => Some((task.kind, after)),
            None => refuse!(
                "--after: there is no task {after} (any more), and so nothing is behind it; begin without --after, or give --kind as well"
            ),
        },
    };
    let mut tasks = Vec::new();
    for status in statuses {
        let limit = args.limit.saturating_sub(u32::try_from(tasks.len())?);
        if limit == 0 {
            break;
        }
        let listing = Listing { status, kind: args.kind.clone(), after: after.clone(), limit };
        tasks.extend(inspect.list(&listing).await?);
    }
    Ok(tasks)
}

/// What time says of a task, by its status.
fn when(task: &Task) -> String {
    let (what, at) = match task.status {
        TaskStatus::NotStarted => ("written", Some(task.created_at)),
        TaskStatus::Ready => ("due", Some(task.run_at)),
        TaskStatus::Running => ("since", task.started_at),
        TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled => ("ended", task.finished_at),
    };
    at.map_or_else(|| "-".to_owned(), |at| format!("{what} {}", time(at)))
}
