//! What rows of every driver have in common.

#[cfg(any(feature = "sqlite", feature = "mysql"))]
use std::collections::HashMap;
use std::sync::Arc;

use sqlx::{Column as _, Row};

use crate::claim::{Ident, Key, Record, Value};

/// The key of `width` columns that starts at column `from`; `value` reads one column.
pub(crate) fn key<R: Row>(
    row: &R,
    from: usize,
    width: usize,
    value: impl Fn(&R, usize) -> Result<Value, sqlx::Error>,
) -> Result<Key, sqlx::Error> {
    (from..from + width).map(|index| value(row, index)).collect::<Result<_, _>>().map(Key)
}

/// A whole row; `value` reads one column.
pub(crate) fn record<R: Row>(
    row: &R,
    value: impl Fn(&R, usize) -> Result<Value, sqlx::Error>,
) -> Result<Record, sqlx::Error> {
    let mut names = Vec::with_capacity(row.len());
    let mut values = Vec::with_capacity(row.len());
    for column in row.columns() {
        let Ok(name) = Ident::new(column.name()) else { continue };
        if is_internal(name.as_str()) {
            continue;
        }
        values.push(value(row, column.ordinal())?);
        names.push(name);
    }
    Ok(Record::new(Arc::from(names), values))
}

/// Columns that a claim adds for itself, to put rows in order; no caller asked for them.
fn is_internal(column: &str) -> bool {
    matches!(column, "sendoff_n" | "sendoff_ours")
        || column.strip_prefix("sendoff_k").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Puts rows in the order in which their keys were picked.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) fn in_picked_order<T>(picked: &[Key], rows: Vec<(Key, T)>) -> Vec<T> {
    let positions: HashMap<Vec<u8>, usize> =
        picked.iter().enumerate().map(|(position, key)| (key.to_bytes(), position)).collect();
    let position = |key: &Key| positions.get(&key.to_bytes()).copied().unwrap_or(usize::MAX);
    let mut placed: Vec<(usize, T)> = rows.into_iter().map(|(key, row)| (position(&key), row)).collect();
    placed.sort_by_key(|(position, _)| *position);
    placed.into_iter().map(|(_, row)| row).collect()
}
