//! `sendoff show`: everything that is known of one event.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Headers;
use sendoff::claim::Timestamp;
use sendoff::outbox::{Failure, Listed};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::EventArgs;
use crate::exit::Answer;
use crate::output::{moment, print, print_json, visible};

/// An event, for programs. Times are RFC 3339.
#[derive(Serialize)]
pub(super) struct EventJson<'l> {
    id: String,
    state: &'static str,
    target: &'l str,
    topic: &'l str,
    key: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'l RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    content_type: Option<&'l str>,
    headers: &'l Headers,
    position: i64,
    lane: u16,
    created_at: String,
    failures: u32,
    crashes: u32,
    reason: Option<&'static str>,
    due_at: Option<String>,
    since: Option<String>,
    failure: Option<&'l Failure>,
}

impl<'l> EventJson<'l> {
    pub(super) fn of(listed: &'l Listed) -> Self {
        let event = &listed.event;
        let is_json = event.content_type.as_deref().is_none_or(|name| name.contains("json"));
        let payload: Option<&RawValue> = serde_json::from_slice(&event.payload).ok().filter(|_| is_json);
        Self {
            id: event.event_id.to_string(),
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
            created_at: time(event.created_at),
            failures: event.attempts.failures,
            crashes: event.attempts.crashes,
            reason: listed.reason.map(sendoff::outbox::Reason::word),
            due_at: listed.due_at.map(time),
            since: listed.since.map(time),
            failure: listed.failure.as_ref(),
        }
    }
}

fn time(at: Timestamp) -> String {
    moment(at.as_micros())
}

/// Shows it.
pub(crate) async fn run(args: &EventArgs) -> Result<Answer> {
    let Some(listed) = super::open(&args.store).await?.get(args.event).await? else {
        if args.json {
            print_json(&serde_json::json!({ "id": args.event.to_string(), "state": null }))?;
        }
        eprintln!("{}", no_such_event(args));
        return Ok(Answer::No);
    };
    if args.json {
        print_json(&EventJson::of(&listed))?
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
    line("position", &format!("{} in lane {}", event.position, event.lane));
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
