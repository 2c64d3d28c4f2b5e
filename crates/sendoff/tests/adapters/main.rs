//! Enqueue and an inbox through every library that has an adapter, each in a real transaction on a real server, and what a worker then finds.

#![cfg(any(feature = "tokio-postgres", feature = "diesel-async", feature = "sea-orm", feature = "otel"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(feature = "diesel-async")]
mod diesel_async;
#[cfg(any(feature = "tokio-postgres", feature = "diesel-async", feature = "sea-orm"))]
mod inbox;
#[path = "../outboxes/mod.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod outboxes;
#[cfg(feature = "sea-orm")]
mod sea_orm;
#[path = "../conformance/servers.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod servers;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;
#[cfg(feature = "otel")]
mod trace_context;

use sendoff::claim::Timestamp;
use sendoff::{Event, EventId, NewEvent, StoreError, StoreErrorKind};

use self::outboxes::{Host, TestOutbox};

/// More than one statement's worth.
const MANY: usize = 1_200;
/// 2100-01-01 00:00:00.123456.
const LATER: i64 = 4_102_444_800_123_456;

/// Text that breaks out of whatever is not bound.
const HOSTILE: &str = r#"it's; "quoted" \ `x` -- $1 ? %s {event} 😀"#;

fn hostile() -> NewEvent {
    NewEvent::new(HOSTILE)
        .key(HOSTILE)
        .payload((0..=255).collect::<Vec<u8>>())
        .content_type(HOSTILE)
        .header(HOSTILE, HOSTILE)
        .header("tab", "a\tb")
        .event_id(EventId::generate())
}

/// Every shape of an event there is, and enough of them.
fn many() -> Vec<NewEvent> {
    let mut events = vec![
        hostile(),
        NewEvent::new("bare"),
        NewEvent::new("elsewhere").target("other").key("k").payload("for another sink"),
        NewEvent::new("later").key("k").deliver_at(Timestamp::from_micros(LATER)),
    ];
    let rest = MANY - events.len();
    events.extend(
        (0..rest).map(|n| NewEvent::new("numbered").key(format!("k{}", n % 7)).payload(n.to_string())),
    );
    events
}

/// The outbox holds these events and no others, in this order.
async fn assert_holds(outbox: &TestOutbox, sent: &[(EventId, NewEvent)]) {
    let (later, now): (Vec<_>, Vec<_>) = sent.iter().partition(|(_, event)| event.deliver_at.is_some());
    assert_eq!(outbox.rows().await, sent.len() as i64);
    for (_, event) in &later {
        let at = event.deliver_at.unwrap().as_micros();
        let filter = format!("FROM {} WHERE deliver_at IS NOT NULL", outbox.table);
        let stored = match outbox.host {
            Host::Postgres(_) => {
                format!("SELECT (extract(epoch FROM deliver_at) * 1000000)::bigint {filter}")
            }
            Host::Mysql(_) => format!("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', deliver_at) {filter}"),
            Host::Sqlite(..) => format!("SELECT deliver_at {filter}"),
        };
        assert_eq!(outbox.number(stored).await, at);
    }
    for target in ["default", "other"] {
        let expected: Vec<_> = now.iter().filter(|(_, event)| event.target == target).collect();
        let found = outbox.drain(target).await;
        assert_eq!(found.len(), expected.len());
        for (found, (id, sent)) in found.iter().zip(expected) {
            assert_same(found, *id, sent);
        }
    }
}

fn assert_same(found: &Event, id: EventId, sent: &NewEvent) {
    assert_eq!(found.event_id, id);
    if let Some(own) = sent.event_id {
        assert_eq!(own, id);
    }
    assert_eq!(
        (&found.topic, &found.key, &found.target, &found.payload, &found.content_type, &found.headers),
        (&sent.topic, &sent.key, &sent.target, &sent.payload, &sent.content_type, &sent.headers)
    );
}

fn paired(ids: Vec<EventId>, events: Vec<NewEvent>) -> Vec<(EventId, NewEvent)> {
    ids.into_iter().zip(events).collect()
}

fn assert_rejected<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error:?}");
}
