//! Events by column, for PostgreSQL's arrays.

use sqlx::types::time::OffsetDateTime;
use uuid::Uuid;

use super::Templates;
use super::enqueue::headers_json;
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::NewEvent;

/// Events by column: any number of them fill one statement, whose text never changes, in one trip.
pub(crate) struct EventColumns<'a> {
    pub(crate) targets: Vec<&'a str>,
    pub(crate) topics: Vec<&'a str>,
    pub(crate) keys: Vec<Option<&'a str>>,
    pub(crate) payloads: Vec<&'a [u8]>,
    pub(crate) content_types: Vec<Option<&'a str>>,
    pub(crate) headers: Vec<Option<String>>,
    pub(crate) event_ids: Vec<Option<Uuid>>,
    pub(crate) deliver_at: Vec<Option<OffsetDateTime>>,
}

impl<'a> EventColumns<'a> {
    /// The statement they fill: `$1` to `$8` are the fields, in their order.
    pub(crate) fn statement(templates: &Templates) -> Result<String, StoreError> {
        let file = include_str!("../../postgres/outbox/enqueue_many.sql");
        Ok(templates.fill(file, &[])?.sql)
    }

    pub(crate) fn of(events: &'a [NewEvent]) -> Result<Self, StoreError> {
        let headers = |event: &NewEvent| (!event.headers.is_empty()).then(|| headers_json(event).to_string());
        Ok(Self {
            targets: events.iter().map(|event| event.target.as_str()).collect(),
            topics: events.iter().map(|event| event.topic.as_str()).collect(),
            keys: events.iter().map(|event| event.key.as_deref()).collect(),
            payloads: events.iter().map(|event| event.payload.as_slice()).collect(),
            content_types: events.iter().map(|event| event.content_type.as_deref()).collect(),
            headers: events.iter().map(headers).collect(),
            event_ids: events.iter().map(|event| event.event_id.map(|id| id.0)).collect(),
            deliver_at: events
                .iter()
                .map(|event| event.deliver_at.map(moment).transpose())
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Never NULL instead: the event would be published now.
fn moment(at: Timestamp) -> Result<OffsetDateTime, StoreError> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1_000).map_err(|error| {
        let detail = "a timestamp lies outside the years -9999 to 9999";
        StoreError::rejected("enqueue", "deliver_at", detail).caused_by(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_cannot_be_sent_is_refused_and_not_dropped() {
        let never = NewEvent::new("t").deliver_at(Timestamp::from_micros(i64::MAX));
        let error = EventColumns::of(&[never]).map(drop).unwrap_err();
        assert!(error.to_string().contains("deliver_at: rejected"), "{error}");
    }
}
