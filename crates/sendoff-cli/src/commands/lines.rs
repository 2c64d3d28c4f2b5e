//! Events as lines of JSON.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::claim::Timestamp;
use sendoff::{EventId, Limits, NewEvent};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line. What the file sink adds to it is known, and not needed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'l> {
    topic: String,
    key: Option<String>,
    target: Option<String>,
    #[serde(borrow)]
    payload: Option<&'l RawValue>,
    payload_text: Option<String>,
    payload_base64: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    id: Option<String>,
    deliver_at: Option<String>,
    #[serde(rename = "attempt")]
    _attempt: Option<u32>,
    #[serde(rename = "position")]
    _position: Option<i64>,
    #[serde(rename = "epoch")]
    _epoch: Option<i64>,
}

/// The event of a line, for `target` unless it names another.
///
/// # Errors
/// What is wrong with it.
pub(super) fn event(line: &[u8], target: &str, limits: &Limits) -> Result<NewEvent, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let line: Line<'_> = serde_json::from_str(text).map_err(|error| fault(&error))?;
    let (payload, content_type) = match (line.payload, line.payload_text, line.payload_base64) {
        (Some(json), None, None) => (json.get().as_bytes().to_vec(), Some("application/json")),
        (None, Some(text), None) => (text.into_bytes(), None),
        (None, None, Some(base64)) => {
            (STANDARD.decode(base64).map_err(|error| format!("payload_base64: {error}"))?, None)
        }
        (None, None, None) => (Vec::new(), None),
        _ => return Err("it has more than one of payload, payload_text, payload_base64".to_owned()),
    };
    let mut event =
        NewEvent::new(line.topic).target(line.target.as_deref().unwrap_or(target)).payload(payload);
    event.key = line.key;
    event.content_type = line.content_type.or(content_type.map(str::to_owned));
    event.headers = line.headers;
    if let Some(id) = line.id {
        event = event.event_id(id.parse::<EventId>().map_err(|_| "its id is no UUID".to_owned())?);
    }
    if let Some(at) = line.deliver_at {
        let at = humantime::parse_rfc3339_weak(&at).map_err(|error| format!("deliver_at: {error}"))?;
        event = event.deliver_at(Timestamp::from(at));
    }
    event.check(limits).map_err(|error| error.to_string())?;
    Ok(event)
}

/// What is wrong, and at which column. "Line 1" would be the only line that the parser knows of.
fn fault(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.replace(&format!(" at line 1 column {}", error.column()), &format!(" at column {}", error.column()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<NewEvent, String> {
        event(line.as_bytes(), "default", &Limits::default())
    }

    #[test]
    fn a_line_has_all_there_is_to_say() {
        let line = r#"{"topic": "a", "key": "k", "payload": {"total": 1.10}, "headers": {"x": "y"}, "target": "t",
            "id": "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001", "deliver_at": "2026-01-31T12:00:00Z"}"#;
        let event = read(line).unwrap();
        assert_eq!(event.payload, br#"{"total": 1.10}"#, "digit for digit");
        assert_eq!((event.key.as_deref(), event.target.as_str()), (Some("k"), "t"));
        assert_eq!(event.content_type.as_deref(), Some("application/json"));
        assert_eq!(event.deliver_at.unwrap().as_micros(), 1_769_860_800_000_000);
        assert_eq!(event.event_id.unwrap().to_string(), "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001");
        let text = read(r#"{"topic": "a", "payload_text": "hi", "content_type": "text/plain"}"#).unwrap();
        assert_eq!((text.payload, text.content_type.as_deref()), (b"hi".to_vec(), Some("text/plain")));
        assert_eq!(read(r#"{"topic": "a", "payload_base64": "/wA="}"#).unwrap().payload, [0xff, 0]);
        assert!(read(r#"{"id": "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001", "topic": "a", "payload": 1, "attempt": 1, "position": 4, "epoch": 2}"#).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, expected) in [
            (r#"{"topc": "a"}"#, "unknown field `topc`"),
            ("{}", "missing field `topic`"),
            (r#"{"topic": "a", "payload": 1, "payload_text": "1"}"#, "more than one of payload"),
            (r#"{"topic": "a", "id": "7"}"#, "its id is no UUID"),
            (r#"{"topic": "a", "deliver_at": "soon"}"#, "deliver_at:"),
            (r#"{"topic": "a", "payload_base64": "?"}"#, "payload_base64:"),
            (r#"{"topic": ""}"#, "topic"),
            ("not json", "expected ident at column 2"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert_eq!(event(&[0xff], "default", &Limits::default()).unwrap_err(), "it is not UTF-8");
    }
}
