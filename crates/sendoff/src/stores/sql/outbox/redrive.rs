//! Bringing dead and parked events back, in the order of their keys.

use std::collections::BTreeMap;

use super::operate::{Spot, by_lane, keys, lanes};
use super::{Arg, RowReader, SqlDatabase, SqlOutbox, SqlTransaction};
use crate::error::StoreError;
use crate::outbox::{LANES, Lane, Reason, Redrive, Redriven, Selection};
use crate::stores::sql::{Statement, retry};

/// What is redriven, or may be.
#[derive(Debug, Default)]
struct Selected {
    dead: Vec<Spot>,
    parked: Vec<Spot>,
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn redrive_selection(&self, redrive: &Redrive) -> Result<Redriven, StoreError> {
        let subject = self.templates.names.subject();
        retry("redrive", &subject, self.database.time_to_try(), || self.redrive_once(redrive)).await
    }

    async fn redrive_once(&self, redrive: &Redrive) -> Result<Redriven, StoreError> {
        let mut transaction = self.database.begin("redrive").await?;
        let selected = self.select(transaction.as_mut(), redrive).await?;
        if redrive.dry_run {
            transaction.rollback().await?;
            let count = |spots: &[Spot]| spots.len() as u64;
            return Ok(Redriven { dead: count(&selected.dead), parked: count(&selected.parked) });
        }
        let lanes = lanes(&[&selected.dead, &selected.parked]);
        self.lock_all(transaction.as_mut(), &lanes).await?;
        // Again, now that nobody can move them. What turns up in other lanes is for the next call.
        let selected = self.select(transaction.as_mut(), redrive).await?;
        let mut redriven = Redriven::default();
        for ((target, lane), spots) in by_lane(selected.parked, &lanes) {
            let ids: Vec<i64> = spots.iter().map(|spot| spot.id).collect();
            let template = include_str!("redrive_parked.sql");
            redriven.parked +=
                self.change_rows(transaction.as_mut(), template, (&target, lane), &ids).await?;
        }
        for ((target, lane), spots) in by_lane(selected.dead, &lanes) {
            redriven.dead += self.revive(transaction.as_mut(), (&target, lane), &spots).await?;
        }
        let what = format!("redrive {}", redrive.selection);
        let record = self.operation(&redrive.by, &what, redriven.dead + redriven.parked)?;
        transaction.execute(&record).await?;
        transaction.commit().await?;
        Ok(redriven)
    }

    /// Brings dead events of one lane back among the parked.
    async fn revive(
        &self,
        transaction: &mut dyn SqlTransaction,
        place: (&str, Lane),
        spots: &[Spot],
    ) -> Result<u64, StoreError> {
        let ids: Vec<i64> = spots.iter().map(|spot| spot.id).collect();
        let keys: BTreeMap<&str, i64> = keys(spots);
        let names: Vec<&str> = keys.keys().copied().collect();
        // A marker stands where its event comes back to: it goes first.
        let markers = self.markers(transaction, place.0, place.1, &names).await?;
        let marker_ids: Vec<i64> = markers.keys().copied().collect();
        self.change_rows(transaction, include_str!("delete_parked.sql"), place, &marker_ids).await?;
        self.change_rows(transaction, include_str!("revive.sql"), place, &ids).await?;
        let revived = self.change_rows(transaction, include_str!("delete_dead.sql"), place, &ids).await?;
        // Dead ones above those that came back go on diverting their key, so that it can be redriven part by part.
        for (key, highest) in &keys {
            if markers.values().any(|marked| marked == key) {
                self.mark_next(transaction, place, key, *highest).await?;
            }
        }
        self.promote_keys(transaction, place, &names).await?;
        Ok(revived)
    }

    /// Dead ones first, then those that wait; each lowest position first.
    async fn select(
        &self,
        transaction: &mut dyn SqlTransaction,
        redrive: &Redrive,
    ) -> Result<Selected, StoreError> {
        let limit = redrive.limit;
        let dead = self.dead_statement(&redrive.selection, limit)?;
        let dead = spots(transaction, &dead, limit).await?;
        let left = limit - u32::try_from(dead.len()).unwrap_or(limit);
        if left == 0 {
            return Ok(Selected { dead, parked: Vec::new() });
        }
        let parked = self.waiting_statement(&redrive.selection, left)?;
        Ok(Selected { dead, parked: spots(transaction, &parked, left).await? })
    }

    pub(super) fn dead_statement(&self, selection: &Selection, limit: u32) -> Result<Statement, StoreError> {
        let limit = ("limit", Arg::from(limit));
        match selection {
            Selection::Event(id) => {
                let args = [("event_id", self.templates.event_id(*id)), limit];
                self.templates.fill(include_str!("redrive_dead_by_event.sql"), &args)
            }
            Selection::Key { target, key } => {
                let parts = key_parts(target, key, &limit.1);
                self.templates.union(include_str!("redrive_dead_by_key.sql"), parts)
            }
            Selection::Target(target) => {
                let args = [("target", Arg::from(target.as_str())), limit];
                self.templates.fill(include_str!("redrive_dead_by_target.sql"), &args)
            }
        }
    }

    fn waiting_statement(&self, selection: &Selection, limit: u32) -> Result<Statement, StoreError> {
        let limit = ("limit", Arg::from(limit));
        match selection {
            Selection::Event(id) => {
                let args = [("event_id", self.templates.event_id(*id)), limit];
                self.templates.fill(include_str!("redrive_parked_by_event.sql"), &args)
            }
            Selection::Key { target, key } => {
                let parts = key_parts(target, key, &limit.1);
                self.templates.union(include_str!("redrive_parked_by_key.sql"), parts)
            }
            Selection::Target(target) => {
                let parts = [Reason::Retry, Reason::Blocked].map(|reason| {
                    let target = ("target", Arg::from(target.as_str()));
                    vec![target, ("reason", Arg::from(reason.word())), limit.clone()]
                });
                self.templates.union(include_str!("redrive_parked_by_target.sql"), parts)
            }
        }
    }
}

/// A key is in one lane, and each is asked: only the database knows which.
fn key_parts(target: &str, key: &str, limit: &Arg) -> impl Iterator<Item = Vec<(&'static str, Arg)>> {
    (0..LANES).map(move |lane| {
        vec![
            ("target", Arg::from(target)),
            ("lane", Arg::from(lane)),
            ("key", Arg::from(key)),
            ("limit", limit.clone()),
        ]
    })
}

/// The rows of a statement, lowest position first.
pub(super) async fn spots(
    transaction: &mut dyn SqlTransaction,
    statement: &Statement,
    limit: u32,
) -> Result<Vec<Spot>, StoreError> {
    let rows = transaction.query(statement).await?;
    let mut spots =
        rows.into_iter().map(|row| Spot::read(RowReader::new(row))).collect::<Result<Vec<_>, _>>()?;
    spots.sort_by_key(|spot| spot.id);
    spots.truncate(limit as usize);
    Ok(spots)
}
