//! An event as one line of JSON, for files and for people.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::outbox::Claimed;
use sendoff::{EventId, Headers};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Line<'a> {
    id: EventId,
    topic: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    #[serde(skip_serializing_if = "Headers::is_empty")]
    headers: &'a Headers,
    /// 1 for the first.
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<i64>,
}

/// One JSON object, with its newline. A payload that is JSON goes in as it is, digit for digit; any other as base64.
pub fn json_line(claimed: &Claimed) -> Vec<u8> {
    let event = &claimed.event;
    let is_text = event.content_type.as_deref().is_none_or(|name| name.contains("json"));
    let json: Option<&RawValue> = serde_json::from_slice(&event.payload).ok().filter(|_| is_text);
    let line = Line {
        id: event.event_id,
        topic: &event.topic,
        key: event.key.as_deref(),
        payload: json,
        payload_base64: json.is_none().then(|| STANDARD.encode(&event.payload)),
        headers: &event.headers,
        attempt: event.attempts.failures.saturating_add(event.attempts.crashes).saturating_add(1),
        position: event.standing.position(event),
        epoch: event.standing.epoch(claimed.token.epoch),
    };
    let mut text = serde_json::to_vec(&line).unwrap_or_default();
    // A payload may have been written over many lines. JSON has line breaks between its parts only, never inside a string.
    for byte in &mut text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    text.push(b'\n');
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// The suite's event, of another topic and without a content type.
    pub(crate) fn claimed(position: i64, key: Option<&str>, payload: &[u8]) -> Claimed {
        let mut claimed = sendoff::testkit::claimed(position, key, payload);
        "orders".clone_into(&mut claimed.event.topic);
        "default".clone_into(&mut claimed.event.target);
        claimed.event.content_type = None;
        claimed
    }

    fn value(claimed: &Claimed) -> serde_json::Value {
        let line = json_line(claimed);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn json_goes_in_as_it_is_and_the_rest_as_base64() {
        let text = value(&claimed(1, Some("k"), b"{\n \"total\": 12345678901234567890.10\r\n}"));
        assert_eq!(text["key"], "k");
        assert_eq!(text["attempt"], 1);
        assert_eq!(text["epoch"], 7);
        let line =
            String::from_utf8(json_line(&claimed(1, None, b"{\"total\": 12345678901234567890.10}"))).unwrap();
        assert!(line.contains("12345678901234567890.10"), "{line}");
        let bytes = value(&claimed(2, None, b"\xff\x00"));
        assert_eq!(bytes["payload_base64"], "/wA=");
        assert!(bytes.get("payload").is_none() && bytes.get("key").is_none());
    }

    #[test]
    fn a_line_break_in_a_string_stays_escaped() {
        let text = value(&claimed(1, Some("a\nb"), br#"{"text":"x\ny"}"#));
        assert_eq!(text["key"], "a\nb");
        assert_eq!(text["payload"]["text"], "x\ny");
    }

    #[test]
    fn what_says_that_it_is_not_json_is_not_read_as_json() {
        let mut event = claimed(1, None, b"42");
        event.event.content_type = Some("text/plain".to_owned());
        assert_eq!(value(&event)["payload_base64"], "NDI=");
    }
}
