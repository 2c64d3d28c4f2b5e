//! What an operator sees of a table whose claims are kept beside it. Nothing here writes.

use std::collections::HashMap;

use tokio::time::Instant;
use uuid::Uuid;

use super::{AtEnd, REST, Side, Waiting, bundles};
use crate::adopted::inspect::{self, Listing};
use crate::adopted::reading::Row;
use crate::adopted::table::RowTable;
use crate::claim::{Key, Predicate, Record, Timestamp, Value, col};
use crate::error::StoreError;
use crate::outbox::EventState;
use crate::stores::sql::{Bind, SqlDatabase};

impl<D> Side<D>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    /// The host's rows that stand so by its own status, where that is what says it.
    fn ended(&self, state: EventState) -> Option<Predicate> {
        let AtEnd::Write { status, published, dead, .. } = &self.at_end else { return None };
        let word = match state {
            EventState::Published => published,
            EventState::Dead => dead,
            _ => return None,
        };
        let others = self.host_mapping.filter.iter().filter(|(column, _)| column != status);
        let others = others.map(|(column, value)| col(column).eq(value.clone()));
        Some(others.fold(col(status).eq(word.clone()), Predicate::and))
    }

    pub(in crate::adopted) async fn standing(
        &self,
        state: EventState,
        one: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Listing>, StoreError> {
        let id = one.and_then(|id| inspect::id_of(&self.host, &self.host_mapping, id));
        if one.is_some() && id.is_none() {
            return Ok(Vec::new());
        }
        if let Some(ended) = self.ended(state) {
            let named = id.iter().map(|id| col(&self.host_mapping.id).eq(id.clone()));
            let wanted = named.fold(ended, Predicate::and);
            let rows = self.host.read(&inspect::reading(&self.host_mapping, wanted, limit)?).await?;
            return self.listings(&rows);
        }
        let mut records = inspect::standing(&self.seen, &self.mapping, state, id.as_ref(), limit).await?;
        if let Some(lasts) = bundles::lasts(state) {
            let left = limit.saturating_sub(records.len() as u32);
            records.extend(self.bundled(lasts, id.as_ref(), left).await?);
        }
        let mut listed = self.known(&records).await?;
        let left = limit.saturating_sub(listed.len() as u32);
        if state == EventState::Unprocessed && left > 0 {
            let new = match id {
                Some(id) => self.new_row(id).await?,
                None => self.new_rows(left).await?,
            };
            listed.extend(self.listings(&new)?);
        }
        Ok(listed)
    }

    /// Rows that were taken in, with what is known of their claims.
    async fn known(&self, records: &[Record]) -> Result<Vec<Listing>, StoreError> {
        let mut claims = HashMap::with_capacity(records.len());
        for record in records {
            claims.insert(self.mapping.key_of(record)?.to_bytes(), record);
        }
        let (rows, _) = self.events(records, "").await?;
        let listing = |row: Row| {
            let mut listing = Listing::from(row);
            if let Some(record) = claims.get(&listing.key.to_bytes()) {
                self.mapping.told(record, &mut listing);
            }
            listing
        };
        Ok(rows.into_iter().map(listing).collect())
    }

    /// The host's row of this id, if it has not been taken in.
    async fn new_row(&self, id: Value) -> Result<Vec<Record>, StoreError> {
        let named = inspect::reading(&self.mapping, col(&self.mapping.id).eq(id.clone()), 1)?;
        let mut is_known = self.seen.count(&named).await? > 0;
        for lasts in [true, false] {
            is_known = is_known || !self.bundled(lasts, Some(&id), 1).await?.is_empty();
        }
        if is_known { Ok(Vec::new()) } else { self.host_rows(&[Key(vec![id])], true).await }
    }

    fn listings(&self, rows: &[Record]) -> Result<Vec<Listing>, StoreError> {
        rows.iter().map(|row| self.host_mapping.read(row, Some(0), "").map(Listing::from)).collect()
    }

    /// The host's rows that have not been taken in, in their order.
    async fn new_rows(&self, limit: u32) -> Result<Vec<Record>, StoreError> {
        let args = [("limit", Bind::Int(limit.into()))];
        let find = self.statements.fill(include_str!("new_find.sql"), &[], &args, &[]);
        let found = self.database.query("list", &find).await?;
        let ids: Vec<Key> =
            found.into_iter().filter_map(|row| Some(Key(vec![row.into_iter().next()?]))).collect();
        let rows = self.host_rows(&ids, true).await?;
        let mut by_id = HashMap::with_capacity(rows.len());
        for row in rows {
            by_id.insert(self.host_mapping.key_of(&row)?.to_bytes(), row);
        }
        Ok(ids.iter().filter_map(|id| by_id.remove(&id.to_bytes())).collect())
    }

    pub(in crate::adopted) async fn counted(&self, state: EventState, most: u32) -> Result<u64, StoreError> {
        if let Some(wanted) = self.ended(state) {
            return self.host.count(&inspect::reading(&self.host_mapping, wanted, most)?).await;
        }
        if state == EventState::Unprocessed {
            return self.count_waiting(most).await;
        }
        let known = inspect::counted(&self.seen, &self.mapping, state, most).await?;
        let more = match bundles::lasts(state) {
            Some(lasts) => self.count_bundled(lasts, most).await?,
            None => 0,
        };
        Ok((known + more).min(most.into()))
    }

    /// How many rows nobody has claimed, whether they have been taken in or not. What is new is found by looking at all there is, so that it takes a part of the time at most; both
    /// are of one moment, or a row that is taken in between would count twice.
    async fn count_waiting(&self, most: u32) -> Result<u64, StoreError> {
        let began = Instant::now();
        let counted = self.pace().waiting.filter(|counted| counted.until > began && counted.most >= most);
        if let Some(counted) = counted {
            return Ok(counted.rows.min(most.into()));
        }
        let known = inspect::counted(&self.seen, &self.mapping, EventState::Unprocessed, most).await?;
        let args = [("limit", Bind::Int(most.into()))];
        let count = self.statements.fill(include_str!("new_count.sql"), &[], &args, &[]);
        let new = match self.database.query("count", &count).await?.first().and_then(|row| row.first()) {
            Some(Value::Int(number)) => u64::try_from(*number).unwrap_or_default(),
            _ => 0,
        };
        let rows = (known + new).min(most.into());
        self.pace().waiting = Some(Waiting { rows, most, until: Instant::now() + began.elapsed() * REST });
        Ok(rows)
    }

    pub(in crate::adopted) async fn oldest(&self) -> Result<Option<Timestamp>, StoreError> {
        let Some(created) = &self.host_mapping.created else { return Ok(None) };
        let records = inspect::rows(&self.claims, &self.mapping, inspect::RowState::Unprocessed, 1).await?;
        let ids: Vec<Key> =
            records.iter().map(|record| self.mapping.key_of(record)).collect::<Result<_, _>>()?;
        let mut rows = self.host_rows(&ids, true).await?;
        rows.extend(self.new_rows(1).await?);
        let moments = rows.iter().filter_map(|row| self.host_mapping.moment(created, row.get(created)?));
        Ok(moments.min())
    }
}
