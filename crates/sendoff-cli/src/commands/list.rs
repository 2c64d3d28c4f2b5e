//! `sendoff list`: the events of a state.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::adopted::{Listing, Targets};
use sendoff::claim::Timestamp;
use sendoff::outbox::{Cause, Failure, ListQuery, Listed};
use sendoff::{Attempts, Event, EventId, Headers, Standing};
use serde::Serialize;

use super::show::{EventJson, RowJson};
use crate::args::ListArgs;
use crate::exit::{Answer, refuse};
use crate::output::{ERROR_SHOWN, Table, failure, moment, print_json, short};
use crate::site::Site;
use crate::table::Opened;

/// A page of events.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page<'l> {
    events: Vec<EventJson<'l>>,
    /// What `--after` is given for the next page; null: this was the last.
    next_after: Option<i64>,
}

/// The rows of a host's own table, in its own order: they have no position to go on behind.
async fn rows(args: &ListArgs, targets: &Targets) -> Result<Answer> {
    if args.after != 0 {
        refuse!(
            "--after goes by position, which rows of a host's own table do not have: give a larger --limit"
        );
    }
    let listed = targets.target(&args.target)?.standing(args.state.into(), args.limit).await?;
    let is_full = listed.len() == args.limit as usize;
    if args.json {
        let events: Vec<(Listed, RowJson)> =
            listed.into_iter().map(|row| (readable(args, &row), RowJson::of(&row))).collect();
        let events = events.iter().map(|(event, row)| EventJson::of(event).with_row(row.clone()));
        print_json(&Page { events: events.collect(), next_after: None })?;
        return Ok(Answer::Yes);
    }
    let mut table = Table::new(&["ROW", "TOPIC", "KEY", "WRITTEN", "#ATTEMPTS", "OWNER", "UNTIL", "ERROR"]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for row in &listed {
        let Listed { event, failure, .. } = readable(args, row);
        let unreadable = failure.map(|failure| format!("cannot be read: {}", failure.error));
        table.row([
            row.id(),
            if event.topic.is_empty() { "-".to_owned() } else { event.topic },
            or_dash(event.key),
            if unreadable.is_some() { "-".to_owned() } else { moment(event.created_at.as_micros()) },
            row.attempts.to_string(),
            or_dash(row.owner.clone()),
            or_dash(row.due.map(|due| moment(due.as_micros()))),
            or_dash(unreadable.or_else(|| row.error.clone()).map(|error| short(&error, ERROR_SHOWN))),
        ]);
    }
    table.print()?;
    if is_full {
        eprintln!("there may be more: give a larger --limit");
    }
    Ok(Answer::Yes)
}

/// A row as an event; one that cannot be read has nothing but what is wrong with it.
fn readable(args: &ListArgs, row: &Listing) -> Listed {
    let nothing = || Event {
        event_id: EventId(uuid::Uuid::nil()),
        position: 0,
        standing: Standing::Unknown,
        target: String::new(),
        lane: 0,
        topic: String::new(),
        key: None,
        payload: Vec::new(),
        content_type: None,
        headers: Headers::new(),
        created_at: Timestamp::from_micros(0),
        attempts: Attempts::default(),
    };
    let event = Event { target: args.target.clone(), ..row.event.clone().unwrap_or_else(|_| nothing()) };
    let failure = row.event.as_ref().err().map(|why| Failure::new(Cause::Corrupt, why));
    Listed { event, state: args.state.into(), reason: None, due_at: row.due, failure, since: None }
}

/// Shows a page of them.
pub(crate) async fn run(args: &ListArgs) -> Result<Answer> {
    let site = Site::of(&args.store).await?;
    if let Some(table) = &site.table {
        let targets = table.open(&Opened::of_host(&site).await?).await?;
        return rows(args, &targets).await;
    }
    let query = ListQuery {
        target: args.target.clone(),
        state: args.state.into(),
        after: args.after,
        limit: args.limit,
    };
    let listed = site.inspect().await?.list(&query).await?;
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
