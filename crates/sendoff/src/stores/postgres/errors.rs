//! PostgreSQL's error codes, by what to do about them.

use sqlx::error::DatabaseError;

use super::super::sql::{database_error, from_driver, sqlstate};
use crate::error::StoreError;

pub(super) fn convert(op: &'static str, subject: &str, error: sqlx::Error) -> StoreError {
    from_driver(op, subject, error, |database: &dyn DatabaseError| {
        sqlstate(database.code().as_deref().unwrap_or_default())
    })
}

/// Whether the server refused with this code.
pub(super) fn has_code(error: &sqlx::Error, code: &str) -> bool {
    database_error(error).and_then(DatabaseError::code).is_some_and(|said| said == code)
}

/// A statement was planned before a column it returns changed its type.
pub(super) fn is_stale_plan(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|database| {
        database.code().as_deref() == Some("0A000") && database.message().contains("cached plan")
    })
}
