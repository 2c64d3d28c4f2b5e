//! What databases call their errors, by what to do about them.

use crate::error::StoreErrorKind;

/// What PostgreSQL says; of the standard's codes MariaDB and MySQL say some too.
///
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
#[cfg(any(test, feature = "postgres", feature = "tokio-postgres", feature = "sea-orm"))]
pub(crate) fn sqlstate(code: &str) -> StoreErrorKind {
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

/// What SQLite says.
///
/// <https://www.sqlite.org/rescode.html>. The low byte is the primary code; BUSY (5) has the extended forms
/// BUSY_RECOVERY, BUSY_SNAPSHOT and BUSY_TIMEOUT, LOCKED (6) has LOCKED_SHAREDCACHE.
#[cfg(any(test, feature = "sqlite", feature = "sea-orm"))]
pub(crate) fn sqlite(code: i64, message: &str) -> StoreErrorKind {
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
    fn every_sqlstate_has_its_next_step() {
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
            assert_eq!(sqlstate(code), expected, "{code}");
        }
    }

    #[test]
    fn every_code_of_sqlite_has_its_next_step() {
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
            assert_eq!(sqlite(code, message), expected, "{code} {message}");
        }
    }
}
