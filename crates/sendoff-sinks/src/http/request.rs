//! An event, or a batch of them, as it is posted.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sendoff::outbox::Claimed;
use sha2::{Digest as _, Sha256};

use super::HttpConfig;
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::signature::{Key, sign};
use crate::envelope::{Carrier, EnvelopeConfig, Mode};

/// The content type of a batch.
const BATCH: HeaderValue = HeaderValue::from_static("application/cloudevents-batch+json; charset=UTF-8");

/// The receiver tells a second delivery by it.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Names that are the connection's or the sink's own; neither an event nor a configuration may set them.
const OWN: [&str; 15] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// Attributes of a structured event, which an event's own headers may not be called like.
const ATTRIBUTES: [&str; 12] = [
    "specversion",
    "id",
    "source",
    "type",
    "time",
    "subject",
    "partitionkey",
    "sendoffposition",
    "sendoffepoch",
    "datacontenttype",
    "dataschema",
    "data",
];

/// Part of a structured event already.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// What is posted.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// One event.
    ///
    /// # Errors
    /// Why the event cannot be sent, ever.
    pub(super) fn single(
        config: &HttpConfig,
        endpoint: &Endpoint,
        credentials: &Credentials,
        event: &Claimed,
    ) -> Result<Self, String> {
        let url = endpoint.fill(&event.event)?;
        let envelope = config.envelope.wrap(&Carrier::HTTP, event)?;
        let mut headers = credentials.headers.clone();
        for (name, value) in envelope.headers {
            let key = header_name(name)?;
            // Credentials are the sink's, never an event's.
            if OWN.contains(&key.as_str()) || key == "authorization" || headers.contains_key(&key) {
                return Err(format!("its header `{name}` has a name that the request needs for itself"));
            }
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| format!("its header `{name}` has control characters"))?;
            insert(&mut headers, key, value)?;
        }
        if let Some(content_type) = envelope.content_type {
            let value = HeaderValue::from_bytes(content_type.as_bytes())
                .map_err(|_| "its content type has control characters")?;
            insert(&mut headers, CONTENT_TYPE, value)?;
        }
        let id = event.event.event_id.to_string();
        Self { url, headers, body: envelope.body.into_owned() }.identified(&credentials.keys, &id)
    }

    /// Many events, each with its [`item`].
    ///
    /// # Errors
    /// Why they cannot be sent, ever.
    pub(super) fn batch<'i>(
        endpoint: &Endpoint,
        credentials: &Credentials,
        items: impl IntoIterator<Item = &'i (String, Vec<u8>)>,
    ) -> Result<Self, String> {
        let mut headers = credentials.headers.clone();
        insert(&mut headers, CONTENT_TYPE, BATCH)?;
        let (mut ids, mut body) = (Sha256::new(), vec![b'[']);
        for (index, (id, item)) in items.into_iter().enumerate() {
            ids.update(id.as_bytes());
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(item);
        }
        body.push(b']');
        let id: String = ids.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { url: endpoint.base().clone(), headers, body }.identified(&credentials.keys, &id)
    }

    /// The receiver tells a second delivery by its id, and by the signature who it is from.
    fn identified(mut self, keys: &[Key], id: &str) -> Result<Self, String> {
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        insert(&mut self.headers, IDEMPOTENCY_KEY, value(id)?)?;
        if keys.is_empty() {
            return Ok(self);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = sign(keys, id, now, &self.body);
        let headers = &mut self.headers;
        insert(headers, HeaderName::from_static("webhook-id"), value(id)?)?;
        insert(headers, HeaderName::from_static("webhook-timestamp"), HeaderValue::from(now))?;
        insert(headers, HeaderName::from_static("webhook-signature"), value(&signature)?)?;
        Ok(self)
    }
}

/// An event's id, and the event as it stands in a batch. Its own headers are attributes there, if they can be: a batch has one header for all.
///
/// # Errors
/// Why the event cannot be sent, ever.
pub(super) fn item(config: &HttpConfig, event: &Claimed) -> Result<(String, Vec<u8>), String> {
    let structured = EnvelopeConfig { mode: Mode::Structured, ..config.envelope.clone() };
    let envelope = structured.wrap(&Carrier::HTTP, event)?;
    let mut body = envelope.body.into_owned();
    for (name, value) in envelope.headers.iter().filter(|(name, _)| !TRACE.contains(name)) {
        if !name.bytes().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit()) {
            return Err(format!(
                "its header `{name}` cannot go into a batch: there names have small letters and digits only"
            ));
        }
        if ATTRIBUTES.contains(name) {
            return Err(format!("its header `{name}` has the name of one that says what the event is"));
        }
        let value = serde_json::to_string(value).map_err(|error| error.to_string())?;
        body.pop();
        body.extend_from_slice(format!(",\"{name}\":{value}}}").as_bytes());
    }
    Ok((event.event.event_id.to_string(), body))
}

/// The headers of every request.
///
/// # Errors
/// Which of them is none, without what it says: that may be a secret.
pub(super) fn fixed_headers(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut fixed = HeaderMap::new();
    for (name, value) in headers {
        let key = header_name(name)?;
        if OWN.contains(&key.as_str()) || key.as_str().starts_with(Carrier::HTTP.attributes.prefix) {
            return Err(format!("the header `{name}` is set by the sink itself"));
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| format!("the header `{name}` has line breaks or control characters"))?;
        value.set_sensitive(true);
        insert(&mut fixed, key, value)?;
    }
    Ok(fixed)
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    name.parse().map_err(|_| format!("`{}` is no name for a header", name.escape_debug()))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) -> Result<(), String> {
    headers.try_insert(name, value).map(|_| ()).map_err(|_| "it has too many headers".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    fn config() -> HttpConfig {
        HttpConfig::new("https://h/hooks/{key}")
    }

    fn single(config: &HttpConfig, event: &Claimed) -> Result<Request, String> {
        let endpoint = Endpoint::parse(&config.url).unwrap();
        Request::single(config, &endpoint, &Credentials::read(config, &endpoint).unwrap(), event)
    }

    #[test]
    fn an_event_is_a_request() {
        let mut event = claimed(1, Some("a/b"), b"\xff");
        event.event.content_type = Some("image/png".to_owned());
        event.event.headers.insert("tenant".to_owned(), "Zürich".to_owned());
        let request = single(&config(), &event).unwrap();
        assert_eq!((request.url.as_str(), request.body.as_slice()), ("https://h/hooks/a%2Fb", &b"\xff"[..]));
        let header = |name: &str| request.headers.get(name).map(HeaderValue::as_bytes);
        let id = event.event.event_id.to_string();
        assert_eq!((header("ce-id"), header("idempotency-key")), (Some(id.as_bytes()), Some(id.as_bytes())));
        assert_eq!(
            (header("content-type"), header("ce-type")),
            (Some(&b"image/png"[..]), Some(&b"orders"[..]))
        );
        assert_eq!(header("tenant"), Some("Zürich".as_bytes()));
        assert_eq!(header("webhook-signature"), None);
    }

    #[test]
    fn what_can_never_be_sent_is_refused_with_a_reason() {
        let config = HttpConfig { headers: vec![("X-Shop".to_owned(), "s3cret".to_owned())], ..config() };
        for (name, value, error) in [
            ("Host", "evil", "its header `Host` has a name that the request needs for itself"),
            ("transfer-encoding", "chunked", "has a name that the request needs for itself"),
            ("Idempotency-Key", "1", "has a name that the request needs for itself"),
            ("Authorization", "x", "has a name that the request needs for itself"),
            ("x-shop", "1", "has a name that the request needs for itself"),
            ("x", "a\u{1}", "its header `x` has control characters"),
            ("a b", "1", "letters that this broker does not take"),
            ("x", "a\nb", "its header `x` has a line break"),
        ] {
            let mut event = claimed(1, Some("k"), b"x");
            event.event.headers.insert(name.to_owned(), value.to_owned());
            let got = single(&config, &event).unwrap_err();
            assert!(got.contains(error) && !got.contains("s3cret"), "{name}: {got}");
        }
        assert_eq!(single(&config, &claimed(1, None, b"x")).unwrap_err(), "it has no key to be named by");
    }

    #[test]
    fn a_fixed_header_that_is_none_is_refused_and_not_shown() {
        for (name, value, error) in [
            ("a b", "s3cret", "`a b` is no name for a header"),
            ("x", "s3cret\n", "the header `x` has line breaks or control characters"),
            ("Content-Length", "s3cret", "the header `Content-Length` is set by the sink itself"),
            ("ce-id", "s3cret", "the header `ce-id` is set by the sink itself"),
        ] {
            assert_eq!(fixed_headers(&[(name.to_owned(), value.to_owned())]).unwrap_err(), error);
        }
        let fixed = fixed_headers(&[("authorization".to_owned(), "s3cret".to_owned())]).unwrap();
        assert!(!format!("{fixed:?}").contains("s3cret"), "{fixed:?}");
    }

    #[test]
    fn a_batch_is_an_array_of_events() {
        let config = HttpConfig::new("https://h/hooks");
        let mut events = [claimed(1, Some("k"), br#"{"a": 1.10}"#), claimed(2, None, b"\xff")];
        events[0].event.headers.insert("tenant".to_owned(), "ac\"me".to_owned());
        events[0].event.headers.insert("traceparent".to_owned(), "00-ab-cd-01".to_owned());
        let items: Vec<_> = events.iter().map(|event| item(&config, event).unwrap()).collect();
        let endpoint = Endpoint::parse(&config.url).unwrap();
        let credentials = Credentials::read(&config, &endpoint).unwrap();
        let batch = Request::batch(&endpoint, &credentials, &items).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&batch.body).unwrap();
        assert_eq!(json[0]["tenant"], "ac\"me");
        assert_eq!((&json[0]["traceparent"], &json[0]["data"]["a"]), (&"00-ab-cd-01".into(), &1.1.into()));
        assert_eq!(json[1]["data_base64"], "/w==");
        assert_eq!(batch.headers["content-type"], BATCH);
        assert_eq!(batch.headers["idempotency-key"].len(), 64);
        let again = Request::batch(&endpoint, &credentials, &items[..1]).unwrap();
        assert_ne!(again.headers["idempotency-key"], batch.headers["idempotency-key"]);
        for (name, error) in [("X-Tenant", "cannot go into a batch"), ("id", "says what the event is")] {
            events[1].event.headers.clear();
            events[1].event.headers.insert(name.to_owned(), "x".to_owned());
            let got = item(&config, &events[1]).unwrap_err();
            assert!(got.contains(error), "{got}");
        }
    }
}
