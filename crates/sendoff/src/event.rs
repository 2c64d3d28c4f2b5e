//! Events: what an application writes in its transaction, and what a worker reads back.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use uuid::Uuid;

use crate::claim::Timestamp;
use crate::error::StoreError;

/// The target of an event that names none.
pub const DEFAULT_TARGET: &str = "default";

/// The longest topic, in bytes.
pub const TOPIC_BYTES_MAX: usize = 255;
/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// The longest name of a target, in bytes.
pub const TARGET_BYTES_MAX: usize = 63;
/// The longest content type, in bytes.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;
/// The headers of one event together, names and values, in bytes.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;
/// The largest payload, in bytes, unless [`Limits`] says otherwise.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// What identifies an event wherever it goes: brokers and consumers know a second delivery by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct EventId(pub Uuid);

impl EventId {
    /// A new one: UUIDv7, so that ids made later sort later.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for EventId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

impl From<Uuid> for EventId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

/// Names and values that travel with an event. A name is there once; names keep their case.
pub type Headers = BTreeMap<String, String>;

/// An event about to be written.
///
/// ```
/// use sendoff::NewEvent;
/// # fn main() -> Result<(), sendoff::StoreError> {
/// let event = NewEvent::new("orders.placed")
///     .key("order-4711")
///     .json(&serde_json::json!({ "total": 99 }))?
///     .header("tenant", "acme");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Where it is published.
    pub topic: String,
    /// Its ordering key; none: it may overtake and be overtaken.
    pub key: Option<String>,
    /// The configured sink that delivers it.
    pub target: String,
    /// Its content.
    pub payload: Vec<u8>,
    /// What the content is, as a media type.
    pub content_type: Option<String>,
    /// What travels with it.
    pub headers: Headers,
    /// Its identity; none: one is made when it is written.
    pub event_id: Option<EventId>,
    /// Not before this moment. Such an event waits apart from its key: later ones of the key do not wait for it.
    pub deliver_at: Option<Timestamp>,
}

impl NewEvent {
    /// An event for `topic`, without a key and with an empty payload.
    pub fn new(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            key: None,
            target: DEFAULT_TARGET.to_owned(),
            payload: Vec::new(),
            content_type: None,
            headers: Headers::new(),
            event_id: None,
            deliver_at: None,
        }
    }

    /// Orders it among the events of this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Lets this sink deliver it.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = target.into();
        self
    }

    /// Its content, as bytes.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Its content, as JSON; says so in the content type.
    ///
    /// # Errors
    /// `Rejected` if `content` cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(mut self, content: &T) -> Result<Self, StoreError> {
        self.payload = serde_json::to_vec(content).map_err(|error| {
            StoreError::rejected("enqueue", "payload", "it cannot be written as JSON").caused_by(error)
        })?;
        self.content_type = Some("application/json".to_owned());
        Ok(self)
    }

    /// What its content is, as a media type.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// Adds a header, or replaces the one of this name.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Gives it an identity, instead of a new one.
    #[must_use]
    pub fn event_id(mut self, id: impl Into<EventId>) -> Self {
        self.event_id = Some(id.into());
        self
    }

    /// Holds it back until then.
    #[must_use]
    pub fn deliver_at(mut self, at: impl Into<Timestamp>) -> Self {
        self.deliver_at = Some(at.into());
        self
    }

    /// Checks it against `limits`. Every adapter does so before anything is written.
    ///
    /// # Errors
    /// `Rejected`, naming the part and the limit, and no content.
    pub fn check(&self, limits: &Limits) -> Result<(), StoreError> {
        text("topic", &self.topic, TOPIC_BYTES_MAX)?;
        text("target", &self.target, TARGET_BYTES_MAX)?;
        if let Some(key) = &self.key {
            text("key", key, KEY_BYTES_MAX)?;
        }
        if let Some(content_type) = &self.content_type {
            text("content type", content_type, CONTENT_TYPE_BYTES_MAX)?;
        }
        let mut headers = 0;
        for (name, value) in &self.headers {
            text("header name", name, HEADERS_BYTES_MAX)?;
            if value.contains(['\0', '\r', '\n']) {
                return Err(refuse("header", "a value has a NUL or a line break"));
            }
            headers += name.len() + value.len();
        }
        at_most("headers", headers, HEADERS_BYTES_MAX)?;
        at_most("payload", self.payload.len(), limits.payload_bytes)
    }
}

/// What an outbox takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload, in bytes.
    pub payload_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { payload_bytes: PAYLOAD_BYTES_MAX }
    }
}

fn text(part: &'static str, content: &str, most: usize) -> Result<(), StoreError> {
    if content.is_empty() {
        return Err(refuse(part, "it is empty"));
    }
    if content.contains(|c: char| c.is_control()) {
        return Err(refuse(part, "it has a control character, such as NUL or a line break"));
    }
    at_most(part, content.len(), most)
}

fn at_most(part: &'static str, bytes: usize, most: usize) -> Result<(), StoreError> {
    if bytes > most {
        return Err(refuse(part, &format!("it has {bytes} bytes; at most {most} are taken")));
    }
    Ok(())
}

fn refuse(part: &'static str, detail: &str) -> StoreError {
    StoreError::rejected("enqueue", part, detail.to_owned())
}

/// How often an event was tried in vain, by what went wrong. A target that is down and a lease that was lost
/// count for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Attempts {
    /// The sink refused it for now.
    pub failures: u32,
    /// Its worker died with it, and with nothing else, in hand.
    pub crashes: u32,
}

impl Attempts {
    /// All of them.
    pub fn total(self) -> u32 {
        self.failures.saturating_add(self.crashes)
    }
}

/// What an event's position, and the epoch of its claim, tell who receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Both rise along a key: who keeps the highest it has seen can tell what is old.
    #[default]
    Lane,
    /// The position rises along a key; the epoch says nothing.
    Column,
    /// Neither says anything: the host's own table has no order to rely on. Sinks leave them out.
    Unknown,
}

impl Standing {
    /// The position, if it says anything.
    pub fn position(self, event: &Event) -> Option<i64> {
        (self != Self::Unknown).then_some(event.position)
    }

    /// The epoch of a claim, if it says anything.
    pub fn epoch(self, epoch: i64) -> Option<i64> {
        (self == Self::Lane).then_some(epoch)
    }
}

/// An event as it stands in the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its identity.
    pub event_id: EventId,
    /// Where it stands: of two transactions that the host runs one after the other the later one's events
    /// have higher positions. Not dense.
    pub position: i64,
    /// Whether its position, and its claim's epoch, say anything to who receives it.
    pub standing: Standing,
    /// The configured sink that delivers it.
    pub target: String,
    /// The bucket of keys it belongs to.
    pub lane: u16,
    /// Where it is published.
    pub topic: String,
    /// Its ordering key.
    pub key: Option<String>,
    /// Its content.
    pub payload: Vec<u8>,
    /// What the content is.
    pub content_type: Option<String>,
    /// What travels with it.
    pub headers: Headers,
    /// When it was written, by the database's clock.
    pub created_at: Timestamp,
    /// How often it was tried in vain.
    pub attempts: Attempts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_the_part_and_the_limit() {
        let limits = Limits { payload_bytes: 3 };
        let fine = || NewEvent::new("t").key("k").payload("abc").header("a", "b");
        fine().check(&limits).unwrap();
        for (event, part) in [
            (NewEvent::new(""), "topic: rejected: it is empty"),
            (NewEvent::new("a\0b"), "topic: rejected: it has a control character"),
            (NewEvent::new("x".repeat(256)), "topic: rejected: it has 256 bytes; at most 255"),
            (fine().key(""), "key: rejected: it is empty"),
            (fine().key("k\n"), "key: rejected: it has a control"),
            (fine().key("k".repeat(256)), "key: rejected: it has 256 bytes"),
            (fine().target("t".repeat(64)), "target: rejected: it has 64 bytes; at most 63"),
            (fine().content_type("a\r\nb"), "content type: rejected: it has a control"),
            (fine().header("n\n", "v"), "header name: rejected: it has a control"),
            (fine().header("n", "v\r\nx: y"), "header: rejected: a value has a NUL or a line break"),
            (fine().header("n", "v".repeat(16 * 1024)), "headers: rejected: it has 16387 bytes"),
            (fine().payload("abcd"), "payload: rejected: it has 4 bytes; at most 3"),
        ] {
            let error = event.check(&limits).expect_err(part).to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn ids_made_later_sort_later() {
        let ids: Vec<EventId> = (0..100).map(|_| EventId::generate()).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[0].to_string().parse::<EventId>().unwrap(), ids[0]);
    }
}
