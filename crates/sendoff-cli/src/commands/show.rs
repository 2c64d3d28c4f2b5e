//! `sendoff show`: everything that is known of one event.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use sendoff::adopted::Listing;
use sendoff::claim::Timestamp;
use sendoff::outbox::Listed;
use sendoff::{Headers, Standing};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::EventArgs;
use crate::exit::Answer;
use crate::output::{moment, print, print_json, visible};
use crate::shape::{FailureShape, Id, Moment, reasons, states};

/// An event, or that there is none.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Shown<'l> {
    Event(Box<EventJson<'l>>),
    Absent(Absent),
}

/// There is no such event.
#[derive(Serialize, JsonSchema)]
pub(super) struct Absent {
    id: Id,
    state: (),
}

/// An event with all that is known of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct EventJson<'l> {
    id: Id,
    #[schemars(extend("enum" = states()))]
    state: &'static str,
    target: &'l str,
    topic: &'l str,
    key: Option<&'l str>,
    /// If it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    payload: Option<&'l RawValue>,
    /// If it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    payload_base64: Option<String>,
    content_type: Option<&'l str>,
    headers: &'l Headers,
    /// Rises along a key.
    position: i64,
    lane: u16,
    created_at: Moment,
    /// How often the sink refused it.
    failures: u32,
    /// How often its worker died with it in hand.
    crashes: u32,
    /// Why it is parked, if it is.
    #[schemars(extend("enum" = reasons().map(Some).into_iter().chain([None]).collect::<Vec<_>>()))]
    reason: Option<&'static str>,
    /// When it will be tried, if that is known.
    due_at: Option<Moment>,
    /// When it was parked, died or was published.
    since: Option<Moment>,
    /// What went wrong last.
    failure: Option<FailureShape>,
    /// The host's own row, of a table that was adopted. Such a row has no lane, and a position only if a column says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RowJson")]
    row: Option<RowJson>,
}

/// A row of a host's own table.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct RowJson {
    /// Its id, as the host has it.
    id: String,
    /// Handed out so often, and not given back.
    attempts: u32,
    /// Who has it, or had it last.
    owner: Option<String>,
    /// What went wrong last.
    error: Option<String>,
}

impl RowJson {
    pub(super) fn of(listing: &Listing) -> Self {
        Self {
            id: listing.id(),
            attempts: listing.attempts,
            owner: listing.owner.clone(),
            error: listing.error.clone(),
        }
    }
}

impl<'l> EventJson<'l> {
    pub(super) fn of(listed: &'l Listed) -> Self {
        let event = &listed.event;
        let is_json = event.content_type.as_deref().is_none_or(|name| name.contains("json"));
        let payload: Option<&RawValue> = serde_json::from_slice(&event.payload).ok().filter(|_| is_json);
        Self {
            id: Id::of(event.event_id),
            state: listed.state.word(),
            target: &event.target,
            topic: &event.topic,
            key: event.key.as_deref(),
            payload,
            payload_base64: payload.is_none().then(|| STANDARD.encode(&event.payload)),
            content_type: event.content_type.as_deref(),
            headers: &event.headers,
            position: event.position,
            lane: event.lane,
            created_at: at(event.created_at),
            failures: event.attempts.failures,
            crashes: event.attempts.crashes,
            reason: listed.reason.map(sendoff::outbox::Reason::word),
            due_at: listed.due_at.map(at),
            since: listed.since.map(at),
            failure: listed.failure.as_ref().map(FailureShape::of),
            row: None,
        }
    }

    pub(super) fn with_row(self, row: RowJson) -> Self {
        Self { row: Some(row), ..self }
    }
}

fn at(moment: Timestamp) -> Moment {
    Moment(moment.as_micros())
}

fn time(at: Timestamp) -> String {
    moment(at.as_micros())
}

/// Shows it.
pub(crate) async fn run(args: &EventArgs) -> Result<Answer> {
    let Some(listed) = super::open(&args.store).await?.get(args.event).await? else {
        if args.json {
            print_json(&Shown::Absent(Absent { id: Id::of(args.event), state: () }))?;
        }
        eprintln!("{}", no_such_event(args));
        return Ok(Answer::No);
    };
    if args.json {
        print_json(&Shown::Event(Box::new(EventJson::of(&listed))))?
    } else {
        print(&shown(&listed))?
    };
    Ok(Answer::Yes)
}

pub(super) fn no_such_event(args: &EventArgs) -> String {
    format!(
        "there is no event {}: it was delivered and is not kept, was cancelled, or never committed",
        args.event
    )
}

fn shown(listed: &Listed) -> String {
    let event = &listed.event;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&format!("{name:>12}  {}\n", visible(value)));
    line("event", &event.event_id.to_string());
    line("state", listed.state.word());
    line("target", &event.target);
    line("topic", &event.topic);
    line("key", event.key.as_deref().unwrap_or("-"));
    line("written", &time(event.created_at));
    if event.standing == Standing::Lane {
        line("position", &format!("{} in lane {}", event.position, event.lane));
    }
    line("attempts", &format!("{} failed, {} crashed", event.attempts.failures, event.attempts.crashes));
    if let Some(reason) = listed.reason {
        line("parked", reason.word());
    }
    if let Some(due_at) = listed.due_at {
        line("due", &time(due_at));
    }
    if let Some(since) = listed.since {
        line("since", &time(since));
    }
    if let Some(failure) = &listed.failure {
        line("error", &format!("{}: {}", failure.cause.word(), failure.error));
    }
    for (name, value) in &event.headers {
        line("header", &format!("{name}: {value}"));
    }
    let content_type = event.content_type.as_deref().unwrap_or("of no stated type");
    line("payload", &format!("{} bytes, {content_type}", event.payload.len()));
    text.push('\n');
    match std::str::from_utf8(&event.payload) {
        Ok(payload) => text.push_str(&payload.split('\n').map(visible).collect::<Vec<_>>().join("\n")),
        Err(_) => text.push_str(&format!("base64: {}", STANDARD.encode(&event.payload))),
    }
    text.push('\n');
    text
}
