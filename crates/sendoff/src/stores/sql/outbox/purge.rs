//! Deleting for good, a batch at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::operate::{Spot, by_lane, keys, lanes};
use super::redrive::spots;
use super::store::micros;
use super::{Arg, RowReader, SqlDatabase, SqlOutbox, SqlTransaction};
use crate::error::StoreError;
use crate::outbox::{Discard, Lane};
use crate::stores::sql::{OLDEST, Plan, Statement, retry};

impl<D: SqlDatabase> SqlOutbox<D> {
    /// How the database would find what a purge of history deletes. Deletes nothing.
    ///
    /// # Errors
    /// As the purge.
    pub async fn explain_purge(
        &self,
        target: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<Plan, StoreError> {
        self.published.explain(target, older_than, batch).await
    }

    /// Not by a claim that removes, as history: a dead letter may divert its key, and goes together with what marks that.
    pub(super) async fn purge_dead(
        &self,
        target: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<u64, StoreError> {
        let old = self.old(include_str!("old_dead.sql"), target, older_than, batch)?;
        let subject = self.templates.names.subject();
        retry("purge", &subject, self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("purge").await?;
            let lanes = lanes(&[&read_spots(transaction.as_mut(), &old).await?]);
            self.lock_all(transaction.as_mut(), &lanes).await?;
            // Again, now that nobody can bring them back. What turns up in other lanes is for the next call.
            let spots = read_spots(transaction.as_mut(), &old).await?;
            let mut purged = 0;
            for ((target, lane), spots) in by_lane(spots, &lanes) {
                purged += self.bury_for_good(transaction.as_mut(), (&target, lane), &spots).await?;
            }
            transaction.commit().await?;
            Ok(purged)
        })
        .await
    }

    pub(super) async fn discard_selection(&self, discard: &Discard) -> Result<u64, StoreError> {
        let subject = self.templates.names.subject();
        retry("discard", &subject, self.database.time_to_try(), || self.discard_once(discard)).await
    }

    async fn discard_once(&self, discard: &Discard) -> Result<u64, StoreError> {
        let dead = self.dead_statement(&discard.selection, discard.limit)?;
        let mut transaction = self.database.begin("discard").await?;
        let found = spots(transaction.as_mut(), &dead, discard.limit).await?;
        if discard.dry_run {
            transaction.rollback().await?;
            return Ok(found.len() as u64);
        }
        let lanes = lanes(&[&found]);
        self.lock_all(transaction.as_mut(), &lanes).await?;
        // Again, now that nobody can bring them back.
        let found = spots(transaction.as_mut(), &dead, discard.limit).await?;
        let mut discarded = 0;
        for ((target, lane), found) in by_lane(found, &lanes) {
            discarded += self.bury_for_good(transaction.as_mut(), (&target, lane), &found).await?;
        }
        let what = format!("discard {}", discard.selection);
        transaction.execute(&self.operation(&discard.by, &what, discarded)?).await?;
        transaction.commit().await?;
        Ok(discarded)
    }

    /// Deletes dead events of one lane. Where one of them diverted its key, the next dead one of the key does; where there is none, the key
    /// goes on.
    async fn bury_for_good(
        &self,
        transaction: &mut dyn SqlTransaction,
        place: (&str, Lane),
        spots: &[Spot],
    ) -> Result<u64, StoreError> {
        let mut ids: Vec<i64> = spots.iter().map(|spot| spot.id).collect();
        ids.sort_unstable();
        let names: Vec<&str> = keys(spots).into_keys().collect();
        let markers = self.markers(transaction, place.0, place.1, &names).await?;
        let is_purged = |id: &i64| ids.binary_search(id).is_ok();
        let freed: BTreeSet<&str> =
            markers.iter().filter(|(id, _)| is_purged(id)).map(|(_, key)| key.as_str()).collect();
        let of_freed = || markers.iter().filter(|(_, key)| freed.contains(key.as_str()));
        let marker_ids: Vec<i64> = of_freed().map(|(id, _)| *id).collect();
        self.change_rows(transaction, include_str!("delete_parked.sql"), place, &marker_ids).await?;
        let purged = self.change_rows(transaction, include_str!("delete_dead.sql"), place, &ids).await?;
        for key in &freed {
            let first = of_freed().find(|(_, other)| other == key).map_or(0, |(id, _)| *id);
            self.mark_next(transaction, place, key, first - 1).await?;
        }
        self.promote_keys(transaction, place, &freed.into_iter().collect::<Vec<_>>()).await?;
        Ok(purged)
    }

    fn old(
        &self,
        template: &'static str,
        target: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<Statement, StoreError> {
        let before = Arg::Now(-micros(older_than.min(OLDEST)));
        let args = [("target", Arg::from(target)), ("before", before), ("limit", Arg::from(batch))];
        self.templates.fill(template, &args)
    }
}

async fn read_spots(
    transaction: &mut dyn SqlTransaction,
    statement: &Statement,
) -> Result<Vec<Spot>, StoreError> {
    let rows = transaction.query(statement).await?;
    rows.into_iter().map(|row| Spot::read(RowReader::new(row))).collect()
}
