//! What a driver's error means for the caller. The codes are each dialect's own business; what they have in
//! common is here.

use sqlx::error::DatabaseError;

use crate::error::{StoreError, StoreErrorKind};

/// Turns a driver's error into ours; `classify` knows the dialect's codes.
pub(crate) fn from_driver(
    op: &'static str,
    subject: &str,
    error: sqlx::Error,
    classify: impl FnOnce(&dyn DatabaseError) -> StoreErrorKind,
) -> StoreError {
    use sqlx::Error as E;
    let (kind, detail) = match &error {
        E::Database(database) => {
            let code = database.code().map_or_else(String::new, |code| format!(" ({code})"));
            (classify(database.as_ref()), format!("{}{code}", database.message()))
        }
        E::PoolTimedOut => (
            StoreErrorKind::Unavailable,
            "no connection became free in time; the pool is too small, or its connections hang".to_owned(),
        ),
        E::ColumnDecode { index, source } => (
            StoreErrorKind::Corrupt,
            format!("column {index} cannot be read as the row type wants: {source}"),
        ),
        E::ColumnNotFound(name) => (
            StoreErrorKind::Schema,
            format!(
                "the row type wants a column `{name}` that the claim does not return; check `Table::returning`"
            ),
        ),
        E::Decode(source) => (StoreErrorKind::Corrupt, format!("a row cannot be read: {source}")),
        E::Encode(source) => (StoreErrorKind::Rejected, format!("a value cannot be sent: {source}")),
        // Its text may quote the URL, and with it a password.
        E::Configuration(_) => (StoreErrorKind::Rejected, "the connection URL is not valid".to_owned()),
        other => (StoreErrorKind::Unavailable, other.to_string()),
    };
    let mine = StoreError::new(kind, op, subject, detail);
    if matches!(error, E::Configuration(_)) { mine } else { mine.caused_by(error) }
}

/// The database's own error, if it is one.
#[cfg(feature = "postgres")]
pub(crate) fn database_error(error: &sqlx::Error) -> Option<&dyn DatabaseError> {
    match error {
        sqlx::Error::Database(database) => Some(database.as_ref()),
        _ => None,
    }
}
