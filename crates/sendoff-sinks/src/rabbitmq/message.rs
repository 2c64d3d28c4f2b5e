//! An event as it is published.

use std::borrow::Cow;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use sendoff::outbox::Claimed;

use super::RabbitMqConfig;
use super::answer::Outcome;
use crate::envelope::Carrier;

/// Headers that the server reads as more routing keys.
const RESERVED: [&str; 2] = ["CC", "BCC"];

/// Survives a restart of the server, in a queue that does.
const PERSISTENT: u8 = 2;

pub(super) struct Message<'e> {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    pub(super) id: ShortString,
    pub(super) payload: Cow<'e, [u8]>,
    pub(super) properties: BasicProperties,
    /// What the properties need in the one frame that they must fit into.
    frame: usize,
}

impl<'e> Message<'e> {
    /// # Errors
    /// Why the event cannot be published, ever.
    pub(super) fn new(config: &RabbitMqConfig, event: &'e Claimed) -> Result<Self, String> {
        let exchange = short("its exchange", &config.exchange.fill(&event.event)?)?;
        let routing_key = short("its routing key", &config.routing_key.fill(&event.event)?)?;
        let topic = short("its topic", &event.event.topic)?;
        let id = short("its id", &event.event.event_id.to_string())?;
        let envelope = config.envelope.wrap(&Carrier::RABBITMQ, event)?;
        if envelope.body.len() > config.max_payload {
            return Err(format!(
                "it has {} bytes, and `max_payload` allows {}",
                envelope.body.len(),
                config.max_payload
            ));
        }
        // Frame, class, size and flags; then the properties that every message has, with the lengths of their texts.
        let mut frame = 22 + 4 + 1 + 8 + 1 + id.as_str().len() + 1 + topic.as_str().len();
        let mut headers = FieldTable::default();
        for (name, value) in envelope.headers {
            if RESERVED.contains(&name) {
                return Err(format!("its header `{name}` has a name that the server reads as its own"));
            }
            frame += 1 + name.len() + 5 + value.len();
            headers.insert(
                short("a header's name", name)?,
                AMQPValue::LongString(LongString::from(value.into_owned())),
            );
        }
        let mut properties = BasicProperties::default()
            .with_message_id(id.clone())
            .with_delivery_mode(PERSISTENT)
            .with_type(topic)
            .with_headers(headers);
        if let Ok(seconds) = u64::try_from(event.event.created_at.as_micros() / 1_000_000) {
            properties = properties.with_timestamp(seconds);
        }
        if let Some(content_type) = envelope.content_type {
            frame += 1 + content_type.len();
            properties = properties.with_content_type(short("its content type", &content_type)?);
        }
        Ok(Self { exchange, routing_key, id, payload: envelope.body, properties, frame })
    }

    /// Rejected, if its headers are more than a frame holds: the server would close the connection.
    pub(super) fn fits(&self, frame_max: usize) -> Outcome {
        if self.frame <= frame_max {
            return Outcome::Unanswered;
        }
        Outcome::TooLong(format!(
            "its headers have {} bytes, and the server takes {frame_max} (`frame_max`)",
            self.frame
        ))
    }
}

/// A text of at most 255 bytes.
pub(super) fn short(what: &str, text: &str) -> Result<ShortString, String> {
    ShortString::try_new(text).map_err(|_| format!("{what} has {} bytes, and 255 is the most", text.len()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    fn config() -> RabbitMqConfig {
        RabbitMqConfig {
            exchange: "of-{key}".parse().unwrap(),
            max_payload: 10,
            ..RabbitMqConfig::new("amqp://localhost", "")
        }
    }

    fn refused(event: &Claimed) -> String {
        Message::new(&config(), event).err().unwrap_or_default()
    }

    #[test]
    fn what_can_never_be_published_is_refused_with_a_reason() {
        let event = || claimed(1, Some("k"), b"0123456789");
        assert_eq!(refused(&event()), "");
        assert_eq!(refused(&claimed(1, None, b"x")), "it has no key to be named by");
        let long = "k".repeat(253);
        assert_eq!(
            refused(&claimed(1, Some(&long), b"x")),
            "its exchange has 256 bytes, and 255 is the most"
        );
        assert_eq!(
            refused(&claimed(1, Some("k"), b"0123456789a")),
            "it has 11 bytes, and `max_payload` allows 10"
        );
        let mut topic = event();
        topic.event.topic = "t".repeat(256);
        assert_eq!(refused(&topic), "its routing key has 256 bytes, and 255 is the most");
        let mut content_type = event();
        content_type.event.content_type = Some("t".repeat(256));
        assert_eq!(refused(&content_type), "its content type has 256 bytes, and 255 is the most");
        for name in RESERVED {
            let mut reserved = event();
            reserved.event.headers.insert(name.to_owned(), "queue".to_owned());
            let reason = format!("its header `{name}` has a name that the server reads as its own");
            assert_eq!(refused(&reserved), reason);
        }
    }

    #[test]
    fn headers_fit_into_one_frame() {
        let mut event = claimed(1, Some("k"), b"x");
        event.event.content_type = Some("text/plain".to_owned());
        event.event.headers.insert("long".to_owned(), "x".repeat(2_000));
        let config = config();
        let message = Message::new(&config, &event).unwrap();
        assert!(matches!(message.fits(message.frame), Outcome::Unanswered));
        let Outcome::TooLong(reason) = message.fits(message.frame - 1) else { panic!("it does not fit") };
        assert!(reason.starts_with("its headers have 2") && reason.contains("`frame_max`"), "{reason}");
    }
}
