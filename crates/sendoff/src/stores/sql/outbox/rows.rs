//! From a row to an event.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::claim::{Timestamp, Value};
use crate::error::{StoreError, StoreErrorKind};
use crate::event::{Attempts, Event, EventId, Headers};
use crate::outbox::{Cause, Failure, Fetched, Hold, Place, Reason, Scope};

/// The values of one row, read from the left.
#[derive(Debug)]
pub(crate) struct RowReader {
    values: std::vec::IntoIter<Value>,
}

impl RowReader {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self { values: values.into_iter() }
    }

    fn next(&mut self) -> Value {
        self.values.next().unwrap_or(Value::Null)
    }

    fn wrong(column: &'static str, value: &Value) -> StoreError {
        let detail = format!("column `{column}` holds {}", value.kind());
        StoreError::new(StoreErrorKind::Corrupt, "read", "outbox", detail)
    }

    pub(crate) fn int(&mut self, column: &'static str) -> Result<i64, StoreError> {
        match self.next() {
            Value::Int(number) => Ok(number),
            other => Err(Self::wrong(column, &other)),
        }
    }

    pub(crate) fn optional_int(&mut self, column: &'static str) -> Result<Option<i64>, StoreError> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Int(number) => Ok(Some(number)),
            other => Err(Self::wrong(column, &other)),
        }
    }

    pub(crate) fn count(&mut self, column: &'static str) -> Result<u32, StoreError> {
        Ok(u32::try_from(self.int(column)?).unwrap_or(u32::MAX))
    }

    pub(crate) fn lane(&mut self) -> Result<u16, StoreError> {
        Ok(u16::try_from(self.int("lane")?).unwrap_or(u16::MAX))
    }

    pub(crate) fn text(&mut self, column: &'static str) -> Result<String, StoreError> {
        self.optional_text(column)?.ok_or_else(|| Self::wrong(column, &Value::Null))
    }

    pub(crate) fn optional_text(&mut self, column: &'static str) -> Result<Option<String>, StoreError> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            // A program that has no text type, or has written text that is none.
            Value::Bytes(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            other => Err(Self::wrong(column, &other)),
        }
    }

    pub(crate) fn bytes(&mut self, column: &'static str) -> Result<Vec<u8>, StoreError> {
        match self.next() {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Text(text) => Ok(text.into_bytes()),
            other => Err(Self::wrong(column, &other)),
        }
    }

    pub(crate) fn uuid(&mut self, column: &'static str) -> Result<Uuid, StoreError> {
        let value = self.next();
        uuid(&value).ok_or_else(|| Self::wrong(column, &value))
    }

    pub(crate) fn optional_uuid(&mut self, column: &'static str) -> Result<Option<Uuid>, StoreError> {
        match self.next() {
            Value::Null => Ok(None),
            value => uuid(&value).map(Some).ok_or_else(|| Self::wrong(column, &value)),
        }
    }

    pub(crate) fn moment(&mut self, column: &'static str) -> Result<Timestamp, StoreError> {
        self.optional_moment(column)?.ok_or_else(|| Self::wrong(column, &Value::Null))
    }

    pub(crate) fn optional_moment(&mut self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Timestamp(at) => Ok(Some(at)),
            Value::Int(micros) => Ok(Some(Timestamp::from_micros(micros))),
            other => Err(Self::wrong(column, &other)),
        }
    }

    /// The columns that every table of events begins with, from `id` to `created_at`. A field that cannot be read is left empty, and makes the event
    /// unreadable, not the row: why is returned with it. An event whose id cannot be read has the nil one.
    pub(crate) fn event(&mut self, target: &str) -> Result<(Event, Option<String>), StoreError> {
        let position = self.int("id")?;
        let lane = self.lane()?;
        let mut faults = Faults::default();
        let topic = faults.text("topic", self.next()).unwrap_or_else(|| faults.missing("topic"));
        let key = faults.text("key", self.next());
        let payload = match self.next() {
            Value::Bytes(bytes) => bytes,
            Value::Text(text) => text.into_bytes(),
            other => faults.kind("payload", &other),
        };
        let content_type = faults.text("content_type", self.next());
        let headers = headers(self.next()).unwrap_or_else(|error| faults.add(error));
        let id = self.next();
        let event_id = uuid(&id).unwrap_or_else(|| faults.add("its event_id is not a UUID".to_owned()));
        let created_at = self.optional_moment("created_at").ok().flatten();
        let created_at = created_at.unwrap_or_else(|| {
            faults.add::<()>("its created_at is not a moment".to_owned());
            Timestamp::from_micros(0)
        });
        let event = Event {
            event_id: EventId(event_id),
            position,
            standing: crate::event::Standing::Lane,
            target: target.to_owned(),
            lane,
            topic,
            key,
            payload,
            content_type,
            headers,
            created_at,
            attempts: Attempts::default(),
        };
        Ok((event, faults.into_reason()))
    }

    /// A row of `fetch.sql`.
    pub(crate) fn hot(mut self, target: &str) -> Result<Fetched, StoreError> {
        let (event, mut corrupt) = self.event(target)?;
        let later = self.optional_moment("later").unwrap_or_else(|_| {
            corrupt.get_or_insert_with(|| "its deliver_at is not a moment".to_owned());
            None
        });
        let hold = self.hold()?;
        Ok(without_unreadable_key(Fetched {
            event,
            place: Place::Hot(None),
            hold,
            later,
            reason: None,
            corrupt,
        }))
    }

    /// A row of `fetch_parked.sql`.
    pub(crate) fn parked(mut self, target: &str) -> Result<(Fetched, Option<Timestamp>), StoreError> {
        let (mut event, corrupt) = self.event(target)?;
        let reason = self.reason()?;
        event.attempts = self.attempts()?;
        let due_at = self.optional_moment("due_at")?;
        let hold = self.hold()?;
        let fetched =
            Fetched { event, place: Place::Parked, hold, later: None, reason: Some(reason), corrupt };
        Ok((without_unreadable_key(fetched), due_at))
    }

    /// What a worker's scope was written down as; nothing: it is the usual one.
    pub(crate) fn scope(&mut self) -> Result<Scope, StoreError> {
        Ok(self.optional_text("scope")?.map_or_else(Scope::default, |text| Scope::read(&text)))
    }

    pub(crate) fn reason(&mut self) -> Result<Reason, StoreError> {
        let word = self.text("reason")?;
        Reason::from_word(&word).ok_or_else(|| {
            StoreError::new(StoreErrorKind::Corrupt, "read", "parked", format!("unknown reason `{word}`"))
        })
    }

    pub(crate) fn attempts(&mut self) -> Result<Attempts, StoreError> {
        Ok(Attempts { failures: self.count("failures")?, crashes: self.count("crashes")? })
    }

    pub(crate) fn failure(&mut self) -> Result<Option<Failure>, StoreError> {
        let cause = self.optional_text("cause")?;
        let error = self.optional_text("error")?;
        let cause = cause.map(|word| Cause::from_word(&word).unwrap_or(Cause::Transient));
        Ok(cause.map(|cause| Failure { cause, error: error.unwrap_or_default() }))
    }

    fn hold(&mut self) -> Result<Hold, StoreError> {
        Ok(match self.optional_text("hold")?.as_deref() {
            None => Hold::Free,
            Some("draining") => Hold::Draining,
            Some("diverted") => Hold::Diverted,
            Some(_) => Hold::Held,
        })
    }
}

/// A key that cannot be read cannot be named in a statement either: its event goes as one without a key, or it would wait for what nobody can promote.
pub(crate) fn without_unreadable_key(mut row: Fetched) -> Fetched {
    let is_replaced = |key: &str| key.contains(char::REPLACEMENT_CHARACTER);
    if row.corrupt.is_some() && row.event.key.as_deref().is_some_and(is_replaced) {
        row.event.key = None;
        row.hold = Hold::Free;
    }
    row
}

/// What of an event cannot be read. The words are ASCII and quote nothing of the row, so that any database can hold them.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// Adds a fault, and gives what stands for the field.
    pub(crate) fn add<T: Default>(&mut self, fault: String) -> T {
        self.0.push(fault);
        T::default()
    }

    fn kind<T: Default>(&mut self, column: &str, value: &Value) -> T {
        self.add(format!("its {column} is {}", value.kind()))
    }

    fn missing(&mut self, column: &str) -> String {
        self.add(format!("its {column} is missing"))
    }

    fn text(&mut self, column: &str, value: Value) -> Option<String> {
        match value {
            Value::Null => None,
            Value::Text(text) => Some(text),
            Value::Bytes(bytes) => Some(self.utf8(column, bytes)),
            other => {
                let shown = format!("{other:?}");
                self.kind::<()>(column, &other);
                Some(shown)
            }
        }
    }

    /// Text, with what is not UTF-8 replaced.
    pub(crate) fn utf8(&mut self, column: &str, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|error| {
            self.add::<()>(format!("its {column} is not UTF-8"));
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })
    }

    pub(crate) fn into_reason(self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join("; "))
    }
}

fn uuid(value: &Value) -> Option<Uuid> {
    match value {
        Value::Uuid(id) => Some(*id),
        Value::Bytes(bytes) => Uuid::from_slice(bytes).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn headers(value: Value) -> Result<Headers, String> {
    let json = match value {
        Value::Null => return Ok(Headers::new()),
        Value::Json(json) => json,
        Value::Text(text) => {
            serde_json::from_str(&text).map_err(|error| format!("its headers are not JSON: {error}"))?
        }
        other => return Err(format!("its headers cannot be read, and are {}", other.kind())),
    };
    object_headers(json)
}

/// A JSON object as headers; values that are not text become the text of their JSON.
pub(crate) fn object_headers(json: serde_json::Value) -> Result<Headers, String> {
    let serde_json::Value::Object(object) = json else {
        return Err("its headers are not a JSON object".to_owned());
    };
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(object.into_iter().map(|(name, value)| (name, text(value))).collect::<BTreeMap<_, _>>())
}
