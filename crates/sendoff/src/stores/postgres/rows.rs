//! Reading rows whose types are not known beforehand.

use sqlx::postgres::PgRow;
use sqlx::types::time::{OffsetDateTime, PrimitiveDateTime};
use sqlx::{FromRow, Row as _, TypeInfo as _, ValueRef as _};
use uuid::Uuid;

use super::super::sql::{record, timestamp};
use crate::claim::{Record, Timestamp, Value};

pub(super) fn value(row: &PgRow, index: usize) -> Result<Value, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    Ok(match raw.type_info().name() {
        "BOOL" => Value::Bool(row.try_get(index)?),
        "INT2" => Value::from(row.try_get::<i16, _>(index)?),
        "INT4" => Value::from(row.try_get::<i32, _>(index)?),
        "INT8" => Value::Int(row.try_get(index)?),
        "FLOAT4" => Value::Float(f64::from(row.try_get::<f32, _>(index)?)),
        "FLOAT8" => Value::Float(row.try_get(index)?),
        "BYTEA" => Value::Bytes(row.try_get(index)?),
        "UUID" => Value::Uuid(row.try_get::<Uuid, _>(index)?),
        "TIMESTAMPTZ" => Value::Timestamp(timestamp(row.try_get::<OffsetDateTime, _>(index)?)),
        "TIMESTAMP" => plain(row.try_get::<PrimitiveDateTime, _>(index)?).into(),
        "JSON" | "JSONB" => Value::Json(row.try_get(index)?),
        "TEXT" | "VARCHAR" | "CHAR" | "NAME" => Value::Text(row.try_get(index)?),
        // An enum, a domain over text: text on the wire too. Anything else is refused as not UTF-8 or shown as is.
        _ => Value::Text(row.try_get_unchecked(index)?),
    })
}

/// The bytes of a value that cannot be read as what its column is.
pub(super) fn raw(row: &PgRow, index: usize) -> Result<Value, sqlx::Error> {
    let bytes = row.try_get_raw(index)?.as_bytes().map_err(sqlx::Error::Decode)?;
    Ok(Value::Bytes(bytes.to_vec()))
}

fn plain(time: PrimitiveDateTime) -> Timestamp {
    timestamp(time.assume_utc())
}

impl<'r> FromRow<'r, PgRow> for Record {
    fn from_row(row: &'r PgRow) -> Result<Self, sqlx::Error> {
        record(row, value)
    }
}
