//! From a host's row to an event.

use std::borrow::Cow;

use uuid::Uuid;

use super::mapping::Mapping;
use crate::claim::{Key, Record, Timestamp, Value};
use crate::error::{StoreError, StoreErrorKind};
use crate::event::{
    Attempts, CONTENT_TYPE_BYTES_MAX, Event, EventId, HEADERS_BYTES_MAX, Headers, KEY_BYTES_MAX, Standing,
    TOPIC_BYTES_MAX,
};

/// A row that was claimed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: Key,
    /// Handed out so often, this time included.
    pub(crate) attempts: u32,
    pub(crate) attempts_max: u32,
    /// The event, or why it cannot be read.
    pub(crate) event: Result<Event, String>,
}

impl Mapping {
    /// A row's key.
    ///
    /// # Errors
    /// `Corrupt` if the row was read without it.
    pub(crate) fn key_of(&self, record: &Record) -> Result<Key, StoreError> {
        self.value(record, &self.id).map(|id| Key(vec![id.clone()]))
    }

    fn value<'r>(&self, record: &'r Record, column: &str) -> Result<&'r Value, StoreError> {
        let index = record.columns().iter().position(|name| name.as_str().eq_ignore_ascii_case(column));
        let missing = || {
            let detail = format!("a row came without its column `{column}`");
            StoreError::new(StoreErrorKind::Corrupt, "claim", self.table.to_string(), detail)
        };
        index.map(|index| record.at(index)).ok_or_else(missing)
    }

    /// Reads a row that was claimed. `attempts` is how often it was handed out, where the table itself does not say.
    ///
    /// # Errors
    /// `Corrupt` if the row has no key or no number of attempts: then nothing can be settled either.
    pub(crate) fn read(
        &self,
        record: &Record,
        attempts: Option<u32>,
        target: &str,
    ) -> Result<Row, StoreError> {
        let key = self.key_of(record)?;
        let number = |column: &str| -> Result<Option<u32>, StoreError> {
            Ok(match self.value(record, column)? {
                Value::Int(number) => Some(u32::try_from(*number).unwrap_or(0)),
                _ => None,
            })
        };
        let attempts = match (&self.claim, attempts) {
            (_, Some(attempts)) => attempts,
            (Some(claim), None) => number(&claim.attempts)?.unwrap_or(1),
            (None, None) => 1,
        };
        let own_max = self.attempts_max_column.as_deref().map(number).transpose()?.flatten();
        let attempts_max = own_max.filter(|most| *most > 0).unwrap_or(self.attempts_max);
        let event = self.event(record, &key, attempts, target)?;
        Ok(Row { key, attempts, attempts_max, event })
    }

    fn event(
        &self,
        record: &Record,
        key: &Key,
        attempts: u32,
        target: &str,
    ) -> Result<Result<Event, String>, StoreError> {
        let column = |name: &str| self.value(record, name);
        let optional = |name: &Option<String>| name.as_deref().map(column).transpose();
        // Whatever is missing was said above: these are all columns of the row.
        let texts = |name: &str| column(name).ok().and_then(text);
        let topic = self.topic.fill(texts);
        let ordering_key = optional(&self.key)?.and_then(text).filter(|key| !key.is_empty());
        let content_type = optional(&self.content_type_column)?.and_then(text).or(self.content_type.clone());
        let created = match &self.created {
            Some(name) => self.moment(name, column(name)?),
            None => None,
        };
        let target = optional(&self.target)?
            .map_or_else(|| target.to_owned(), |value| text(value).unwrap_or_default());
        let position = match optional(&self.position)? {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        let headers = self.read_headers(record)?;
        let payload = payload(column(&self.payload)?);
        let read = || {
            let topic = checked("topic", topic?, TOPIC_BYTES_MAX)?;
            let key_text = ordering_key.map(|key| checked("key", key, KEY_BYTES_MAX)).transpose()?;
            let content_type =
                content_type.map(|name| checked("content type", name, CONTENT_TYPE_BYTES_MAX)).transpose()?;
            Ok(Event {
                event_id: event_id(&self.table.to_string(), &key.0[0]),
                position: position.unwrap_or(0),
                standing: if position.is_some() { Standing::Column } else { Standing::Unknown },
                target,
                lane: 0,
                topic,
                key: key_text,
                payload,
                content_type,
                headers: headers?,
                created_at: created.unwrap_or_else(|| Timestamp::from(std::time::SystemTime::now())),
                attempts: Attempts { failures: attempts.saturating_sub(1), crashes: 0 },
            })
        };
        Ok(read())
    }

    /// A moment, as the column it is in has it.
    pub(crate) fn moment(&self, column: &str, value: &Value) -> Option<Timestamp> {
        match value {
            Value::Timestamp(at) => Some(*at),
            Value::Int(number) => {
                let of_column = |(named, _): &&(String, _)| named == column;
                let unit = self.epochs.iter().find(of_column).map_or(1, |(_, unit)| unit.micros());
                number.checked_mul(unit).map(Timestamp::from_micros)
            }
            Value::Text(text) => written_moment(text),
            _ => None,
        }
    }

    fn read_headers(&self, record: &Record) -> Result<Result<Headers, String>, StoreError> {
        let mut headers = Headers::new();
        if let Some(column) = &self.headers {
            let json = match self.value(record, column)? {
                Value::Null => None,
                Value::Json(json) => Some(json.clone()),
                value => match text(value).map(|text| serde_json::from_str(&text)) {
                    Some(Ok(json)) => Some(json),
                    _ => return Ok(Err(format!("column `{column}` is no JSON object of headers"))),
                },
            };
            match json {
                None | Some(serde_json::Value::Null) => {}
                Some(serde_json::Value::Object(object)) => {
                    let named = object.into_iter().filter(|(_, value)| !value.is_null());
                    headers.extend(named.map(|(name, value)| (name, one_line(json_text(value)))));
                }
                Some(_) => return Ok(Err(format!("column `{column}` is no JSON object of headers"))),
            }
        }
        for (name, column) in &self.header_columns {
            if let Some(text) = text(self.value(record, column)?) {
                headers.insert(name.clone(), one_line(text));
            }
        }
        Ok(headers_fit(&headers).map(|()| headers))
    }
}

fn json_text(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A header is one line. JSON may have been written over many, with line breaks between its parts only.
fn one_line(text: String) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text }
}

/// As an event that is written through this library must be.
fn headers_fit(headers: &Headers) -> Result<(), String> {
    let mut bytes = 0;
    for (name, value) in headers {
        if name.is_empty() || name.contains(char::is_control) {
            return Err("the name of a header is empty, or has a control character".to_owned());
        }
        bytes += name.len() + value.len();
    }
    match bytes > HEADERS_BYTES_MAX {
        true => Err(format!("its headers have {bytes} bytes; at most {HEADERS_BYTES_MAX} are taken")),
        false => Ok(()),
    }
}

fn checked(part: &str, text: String, most: usize) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!("its {part} is empty"));
    }
    if text.contains(char::is_control) {
        return Err(format!("its {part} has a control character"));
    }
    if text.len() > most {
        return Err(format!("its {part} has {} bytes; at most {most} are taken", text.len()));
    }
    Ok(text)
}

/// A value as text; none if it is NULL, or bytes that are no text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Uuid(id) => Some(id.hyphenated().to_string()),
        Value::Json(json) => Some(json_text(json.clone())),
        Value::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::Timestamp(at) => Some(at.as_micros().to_string()),
        Value::Null | Value::Now { .. } => None,
    }
}

fn payload(value: &Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Json(json) => json.to_string().into_bytes(),
        value => text(value).unwrap_or_default().into_bytes(),
    }
}

/// A moment as SQLite keeps it, in UTC: `2023-11-14 22:13:20.123456`, with a T, a Z, or fewer digits.
fn written_moment(text: &str) -> Option<Timestamp> {
    let (date, time) = text.trim_end_matches('Z').split_once([' ', 'T'])?;
    let time = time.strip_suffix("+00:00").unwrap_or(time);
    let numbers = |text: &str, mark: char| -> Option<Vec<i64>> {
        text.split(mark).map(|part| part.parse().ok()).collect()
    };
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(clock, ':')?[..] else { return None };
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    // Years begin in March here, so that a leap day is the last one.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(Timestamp::from_micros(seconds * 1_000_000 + micros))
}

/// An id that brokers and consumers know a second delivery by: the host's own if it is a UUID, and else one made of the table's name and it, the same each time.
pub(crate) fn event_id(table: &str, id: &Value) -> EventId {
    let whole = match id {
        Value::Uuid(id) => Some(*id),
        Value::Text(text) => Uuid::try_parse(text).ok(),
        Value::Bytes(bytes) => Uuid::from_slice(bytes).ok(),
        _ => None,
    };
    let made = || {
        let id: Cow<'_, [u8]> = match id {
            Value::Bytes(bytes) => bytes.as_slice().into(),
            value => text(value).unwrap_or_default().into_bytes().into(),
        };
        let mut name = table.as_bytes().to_vec();
        name.push(0);
        name.extend_from_slice(&id);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, &name)
    };
    EventId(whole.unwrap_or_else(made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_sqlite_are_read() {
        for (text, micros) in [
            ("2023-11-14 22:13:20.000001", 1_700_000_000_000_001),
            ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
            ("2023-11-14 22:13:20.5+00:00", 1_700_000_000_500_000),
            ("1970-01-01 00:00:00", 0),
            ("2000-02-29 00:00:00", 951_782_400_000_000),
        ] {
            assert_eq!(written_moment(text), Some(Timestamp::from_micros(micros)), "{text}");
        }
        assert_eq!(written_moment("yesterday"), None);
    }

    #[test]
    fn headers_that_no_event_could_have_are_refused() {
        let one = |name: &str, value: &str| Headers::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(headers_fit(&one("tenant", "acme")), Ok(()));
        for wrong in ["", "a\nb"] {
            assert!(headers_fit(&one(wrong, "x")).unwrap_err().contains("the name of a header"), "{wrong:?}");
        }
        let long = headers_fit(&one("n", &"v".repeat(HEADERS_BYTES_MAX))).unwrap_err();
        assert!(long.contains("at most 16384 are taken"), "{long}");
    }

    #[test]
    fn an_id_stays_the_same_and_is_the_hosts_own_if_it_can_be() {
        let uuid = Uuid::from_u128(7);
        assert_eq!(event_id("t", &Value::Uuid(uuid)).0, uuid);
        assert_eq!(event_id("t", &uuid.to_string().into()).0, uuid);
        assert_eq!(event_id("t", &7.into()), event_id("t", &7.into()));
        assert_ne!(event_id("t", &7.into()), event_id("u", &7.into()));
        assert_ne!(event_id("t", &7.into()), event_id("t", &8.into()));
    }
}
