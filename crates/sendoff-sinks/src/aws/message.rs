//! From an event to a message, with what can never be sent refused before.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sendoff::outbox::Claimed;
use sha2::{Digest as _, Sha256};

use super::publisher::Target;

/// The type of a message attribute whose value is text.
pub(super) const TEXT: &str = "String";

/// The name of a group has so many letters at most.
const GROUP_MAX: usize = 128;

/// In front of a hash that stands for a key.
const HASHED: &str = "sha256:";

/// How the name of a FIFO queue, or of a FIFO topic, ends.
const FIFO: &str = ".fifo";

/// An event as it is sent.
#[derive(Debug)]
pub(super) struct Message {
    /// The queue's URL, or the topic's ARN.
    pub(super) target: String,
    /// The event's.
    pub(super) id: String,
    pub(super) body: String,
    pub(super) attributes: Vec<(&'static str, String)>,
    /// In a FIFO queue or topic, its messages are kept in their order.
    pub(super) group: Option<String>,
    /// As it is counted by AWS.
    pub(super) size: usize,
}

impl Message {
    /// # Errors
    /// Why the event cannot be sent, ever.
    pub(super) fn new(target: &Target, claimed: &Claimed) -> Result<Self, String> {
        let event = &claimed.event;
        let name = target.template.fill(event)?;
        let id = event.event_id.to_string();
        let body = target.envelope.wrap_text(claimed)?;
        let trace = event.headers.get("traceparent");
        let said_again = [("ce-id", Some(&id)), ("ce-type", Some(&event.topic)), ("traceparent", trace)];
        let attributes: Vec<_> = said_again
            .into_iter()
            // The body has it anyway.
            .filter_map(|(name, value)| Some((name, value.filter(|value| is_value(value))?.clone())))
            .collect();
        let group = is_fifo(&name).then(|| group(event.key.as_deref().unwrap_or(&id)));
        let of_attributes = attributes.iter().map(|(name, value)| name.len() + TEXT.len() + value.len());
        let size = body.len() + of_attributes.sum::<usize>();
        if size > target.max_bytes {
            let max = target.max_bytes;
            return Err(format!("it is too large: a message of {size} bytes, and `max_bytes` is {max}"));
        }
        Ok(Self { target: name, id, body, attributes, group, size })
    }
}

/// By its name: AWS insists on it.
pub(super) fn is_fifo(target: &str) -> bool {
    target.ends_with(FIFO)
}

/// What an attribute may say: something, of the characters that XML has.
fn is_value(text: &str) -> bool {
    let is_taken = |letter: char| match letter {
        '\t' | '\n' | '\r' => true,
        '\u{FFFE}' | '\u{FFFF}' => false,
        other => other >= ' ',
    };
    !text.is_empty() && text.chars().all(is_taken)
}

/// The name of a key's group. A key that looks like a hash is hashed too, so that no two keys have the same.
fn group(key: &str) -> String {
    let fits = (1..=GROUP_MAX).contains(&key.len()) && key.chars().all(|letter| letter.is_ascii_graphic());
    if fits && !key.starts_with(HASHED) {
        return key.to_owned();
    }
    format!("{HASHED}{}", URL_SAFE_NO_PAD.encode(Sha256::digest(key)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::envelope::EnvelopeConfig;
    use crate::json_line::tests::claimed;

    fn target(name: &str) -> Target {
        Target { template: name.parse().unwrap(), max_bytes: 2_000, envelope: EnvelopeConfig::default() }
    }

    #[test]
    fn everything_is_in_the_body() {
        let mut event = claimed(42, Some("Zürich 7"), "{\"total\": 1.10, \"x\": \"\u{FFFE}\"}".as_bytes());
        for (name, value) in
            [("tenant", ""), ("X-Shop", "a b"), ("traceparent", "00-ab"), ("tracestate", "c")]
        {
            event.event.headers.insert(name.to_owned(), value.to_owned());
        }
        let message = Message::new(&target("https://h/{topic}"), &event).unwrap();
        assert_eq!((message.target.as_str(), message.group), ("https://h/orders", None));
        assert!(message.body.contains("\"data\":{\"total\": 1.10, \"x\": \"\\ufffe\"}"), "{}", message.body);
        let json: serde_json::Value = serde_json::from_str(&message.body).unwrap();
        for (name, value) in [
            ("specversion", "1.0"),
            ("type", "orders"),
            ("partitionkey", "Zürich 7"),
            ("tenant", ""),
            ("traceparent", "00-ab"),
            ("tracestate", "c"),
            ("sendoffheaders", r#"{"X-Shop":"a b"}"#),
        ] {
            assert_eq!(json[name], value, "{name}");
        }
        assert_eq!(json["data"]["x"], "\u{FFFE}");
        let id = event.event.event_id.to_string();
        let expected = [("ce-id", id), ("ce-type", "orders".to_owned()), ("traceparent", "00-ab".to_owned())];
        assert_eq!(message.attributes, expected);
        event.event.topic = String::new();
        event.event.headers.insert("traceparent".to_owned(), "\u{1}".to_owned());
        let message = Message::new(&target("q"), &event).unwrap();
        assert_eq!(message.attributes.len(), 1, "what no attribute may say is in the body alone");
    }

    #[test]
    fn what_can_never_be_sent_is_refused_with_a_reason() {
        let refused =
            |target: &Target, event: &Claimed| Message::new(target, event).err().unwrap_or_default();
        let mut event = claimed(1, None, b"x");
        assert_eq!(refused(&target("q-{key}"), &event), "it has no key to be named by");
        event.event.payload = vec![b'x'; 1_500];
        let error = refused(&target("q"), &event);
        assert!(
            error.starts_with("it is too large: a message of 2") && error.ends_with("`max_bytes` is 2000")
        );
        event.event.payload = Vec::new();
        assert_eq!(refused(&target("q"), &event), "");
        for (name, value, error) in [
            ("id", "a", "its header `id` has the name of one that says what the event is"),
            (
                "sendoffheaders",
                "a",
                "its header `sendoffheaders` has the name of one that says what the event is",
            ),
            ("x-y", "a\nb", "its header `x-y` has a line break"),
            ("traceparent", "a\0", "its header `traceparent` has a NUL"),
            ("", "a", "it has a header without a name"),
        ] {
            event.event.headers = [(name.to_owned(), value.to_owned())].into();
            assert_eq!(refused(&target("q"), &event), error);
        }
    }

    #[test]
    fn the_size_is_counted_to_the_byte() {
        let event = claimed(1, Some("k"), b"{}");
        let size = Message::new(&target("q"), &event).unwrap().size;
        assert!(Message::new(&Target { max_bytes: size, ..target("q") }, &event).is_ok());
        assert!(Message::new(&Target { max_bytes: size - 1, ..target("q") }, &event).is_err());
    }

    #[test]
    fn each_key_has_a_group_of_its_own() {
        let long = "x".repeat(128);
        for key in ["order-7", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", &long] {
            assert_eq!(group(key), key);
        }
        let hashed = group("two words");
        assert_eq!(hashed, "sha256:oD8dYRZF61OtFsGvVGygeS3IhFBbq1ft6A9NrWuRHTo");
        let keys = ["two words", "Zürich", "", "a\tb", &"x".repeat(129), hashed.as_str(), "sha256:"];
        let groups: HashSet<String> = keys.into_iter().map(group).collect();
        assert_eq!(groups.len(), keys.len(), "{groups:?}");
        assert!(groups.iter().all(|name| name.len() == 50 && name.chars().all(|one| one.is_ascii_graphic())));
    }

    #[test]
    fn a_fifo_target_is_told_by_its_name() {
        let event = claimed(1, None, b"x");
        let id = event.event.event_id.to_string();
        let group = |name: &str, event: &Claimed| Message::new(&target(name), event).unwrap().group;
        assert_eq!(group("https://h/1/q.fifo", &event), Some(id), "no key: it holds nothing up");
        assert_eq!(group("https://h/1/q", &event), None);
        assert_eq!(group("https://h/1/q.fifo", &claimed(1, Some("k"), b"x")), Some("k".to_owned()));
    }
}
