//! PostgreSQL's error codes, by what to do about them.

use sqlx::error::DatabaseError;

use super::super::sql::{database_error, from_driver};
use crate::error::{StoreError, StoreErrorKind};

pub(super) fn convert(op: &'static str, subject: &str, error: sqlx::Error) -> StoreError {
    from_driver(op, subject, error, |database: &dyn DatabaseError| {
        kind(database.code().as_deref().unwrap_or_default())
    })
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn kind(code: &str) -> StoreErrorKind {
    match code {
        // serialization_failure, deadlock_detected, lock_not_available: rolled back, nothing done
        "40001" | "40P01" | "55P03" => StoreErrorKind::Contended,
        // read_only_sql_transaction: a replica, or a primary that was demoted; wait for the right one
        "25006" => StoreErrorKind::Unavailable,
        // insufficient_privilege
        "42501" => StoreErrorKind::Schema,
        _ => match code.get(..2).unwrap_or_default() {
            // data exceptions and violated constraints: the same claim fails again
            "22" | "23" => StoreErrorKind::Rejected,
            // undefined table, column, type…: the table is not what it was when it was opened
            "42" | "3F" => StoreErrorKind::Schema,
            _ => StoreErrorKind::Unavailable,
        },
    }
}

/// A statement was planned before a column it returns changed its type.
pub(super) fn is_stale_plan(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|database| {
        database.code().as_deref() == Some("0A000") && database.message().contains("cached plan")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_next_step() {
        for (code, expected) in [
            ("40001", StoreErrorKind::Contended),
            ("40P01", StoreErrorKind::Contended),
            ("55P03", StoreErrorKind::Contended),
            ("25006", StoreErrorKind::Unavailable),
            ("57P01", StoreErrorKind::Unavailable),
            ("53300", StoreErrorKind::Unavailable),
            ("08006", StoreErrorKind::Unavailable),
            ("42P01", StoreErrorKind::Schema),
            ("42501", StoreErrorKind::Schema),
            ("22003", StoreErrorKind::Rejected),
            ("23514", StoreErrorKind::Rejected),
            ("XX000", StoreErrorKind::Unavailable),
            ("", StoreErrorKind::Unavailable),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }
}
