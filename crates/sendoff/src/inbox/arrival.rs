//! What the relay says about an event, as a broker delivers it.

use std::collections::BTreeMap;

use crate::event::EventId;

/// In front of an attribute's name: HTTP, NATS, Redis and inboxes; Kafka; AMQP, which has two.
const PREFIXES: [&str; 4] = ["ce-", "ce_", "cloudevents:", "cloudevents_"];

/// What is read of the attributes. Others are passed over.
const NAMES: [&str; 6] = ["id", "source", "partitionkey", "subject", "sendoffposition", "sendoffepoch"];

/// An event that has arrived, by what says where it stands.
///
/// ```
/// use sendoff::inbox::Arrival;
/// # fn main() -> Result<(), sendoff::inbox::ArrivalError> {
/// let headers = [
///     ("ce_id", "0190163d-8694-739b-aea5-966c26f8ad91"),
///     ("ce_source", "/sendoff/default"),
///     ("ce_partitionkey", "order-4711"),
///     ("ce_sendoffposition", "42"),
///     ("ce_sendoffepoch", "7"),
/// ];
/// let arrival = Arrival::from_headers(headers)?;
/// assert_eq!((arrival.key.as_deref(), arrival.position, arrival.epoch), (Some("order-4711"), Some(42), Some(7)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its identity.
    pub event_id: EventId,
    /// Which outbox and target it is of: positions and epochs of two sources do not compare.
    pub source: Option<String>,
    /// Its ordering key; none: it has no order.
    pub key: Option<String>,
    /// Where it stands in its key: later ones are higher. None: its outbox does not say.
    pub position: Option<i64>,
    /// The lease that it was sent under: later ones are higher. None: its outbox does not say.
    pub epoch: Option<i64>,
}

/// Why what arrived cannot be told by its headers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrivalError {
    /// It has no id.
    #[error(
        "no header says which event it is (`ce-id`, `ce_id` or `cloudEvents:id`); was it sent by a relay, in binary mode? a \
         structured event is read with `Arrival::from_json`"
    )]
    NoId,
    /// A value is not what it must be.
    #[error("`{name}` is not {wanted}; was the event sent by a relay?")]
    Unreadable {
        /// The attribute's name.
        name: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// The body of a structured event is none.
    #[error("the body is no CloudEvent in JSON: {0}")]
    NoJson(String),
}

impl Arrival {
    /// An event without an order, by its id alone.
    pub fn new(event_id: impl Into<EventId>) -> Self {
        Self { event_id: event_id.into(), source: None, key: None, position: None, epoch: None }
    }

    /// Reads the headers of a CloudEvent in binary mode, as Kafka, RabbitMQ, Redis, MQTT and the inbox sink deliver them: names with the prefix of any of these, or with none where no
    /// name has one, in any case; values as text.
    ///
    /// # Errors
    /// If there is no id, or one of the values is not what it must be.
    pub fn from_headers<N: AsRef<str>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ArrivalError> {
        Self::read(headers, false)
    }

    /// The same for HTTP and NATS, whose headers are ASCII: anything else is sent as `%XX`, and is read so.
    ///
    /// # Errors
    /// As [`from_headers`](Self::from_headers).
    pub fn from_ascii_headers<N: AsRef<str>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ArrivalError> {
        Self::read(headers, true)
    }

    /// Reads the body of a CloudEvent in structured mode, as SQS and SNS deliver it always, and any sink that is told to.
    ///
    /// # Errors
    /// As [`from_headers`](Self::from_headers), or if it is no JSON object.
    pub fn from_json(body: &[u8]) -> Result<Self, ArrivalError> {
        let body: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(body).map_err(|error| ArrivalError::NoJson(error.to_string()))?;
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self::from_attributes(|name| Ok(body.get(name).map(text)))
    }

    fn read<N: AsRef<str>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
        is_encoded: bool,
    ) -> Result<Self, ArrivalError> {
        let mut prefixed: BTreeMap<&'static str, Vec<u8>> = BTreeMap::new();
        let mut bare: BTreeMap<&'static str, Vec<u8>> = BTreeMap::new();
        for (name, value) in headers {
            let name = name.as_ref().to_ascii_lowercase();
            let stripped = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
            let to = if stripped.is_some() { &mut prefixed } else { &mut bare };
            let name = stripped.unwrap_or(&name);
            if let Some(known) = NAMES.iter().find(|known| **known == name) {
                to.insert(known, value.as_ref().to_vec());
            }
        }
        // A host's own headers stand beside the relay's: one called `id` says nothing where there is a `ce-id`.
        let found = if prefixed.is_empty() { bare } else { prefixed };
        Self::from_attributes(|name| {
            let Some(value) = found.get(name) else { return Ok(None) };
            let value = if is_encoded { decoded(value) } else { value.clone() };
            let wrong = |_| ArrivalError::Unreadable { name, wanted: "text" };
            String::from_utf8(value).map(Some).map_err(wrong)
        })
    }

    fn from_attributes(
        get: impl Fn(&'static str) -> Result<Option<String>, ArrivalError>,
    ) -> Result<Self, ArrivalError> {
        let number = |name| match get(name)? {
            None => Ok(None),
            Some(text) => {
                text.parse().map(Some).map_err(|_| ArrivalError::Unreadable { name, wanted: "a number" })
            }
        };
        let id = get("id")?.ok_or(ArrivalError::NoId)?;
        let key = match get("partitionkey")? {
            Some(key) => Some(key),
            None => get("subject")?,
        };
        Ok(Self {
            event_id: id
                .parse()
                .map_err(|_| ArrivalError::Unreadable { name: "id", wanted: "a UUID, as sendoff's are" })?,
            source: get("source")?,
            key,
            position: number("sendoffposition")?,
            epoch: number("sendoffepoch")?,
        })
    }
}

/// `%XX` is a byte; any other % is itself.
fn decoded(value: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        let pair = (*byte == b'%').then(|| Some((digit(value.get(at + 1))?, digit(value.get(at + 2))?)));
        match pair.flatten().map(|(high, low)| u8::try_from(high * 16 + low)) {
            Some(Ok(decoded)) => {
                bytes.push(decoded);
                at += 3;
            }
            _ => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190163d-8694-739b-aea5-966c26f8ad91";

    #[test]
    fn every_spelling_is_read() {
        for prefix in ["ce-", "ce_", "Ce-", "CE_", "cloudEvents:", "cloudEvents_", ""] {
            let headers = [
                ("specversion", "1.0"),
                ("id", ID),
                ("source", "/sendoff/default"),
                ("subject", "order 7"),
                ("partitionkey", "order 7"),
                ("sendoffposition", "42"),
                ("sendoffepoch", "7"),
            ];
            let arrival = Arrival::from_headers(
                headers.map(|(name, value)| (format!("{prefix}{name}"), value.as_bytes())),
            );
            let expected = Arrival {
                event_id: ID.parse().unwrap(),
                source: Some("/sendoff/default".to_owned()),
                key: Some("order 7".to_owned()),
                position: Some(42),
                epoch: Some(7),
            };
            assert_eq!(arrival.unwrap(), expected, "{prefix}");
        }
    }

    #[test]
    fn a_hosts_own_headers_say_nothing_about_the_event() {
        let headers = [("id", "mine"), ("ce-id", ID), ("source", "x"), ("sendoffepoch", "9")];
        assert_eq!(Arrival::from_headers(headers).unwrap(), Arrival::new(ID.parse::<EventId>().unwrap()));
    }

    #[test]
    fn what_http_encodes_is_decoded_and_nothing_else() {
        let headers = || [("ce-id", ID), ("ce-partitionkey", "Z%C3%BCrich%20100%25 %zz %")];
        let arrival = Arrival::from_ascii_headers(headers()).unwrap();
        assert_eq!(arrival.key.as_deref(), Some("Zürich 100% %zz %"));
        let arrival = Arrival::from_headers(headers()).unwrap();
        assert_eq!(arrival.key.as_deref(), Some("Z%C3%BCrich%20100%25 %zz %"));
    }

    #[test]
    fn a_structured_event_is_read() {
        let body = format!(
            r#"{{"specversion":"1.0","id":"{ID}","subject":"k","sendoffposition":"42","data":{{"id":1}}}}"#
        );
        let arrival = Arrival::from_json(body.as_bytes()).unwrap();
        assert_eq!((arrival.key.as_deref(), arrival.position, arrival.epoch), (Some("k"), Some(42), None));
        assert!(matches!(Arrival::from_json(b"[]"), Err(ArrivalError::NoJson(_))));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let none: [(&str, &str); 0] = [];
        assert_eq!(Arrival::from_headers(none), Err(ArrivalError::NoId));
        for (name, value, wrong) in [
            ("ce-id", "7", "id"),
            ("ce-sendoffposition", "x", "sendoffposition"),
            ("ce-sendoffepoch", "", "sendoffepoch"),
        ] {
            let headers = [("ce-id", ID), (name, value)];
            let Err(ArrivalError::Unreadable { name, .. }) = Arrival::from_headers(headers) else {
                panic!("{name}");
            };
            assert_eq!(name, wrong);
        }
        let error = Arrival::from_headers([("ce-id", ID.as_bytes()), ("ce-source", b"\xff")]).unwrap_err();
        assert_eq!(error.to_string(), "`source` is not text; was the event sent by a relay?");
    }
}
