//! Settlements that rest on a key's marker, checked against it: an operator may have redriven the key since it was read.

use std::collections::{HashMap, HashSet};

use super::{Arg, RowReader, SqlDatabase, SqlOutbox, SqlTransaction};
use crate::error::StoreError;
use crate::outbox::{Change, Lane, Settlement, rests_on_marker};

impl<D: SqlDatabase> SqlOutbox<D> {
    /// Positions whose key is not diverted any more. The lanes are locked: it stays so.
    pub(super) async fn undiverted(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        rows: &[&Settlement],
    ) -> Result<HashSet<i64>, StoreError> {
        let mut undiverted = HashSet::new();
        let mut markers: HashMap<(Lane, &str), Option<i64>> = HashMap::new();
        for row in rows.iter().filter(|row| rests_on_marker(row)) {
            let Some(key) = row.key.as_deref() else { continue };
            let marker = match markers.get(&(row.lane, key)) {
                Some(marker) => *marker,
                None => {
                    let marker = self.marker_in_front(transaction, target, row.lane, key).await?;
                    markers.insert((row.lane, key), marker);
                    marker
                }
            };
            let is_there = match row.change {
                Change::Park { .. } => marker == Some(row.position),
                _ => marker.is_some() || is_diverted_by(rows, row),
            };
            if !is_there {
                undiverted.insert(row.position);
            }
        }
        Ok(undiverted)
    }

    /// The position of a key's marker, if nothing of the key goes before it.
    async fn marker_in_front(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        lane: Lane,
        key: &str,
    ) -> Result<Option<i64>, StoreError> {
        let args = [("target", Arg::from(target)), ("lane", Arg::from(lane)), ("key", Arg::from(key))];
        let statement = self.templates.fill(include_str!("marker_in_front.sql"), &args)?;
        let Some(row) = transaction.query(&statement).await?.pop() else { return Ok(None) };
        let mut row = RowReader::new(row);
        let position = row.int("id")?;
        Ok((row.text("reason")? == "diverted").then_some(position))
    }
}

/// Another of these settlements is what diverts its key.
fn is_diverted_by(rows: &[&Settlement], row: &Settlement) -> bool {
    let diverts = |other: &&&Settlement| matches!(other.change, Change::Bury { diverts: true, .. });
    rows.iter().filter(diverts).any(|other| (other.lane, &other.key) == (row.lane, &row.key))
}
