//! Values that a claim compares with or sets. They are always bound, never written into SQL text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

/// A moment in UTC, in whole microseconds: the resolution every store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970-01-01 00:00:00 UTC.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 00:00:00 UTC.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(micros(after)),
            Err(before) => Self(-micros(before.duration())),
        }
    }
}

/// A duration in microseconds; 292,000 years is as good as for ever.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A value to compare a column with, or to set it to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// SQL NULL. To be set; a comparison with it is refused, use `is_null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A UUID; text and 16-byte columns hold it as they do.
    Uuid(Uuid),
    /// A moment.
    Timestamp(Timestamp),
    /// JSON. To be set; databases do not agree on how to compare it.
    Json(serde_json::Value),
    /// The database's own time when the statement runs, moved by some microseconds. The clock of
    /// the calling process has no part in it.
    Now {
        /// How far from the database's now.
        offset_micros: i64,
    },
}

impl Value {
    /// What it is, in a word for error texts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Uuid(_) => "a uuid",
            Self::Timestamp(_) => "a timestamp",
            Self::Json(_) => "json",
            Self::Now { .. } => "the database's time",
        }
    }
}

/// The database's time when the statement runs.
pub const fn now() -> Value {
    Value::Now { offset_micros: 0 }
}

/// The database's time plus `offset`: the end of a lease that starts now.
pub fn now_plus(offset: Duration) -> Value {
    Value::Now { offset_micros: micros(offset) }
}

/// The database's time minus `offset`.
pub fn now_minus(offset: Duration) -> Value {
    Value::Now { offset_micros: -micros(offset) }
}

macro_rules! value_from {
    ($($from:ty => $into:expr;)*) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                $into(value)
            }
        })*
    };
}

value_from! {
    bool => Value::Bool;
    i64 => Value::Int;
    i32 => |n| Value::Int(i64::from(n));
    i16 => |n| Value::Int(i64::from(n));
    u32 => |n| Value::Int(i64::from(n));
    f64 => Value::Float;
    String => Value::Text;
    &str => |text: &str| Value::Text(text.to_owned());
    Vec<u8> => Value::Bytes;
    &[u8] => |bytes: &[u8]| Value::Bytes(bytes.to_vec());
    Uuid => Value::Uuid;
    Timestamp => Value::Timestamp;
    serde_json::Value => Value::Json;
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_keep_microseconds_on_both_sides_of_the_epoch() {
        let after = UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
        assert_eq!(Timestamp::from(after).as_micros(), 1_700_000_000_123_456);
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_micros(7)).as_micros(), -7);
    }

    #[test]
    fn options_become_null() {
        assert_eq!(Value::from(None::<i64>), Value::Null);
        assert_eq!(Value::from(Some("x")), Value::Text("x".into()));
    }

    #[test]
    fn offsets_point_both_ways() {
        assert_eq!(now_plus(Duration::from_secs(30)), Value::Now { offset_micros: 30_000_000 });
        assert_eq!(now_minus(Duration::from_millis(1)), Value::Now { offset_micros: -1_000 });
    }
}
