//! An event as it is produced.

use std::borrow::Cow;

use rdkafka::message::{Header, OwnedHeaders};
use sendoff::outbox::Claimed;

use super::config::KafkaConfig;
use crate::envelope::Carrier;

/// The header that says what the payload is.
const CONTENT_TYPE: &str = "content-type";

/// The longest name that a topic may have.
const TOPIC_MAX: usize = 249;

pub(super) struct Message<'e> {
    pub(super) topic: String,
    pub(super) key: Option<&'e str>,
    pub(super) payload: Cow<'e, [u8]>,
    /// When the event was written, in milliseconds.
    pub(super) written_at: i64,
    headers: Vec<(&'e str, Cow<'e, str>)>,
}

impl<'e> Message<'e> {
    /// # Errors
    /// Why the event cannot be produced, ever.
    pub(super) fn new(config: &KafkaConfig, event: &'e Claimed) -> Result<Self, String> {
        let topic = config.topic.fill(&event.event)?;
        check_topic(&topic)?;
        let envelope = config.envelope.wrap(&Carrier::KAFKA, event)?;
        let mut headers = envelope.headers;
        if headers.iter().any(|(name, _)| *name == CONTENT_TYPE) {
            return Err(format!(
                "its header `{CONTENT_TYPE}` has the name of the header for its content type"
            ));
        }
        if let Some(content_type) = envelope.content_type {
            headers.push((CONTENT_TYPE, content_type));
        }
        Ok(Self {
            topic,
            key: event.event.key.as_deref(),
            payload: envelope.body,
            written_at: event.event.created_at.as_micros().div_euclid(1_000),
            headers,
        })
    }

    pub(super) fn headers(&self) -> OwnedHeaders {
        let empty = OwnedHeaders::new_with_capacity(self.headers.len());
        self.headers.iter().fold(empty, |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value.as_bytes()) })
        })
    }
}

fn check_topic(topic: &str) -> Result<(), String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let is_name = !matches!(topic, "" | "." | "..") && topic.len() <= TOPIC_MAX;
    if is_name && topic.chars().all(is_letter) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no topic: up to {TOPIC_MAX} letters, digits, `.`, `_` and `-`",
        topic.escape_debug()
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    #[test]
    fn what_can_never_be_produced_is_refused_with_a_reason() {
        let config = KafkaConfig { topic: "{key}".parse().unwrap(), ..KafkaConfig::new("h:1") };
        let refused = |event: &Claimed| Message::new(&config, event).err().unwrap_or_default();
        for topic in ["a b", "", ".", "..", "a/b", "Zürich", "a\nb", &"a".repeat(250)] {
            assert!(refused(&claimed(1, Some(topic), b"x")).contains("is no topic"), "{topic:?}");
        }
        assert_eq!(refused(&claimed(1, None, b"x")), "it has no key to be named by");
        let mut event = claimed(1, Some("a.B_c-1"), b"x");
        assert_eq!(refused(&event), "");
        event.event.headers.insert("content-type".to_owned(), "another".to_owned());
        let error = "its header `content-type` has the name of the header for its content type";
        assert_eq!(refused(&event), error);
        event.event.headers = [("ce_id".to_owned(), "another".to_owned())].into();
        assert!(refused(&event).contains("`ce_id`"));
    }

    #[test]
    fn the_time_of_a_record_is_when_its_event_was_written() {
        let mut event = claimed(1, None, b"x");
        event.event.created_at = sendoff::claim::Timestamp::from_micros(1_700_000_000_123_456);
        let config = KafkaConfig::new("h:1");
        assert_eq!(Message::new(&config, &event).unwrap().written_at, 1_700_000_000_123);
    }
}
