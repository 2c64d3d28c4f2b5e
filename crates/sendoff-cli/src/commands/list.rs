//! `sendoff list`: the events of a state.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::ListQuery;
use serde::Serialize;

use super::show::EventJson;
use crate::args::ListArgs;
use crate::exit::Answer;
use crate::output::{Table, failure, moment, print_json};

/// A page of events.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page<'l> {
    events: Vec<EventJson<'l>>,
    /// What `--after` is given for the next page; null: this was the last.
    next_after: Option<i64>,
}

/// Shows a page of them.
pub(crate) async fn run(args: &ListArgs) -> Result<Answer> {
    let query = ListQuery {
        target: args.target.clone(),
        state: args.state.into(),
        after: args.after,
        limit: args.limit,
    };
    let listed = super::open(&args.store).await?.list(&query).await?;
    let is_full = listed.len() == args.limit as usize;
    let next_after = listed.last().filter(|_| is_full).map(|last| last.event.position);
    if args.json {
        print_json(&Page { events: listed.iter().map(EventJson::of).collect(), next_after })?;
        return Ok(Answer::Yes);
    }
    let mut table =
        Table::new(&["#POSITION", "EVENT", "TOPIC", "KEY", "WRITTEN", "#FAILURES", "DUE", "ERROR"]);
    for one in &listed {
        let event = &one.event;
        table.row([
            event.position.to_string(),
            event.event_id.to_string(),
            event.topic.clone(),
            event.key.clone().unwrap_or_else(|| "-".to_owned()),
            moment(event.created_at.as_micros()),
            (event.attempts.failures + event.attempts.crashes).to_string(),
            one.due_at.map_or_else(|| "-".to_owned(), |due| moment(due.as_micros())),
            failure(one.failure.as_ref()),
        ]);
    }
    table.print()?;
    if let Some(position) = next_after {
        eprintln!("there may be more: --after {position}");
    }
    Ok(Answer::Yes)
}
