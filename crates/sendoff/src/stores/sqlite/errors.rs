//! SQLite's result codes, by what to do about them.

use sqlx::error::DatabaseError;

use super::super::sql;
use crate::error::StoreError;

pub(super) fn convert(op: &'static str, subject: &str, error: sqlx::Error) -> StoreError {
    sql::from_driver(op, subject, error, |database: &dyn DatabaseError| {
        sql::sqlite(
            database.code().and_then(|code| code.parse().ok()).unwrap_or_default(),
            database.message(),
        )
    })
}
