//! MariaDB's and MySQL's error numbers, by what to do about them.

use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlDatabaseError;

use super::super::sql::from_driver;
use crate::error::{StoreError, StoreErrorKind};

pub(super) fn convert(op: &'static str, subject: &str, error: sqlx::Error) -> StoreError {
    from_driver(op, subject, error, |database: &dyn DatabaseError| {
        database
            .try_downcast_ref::<MySqlDatabaseError>()
            .map_or(StoreErrorKind::Unavailable, |e| kind(e.number()))
    })
}

/// <https://mariadb.com/kb/en/mariadb-error-code-reference/>
fn kind(number: u16) -> StoreErrorKind {
    match number {
        // Lock wait timeout (the statement alone is rolled back: the transaction is dropped, and that rolls
        // back the rest), deadlock or lost certification on a cluster, record changed since last read.
        1205 | 1213 | 1020 => StoreErrorKind::Contended,
        // Access denied; unknown database, column, table, index; syntax; no such privilege
        // and a binary log of statements, which cannot hold what is written at READ COMMITTED.
        1044 | 1045 | 1049 | 1054 | 1064 | 1142 | 1143 | 1146 | 1176 | 1665 => StoreErrorKind::Schema,
        // Null, duplicate, out of range, too long, wrong value, foreign key, check
        1048 | 1062 | 1264 | 1292 | 1366 | 1406 | 1451 | 1452 | 3819 | 4025 => StoreErrorKind::Rejected,
        // Read only, too many connections, node not ready, shutting down, and all that nobody has met
        _ => StoreErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_next_step() {
        for (number, expected) in [
            (1205, StoreErrorKind::Contended),
            (1213, StoreErrorKind::Contended),
            (1020, StoreErrorKind::Contended),
            (1047, StoreErrorKind::Unavailable),
            (1040, StoreErrorKind::Unavailable),
            (1290, StoreErrorKind::Unavailable),
            (1836, StoreErrorKind::Unavailable),
            (1146, StoreErrorKind::Schema),
            (1176, StoreErrorKind::Schema),
            (1665, StoreErrorKind::Schema),
            (1264, StoreErrorKind::Rejected),
            (4025, StoreErrorKind::Rejected),
        ] {
            assert_eq!(kind(number), expected, "{number}");
        }
    }
}
