//! SQLite's result codes, by what to do about them.

use sqlx::error::DatabaseError;

use super::super::sql::from_driver;
use crate::error::{StoreError, StoreErrorKind};

pub(super) fn convert(op: &'static str, subject: &str, error: sqlx::Error) -> StoreError {
    from_driver(op, subject, error, |database: &dyn DatabaseError| {
        kind(database.code().and_then(|code| code.parse().ok()).unwrap_or_default(), database.message())
    })
}

/// <https://www.sqlite.org/rescode.html>. The low byte is the primary code; BUSY (5) has the extended forms
/// BUSY_RECOVERY, BUSY_SNAPSHOT and BUSY_TIMEOUT, LOCKED (6) has LOCKED_SHAREDCACHE.
fn kind(code: i64, message: &str) -> StoreErrorKind {
    match code & 0xff {
        5 | 6 => StoreErrorKind::Contended,
        // CONSTRAINT, TOOBIG, MISMATCH, RANGE
        19 | 18 | 20 | 25 => StoreErrorKind::Rejected,
        // ERROR covers everything from a missing table to a full stack
        1 if message.contains("no such") || message.contains("has no column") => StoreErrorKind::Schema,
        // READONLY, PERM, AUTH, SCHEMA
        8 | 3 | 23 | 17 => StoreErrorKind::Schema,
        // CORRUPT, NOTADB
        11 | 26 => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_next_step() {
        for (code, message, expected) in [
            (5, "database is locked", StoreErrorKind::Contended),
            (261, "BUSY_RECOVERY", StoreErrorKind::Contended),
            (517, "BUSY_SNAPSHOT", StoreErrorKind::Contended),
            (773, "BUSY_TIMEOUT", StoreErrorKind::Contended),
            (6, "database table is locked", StoreErrorKind::Contended),
            (262, "LOCKED_SHAREDCACHE", StoreErrorKind::Contended),
            (1555, "CONSTRAINT_PRIMARYKEY", StoreErrorKind::Rejected),
            (1, "no such table: jobs", StoreErrorKind::Schema),
            (8, "attempt to write a readonly database", StoreErrorKind::Schema),
            (11, "database disk image is malformed", StoreErrorKind::Corrupt),
            (10, "disk I/O error", StoreErrorKind::Unavailable),
            (13, "database or disk is full", StoreErrorKind::Unavailable),
        ] {
            assert_eq!(kind(code, message), expected, "{code} {message}");
        }
    }
}
