//! From an event to what goes over the wire: headers and a body, the same for every sink.
//!
//! A [CloudEvent](https://github.com/cloudevents/spec) 1.0, in binary mode by default: the payload is the body as it was written, and what is known
//! about it goes beside it. What a broker's headers cannot hold is refused with a reason before it is sent; it is never cut, and never ends a header early.

// Amazon's sinks have no headers.
#![cfg_attr(
    not(any(
        feature = "http",
        feature = "inbox",
        feature = "kafka",
        feature = "mqtt",
        feature = "nats",
        feature = "rabbitmq",
        feature = "redis"
    )),
    allow(dead_code)
)]

mod carrier;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Event;
use sendoff::outbox::Claimed;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub(crate) use self::carrier::Carrier;
use self::carrier::{AttributeNames, BARE, whole};

/// The content type of a structured event.
const STRUCTURED: &str = "application/cloudevents+json; charset=UTF-8";

/// W3C trace context: sent under these names whatever the broker, and part of a structured event.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// The attribute for headers whose names no attribute may have: a JSON object, as text.
#[cfg(feature = "_aws")]
const OTHER_HEADERS: &str = "sendoffheaders";

/// How what is known about an event travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In headers; the body is the payload.
    #[default]
    Binary,
    /// In the body, which is JSON and has the payload in it.
    Structured,
}

/// How events are wrapped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvelopeConfig {
    /// Where what is known about an event goes.
    pub mode: Mode,
    /// Which program the events are of, as a URI: `https://shop.example/orders`. None: `/sendoff/<target>`.
    pub source: Option<String>,
}

/// An attribute or a header, with its name.
type Named<'e> = (&'e str, Cow<'e, str>);

/// An event as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope<'e> {
    /// What the body is.
    pub(crate) content_type: Option<Cow<'e, str>>,
    /// Each name once.
    pub(crate) headers: Vec<Named<'e>>,
    pub(crate) body: Cow<'e, [u8]>,
}

impl EnvelopeConfig {
    /// Wraps an event.
    ///
    /// # Errors
    /// Why it cannot be sent by this carrier.
    pub(crate) fn wrap<'e>(&self, carrier: &Carrier, claimed: &'e Claimed) -> Result<Envelope<'e>, String> {
        let event = &claimed.event;
        let mut headers = Vec::new();
        let (body, content_type) = match self.mode {
            Mode::Binary => {
                headers = self.attributes(claimed, &carrier.attributes)?;
                headers.iter_mut().try_for_each(|(name, value)| carrier.fit(name, value))?;
                (Cow::Borrowed(event.payload.as_slice()), event.content_type.as_deref().map(Cow::Borrowed))
            }
            Mode::Structured => {
                let body = structured(event, &self.attributes(claimed, &BARE)?);
                (Cow::Owned(body), Some(Cow::Borrowed(STRUCTURED)))
            }
        };
        if let Some(content_type) = &content_type {
            whole("content type", content_type)?;
        }
        for (name, value) in &event.headers {
            carrier.check_name(name)?;
            if headers.iter().any(|(taken, _)| carrier.is_same(taken, name)) {
                return Err(format!("its header `{name}` has the name of one that says what the event is"));
            }
            headers.push((name.as_str(), Cow::Borrowed(whole(name, value)?)));
        }
        Ok(Envelope { content_type, headers, body })
    }

    /// Wraps an event for a carrier that has no headers: the event's own go into the body as well, beside the attributes.
    ///
    /// # Errors
    /// Why it cannot be sent so.
    #[cfg(feature = "mqtt")]
    pub(crate) fn wrap_whole(&self, claimed: &Claimed) -> Result<Vec<u8>, String> {
        let event = &claimed.event;
        let mut attributes = self.attributes(claimed, &BARE)?;
        let known = attributes.len();
        for (name, value) in event.headers.iter().filter(|(name, _)| !TRACE.contains(&name.as_str())) {
            let shown = name.escape_debug();
            if name.is_empty() || !name.chars().all(|one| matches!(one, 'a'..='z' | '0'..='9')) {
                return Err(format!(
                    "its header `{shown}` has nowhere to go: there are no headers, and an attribute's name is of a-z and 0-9"
                ));
            }
            let is_known = attributes.iter().take(known).any(|(taken, _)| taken == name);
            if is_known || matches!(name.as_str(), "data" | "datacontenttype" | "dataschema") {
                return Err(format!("its header `{shown}` has the name of one that says what the event is"));
            }
            attributes.push((name, Cow::Borrowed(whole(name, value)?)));
        }
        Ok(structured(event, &attributes))
    }

    /// Wraps an event for a carrier that has no room for headers: the event's own go into the body as well, as attributes where their names allow it, and the others in
    /// [`OTHER_HEADERS`]. It has no character that XML does not have.
    ///
    /// # Errors
    /// Why it cannot be sent so.
    #[cfg(feature = "_aws")]
    pub(crate) fn wrap_text(&self, claimed: &Claimed) -> Result<String, String> {
        let event = &claimed.event;
        let mut attributes = self.attributes(claimed, &BARE)?;
        let known = attributes.len();
        let mut others = serde_json::Map::new();
        for (name, value) in &event.headers {
            Carrier::AWS.check_name(name)?;
            let value = whole(name, value)?;
            let is_known = attributes.iter().take(known).any(|(taken, _)| taken == name);
            if is_known || matches!(name.as_str(), "data" | "datacontenttype" | "dataschema" | OTHER_HEADERS)
            {
                return Err(format!("its header `{name}` has the name of one that says what the event is"));
            }
            if TRACE.contains(&name.as_str()) {
                continue;
            }
            if name.chars().all(|one| matches!(one, 'a'..='z' | '0'..='9')) {
                attributes.push((name, Cow::Borrowed(value)));
            } else {
                others.insert(name.clone(), value.into());
            }
        }
        if !others.is_empty() {
            attributes.push((OTHER_HEADERS, Cow::Owned(serde_json::Value::Object(others).to_string())));
        }
        let json = String::from_utf8(structured(event, &attributes)).map_err(|error| error.to_string())?;
        // The only two that JSON lets through; in JSON they can be in a string alone, where they may be escaped.
        Ok(json.replace('\u{FFFE}', "\\ufffe").replace('\u{FFFF}', "\\uffff"))
    }

    /// What a CloudEvent says about an event, and what sendoff adds.
    fn attributes<'e>(&self, claimed: &'e Claimed, names: &AttributeNames) -> Result<Vec<Named<'e>>, String> {
        let event = &claimed.event;
        let source = match &self.source {
            Some(source) => Cow::Owned(source.clone()),
            None => Cow::Owned(format!("/sendoff/{}", event.target)),
        };
        // The host's headers may come after them.
        let mut attributes: Vec<Named<'e>> = Vec::with_capacity(9 + event.headers.len());
        attributes.push((names.specversion, Cow::Borrowed("1.0")));
        attributes.push((names.id, Cow::Owned(event.event_id.to_string())));
        attributes.push((names.source, source));
        attributes.push((names.kind, Cow::Borrowed(&event.topic)));
        attributes.push((names.time, Cow::Owned(written_at(event)?)));
        if let Some(key) = &event.key {
            attributes.push((names.subject, Cow::Borrowed(key)));
            attributes.push((names.partitionkey, Cow::Borrowed(key)));
        }
        // Rises along a key, and so does the epoch: a consumer that keeps the highest it has seen can tell what is old.
        if let Some(position) = event.standing.position(event) {
            attributes.push((names.position, Cow::Owned(position.to_string())));
        }
        if let Some(epoch) = event.standing.epoch(claimed.token.epoch) {
            attributes.push((names.epoch, Cow::Owned(epoch.to_string())));
        }
        Ok(attributes)
    }
}

/// When it was written, as RFC 3339 has it.
pub(crate) fn written_at(event: &Event) -> Result<String, String> {
    let nanos = i128::from(event.created_at.as_micros()) * 1_000;
    let time =
        OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| "it was written at no time there is")?;
    time.format(&Rfc3339).map_err(|error| error.to_string())
}

/// The event as JSON. A payload that is JSON goes in as it is, digit for digit; any other as base64.
fn structured(event: &Event, attributes: &[Named<'_>]) -> Vec<u8> {
    let text = |value: &str| serde_json::to_string(value).unwrap_or_default();
    let mut json = String::from("{");
    let traced =
        TRACE.iter().filter_map(|name| Some((*name, Cow::Borrowed(event.headers.get(*name)?.as_str()))));
    let content_type = event.content_type.as_deref().map(|name| ("datacontenttype", Cow::Borrowed(name)));
    for (name, value) in attributes.iter().cloned().chain(content_type).chain(traced) {
        json.push_str(&format!("{}:{},", text(name), text(&value)));
    }
    let is_json = event.content_type.as_deref().is_none_or(|name| name.contains("json"));
    let data: Option<&RawValue> = serde_json::from_slice(&event.payload).ok().filter(|_| is_json);
    match data {
        Some(data) => json.push_str(&format!("\"data\":{}}}", data.get())),
        None => json.push_str(&format!("\"data_base64\":\"{}\"}}", STANDARD.encode(&event.payload))),
    }
    json.into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::carrier::attribute_names;
    use super::*;
    use crate::json_line::tests::claimed;

    /// As strict as HTTP is.
    const STRICT: Carrier = Carrier {
        attributes: attribute_names!("ce-"),
        names_are_tokens: true,
        attributes_are_ascii: true,
        name_max: 100,
    };

    /// As much as any broker takes.
    const LOOSE: Carrier = Carrier {
        attributes: attribute_names!("ce-"),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: usize::MAX,
    };

    fn event() -> Claimed {
        let mut claimed = claimed(42, Some("order 7"), br#"{"total": 1.10}"#);
        claimed.event.created_at = sendoff::claim::Timestamp::from_micros(1_700_000_000_123_456);
        claimed.event.content_type = Some("application/json".to_owned());
        claimed.event.headers.insert("traceparent".to_owned(), "00-ab-cd-01".to_owned());
        claimed.event.headers.insert("tenant".to_owned(), "acme".to_owned());
        claimed
    }

    fn binary(carrier: &Carrier, claimed: &Claimed) -> Result<Vec<(String, String)>, String> {
        let envelope = EnvelopeConfig::default().wrap(carrier, claimed)?;
        Ok(envelope.headers.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect())
    }

    #[test]
    fn binary_mode_leaves_the_payload_as_it_is() {
        let claimed = event();
        let envelope = EnvelopeConfig::default().wrap(&LOOSE, &claimed).unwrap();
        assert_eq!(envelope.body, claimed.event.payload);
        assert_eq!(envelope.content_type.as_deref(), Some("application/json"));
        let id = claimed.event.event_id.to_string();
        let expected = [
            ("ce-specversion", "1.0"),
            ("ce-id", id.as_str()),
            ("ce-source", "/sendoff/default"),
            ("ce-type", "orders"),
            ("ce-time", "2023-11-14T22:13:20.123456Z"),
            ("ce-subject", "order 7"),
            ("ce-partitionkey", "order 7"),
            ("ce-sendoffposition", "42"),
            ("ce-sendoffepoch", "7"),
            ("tenant", "acme"),
            ("traceparent", "00-ab-cd-01"),
        ];
        assert_eq!(envelope.headers, expected.map(|(name, value)| (name, Cow::Borrowed(value))));
    }

    #[test]
    fn what_stands_for_no_order_is_left_out() {
        let mut claimed = event();
        for (standing, expected) in [
            (sendoff::Standing::Lane, &["ce-sendoffposition", "ce-sendoffepoch"][..]),
            (sendoff::Standing::Column, &["ce-sendoffposition"]),
            (sendoff::Standing::Unknown, &[]),
        ] {
            claimed.event.standing = standing;
            let headers = binary(&LOOSE, &claimed).unwrap();
            let ours = headers.iter().map(|(name, _)| name.as_str()).filter(|name| name.contains("sendoff"));
            assert_eq!(ours.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn structured_mode_is_one_json_object() {
        let config =
            EnvelopeConfig { mode: Mode::Structured, source: Some("https://shop.example".to_owned()) };
        let claimed = event();
        let envelope = config.wrap(&STRICT, &claimed).unwrap();
        assert_eq!(envelope.content_type.as_deref(), Some(STRUCTURED));
        let text = std::str::from_utf8(&envelope.body).unwrap();
        assert!(text.contains("\"data\":{\"total\": 1.10}"), "digit for digit: {text}");
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (json["type"].as_str(), json["source"].as_str()),
            (Some("orders"), Some("https://shop.example"))
        );
        assert_eq!(
            (json["subject"].as_str(), json["traceparent"].as_str()),
            (Some("order 7"), Some("00-ab-cd-01"))
        );
        assert_eq!(json["datacontenttype"], "application/json");
        let names: Vec<_> = envelope.headers.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["tenant", "traceparent"], "the host's own stay headers");
        let mut binary = claimed;
        binary.event.payload = vec![0xff, 0];
        let envelope = config.wrap(&STRICT, &binary).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&envelope.body).unwrap();
        assert_eq!((json["data_base64"].as_str(), json.get("data")), (Some("/wA="), None));
    }

    #[test]
    fn nothing_ends_a_header_early() {
        for (name, value, error) in [
            ("x", "a\r\nce-id: b", "its header `x` has a line break"),
            ("x", "a\0", "its header `x` has a NUL"),
            ("x\ny", "a", "its header name `x\\ny` has a line break"),
            ("", "a", "it has a header without a name"),
        ] {
            let mut claimed = event();
            claimed.event.headers.insert(name.to_owned(), value.to_owned());
            for carrier in [STRICT, LOOSE] {
                assert_eq!(binary(&carrier, &claimed).unwrap_err(), error);
            }
        }
        let mut claimed = event();
        claimed.event.key = Some("a\nb".to_owned());
        assert_eq!(binary(&LOOSE, &claimed).unwrap_err(), "its header `subject` has a line break");
        claimed.event.key = None;
        claimed.event.content_type = Some("text/plain\r\nx: y".to_owned());
        assert_eq!(binary(&STRICT, &claimed).unwrap_err(), "its header `content type` has a line break");
    }

    #[test]
    fn each_carrier_gets_what_it_can_hold() {
        let mut claimed = event();
        claimed.event.key = Some("Zürich 100%".to_owned());
        let headers = binary(&STRICT, &claimed).unwrap();
        assert_eq!(headers[5].1, "Z%C3%BCrich%20100%25");
        assert_eq!(binary(&LOOSE, &claimed).unwrap()[5].1, "Zürich 100%");
        claimed.event.headers.insert("place".to_owned(), "Zürich 100%".to_owned());
        let own = binary(&STRICT, &claimed).unwrap().into_iter().find(|(name, _)| name == "place").unwrap();
        assert_eq!(own.1, "Zürich 100%", "the host's own as it is");
        claimed.event.headers.insert("two words".to_owned(), "x".to_owned());
        let error = "its header name `two words` has letters that this broker does not take";
        assert_eq!(binary(&STRICT, &claimed).unwrap_err(), error);
        assert!(binary(&LOOSE, &claimed).is_ok());
        claimed.event.headers = [("x".repeat(101), String::new())].into();
        assert!(binary(&STRICT, &claimed).unwrap_err().ends_with("has more than 100 bytes"));
    }

    #[test]
    fn an_event_cannot_say_that_it_is_another() {
        let mut claimed = event();
        claimed.event.headers.insert("CE-Id".to_owned(), "x".to_owned());
        let error = "its header `CE-Id` has the name of one that says what the event is";
        assert_eq!(binary(&STRICT, &claimed).unwrap_err(), error);
        assert!(binary(&LOOSE, &claimed).is_ok(), "another name there");
    }
}
