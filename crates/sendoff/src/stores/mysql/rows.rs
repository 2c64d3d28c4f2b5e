//! Reading rows whose types are not known beforehand.

use sqlx::mysql::MySqlRow;
use sqlx::types::time::PrimitiveDateTime;
use sqlx::{FromRow, MySql, Row as _, Type, TypeInfo as _, ValueRef as _};

use super::super::sql::{record, timestamp};
use crate::claim::{Key, Record, Value};

/// What to sort keys by so that they are marked from the lowest up: whoever meets the others' rows
/// meets them in the same order, and waits instead of deadlocking.
pub(super) fn ascending(key: &Key) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in &key.0 {
        match value {
            // The sign bit flipped, so that bytes sort as numbers do.
            Value::Int(number) => bytes.extend_from_slice(&(number ^ i64::MIN).to_be_bytes()),
            Value::Timestamp(at) => bytes.extend_from_slice(&(at.as_micros() ^ i64::MIN).to_be_bytes()),
            Value::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            Value::Bytes(content) => bytes.extend_from_slice(content),
            other => bytes.extend_from_slice(format!("{other:?}").as_bytes()),
        }
        bytes.push(0);
    }
    bytes
}

pub(super) fn value(row: &MySqlRow, index: usize) -> Result<Value, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => {
            Value::Int(row.try_get_unchecked(index)?)
        }
        "FLOAT" => Value::Float(f64::from(row.try_get_unchecked::<f32, _>(index)?)),
        "DOUBLE" => Value::Float(row.try_get_unchecked(index)?),
        "DATETIME" | "TIMESTAMP" => {
            Value::Timestamp(timestamp(row.try_get_unchecked::<PrimitiveDateTime, _>(index)?.assume_utc()))
        }
        "JSON" => Value::Json(row.try_get(index)?),
        unsigned if unsigned.ends_with("UNSIGNED") => {
            let number: u64 = row.try_get_unchecked(index)?;
            let number = i64::try_from(number).map_err(|error| sqlx::Error::Decode(error.into()))?;
            Value::Int(number)
        }
        // By its collation: the name calls text that compares by its bytes binary as well.
        _ if <str as Type<MySql>>::compatible(&raw.type_info()) => Value::Text(row.try_get_unchecked(index)?),
        _ => Value::Bytes(row.try_get_unchecked(index)?),
    })
}

/// The bytes of a value that cannot be read as what its column is.
pub(super) fn raw(row: &MySqlRow, index: usize) -> Result<Value, sqlx::Error> {
    row.try_get_unchecked(index).map(Value::Bytes)
}

impl<'r> FromRow<'r, MySqlRow> for Record {
    fn from_row(row: &'r MySqlRow) -> Result<Self, sqlx::Error> {
        record(row, value)
    }
}
