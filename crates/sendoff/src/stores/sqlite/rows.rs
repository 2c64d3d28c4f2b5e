//! Reading rows whose types are not known beforehand: SQLite keeps the type with the value.

use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _, TypeInfo as _, ValueRef as _};

use super::super::sql::record;
use crate::claim::{Record, Value};

pub(super) fn value(row: &SqliteRow, index: usize) -> Result<Value, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "INTEGER" | "BOOLEAN" => Value::Int(row.try_get_unchecked(index)?),
        "REAL" => Value::Float(row.try_get_unchecked(index)?),
        "BLOB" => Value::Bytes(row.try_get_unchecked(index)?),
        _ => Value::Text(row.try_get_unchecked(index)?),
    })
}

/// The bytes of a value that cannot be read as what its column is.
pub(super) fn raw(row: &SqliteRow, index: usize) -> Result<Value, sqlx::Error> {
    row.try_get_unchecked(index).map(Value::Bytes)
}

impl<'r> FromRow<'r, SqliteRow> for Record {
    fn from_row(row: &'r SqliteRow) -> Result<Self, sqlx::Error> {
        record(row, value)
    }
}
