//! Settling in one trip.

use std::collections::HashSet;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::time::OffsetDateTime;
use sqlx::{AssertSqlSafe, Postgres, Row as _};

use super::super::errors;
use super::PostgresOutbox;
use super::fetch::small;
use super::tid::Tid;
use crate::error::StoreError;
use crate::outbox::{
    Change, Due, Flush, Lane, LaneSet, Place, RowAddress, Settled, Settlement, rests_on_marker,
};
use crate::stores::sql::{is_plain, retry};

/// How a statement says that it did not find what it was to delete.
const DIVISION_BY_ZERO: &str = "22012";

impl PostgresOutbox {
    /// Published events go in one plain statement; a flush with anything else in it is one call of a function.
    pub(super) async fn settle_fast(&self, flush: &Flush) -> Result<Settled, StoreError> {
        // Without addresses, as behind a pooler, the function is the quicker way.
        let is_plain = self.has_sessions()
            && flush.calm.is_empty()
            && !self.keeps_published
            && flush.settlements.iter().all(is_plain);
        let (Some(first), true) = (flush.tokens.first(), is_plain) else {
            // What rests on a marker is checked against it first, which takes a look of its own.
            return if flush.settlements.iter().any(rests_on_marker) {
                self.floor.settle_in_transaction(flush).await
            } else {
                self.settle_flush(flush).await
            };
        };
        let patience = self.database().patience;
        if retry("settle", "event", patience, || self.delete_all(flush, first.worker.0)).await? {
            return Ok(Settled::default());
        }
        let (current, gone) =
            retry("settle", "event", patience, || self.delete_named(flush, first.worker.0)).await?;
        let is_complete = gone.len() == flush.settlements.len();
        let gone: HashSet<i64> = if is_complete { HashSet::new() } else { gone.into_iter().collect() };
        let mut settled = Settled::default();
        let mut left: Vec<Settlement> = Vec::new();
        for row in &flush.settlements {
            if !current.contains(row.lane) {
                settled.stale.insert(row.lane);
            } else if !is_complete && !gone.contains(&row.position) {
                left.push(row.clone());
            }
        }
        if left.is_empty() {
            return Ok(settled);
        }
        // Not where they were: somebody has rewritten the table, or they are gone. By their positions, then.
        let rest = Flush { settlements: left, ..flush.clone() };
        let late = self.floor.settle_in_transaction(&rest).await?;
        settled.stale.extend(late.stale);
        settled.missing.extend(late.missing);
        Ok(settled)
    }

    async fn settle_flush(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let Some(first) = flush.tokens.first() else { return Ok(Settled::default()) };
        let patience = self.database().patience;
        let (current, done) =
            retry("settle", "outbox", patience, || self.call_settle(flush, first.worker.0)).await?;
        let done: HashSet<i64> = done.into_iter().collect();
        let mut settled = Settled::default();
        for row in &flush.settlements {
            if !current.contains(row.lane) {
                settled.stale.insert(row.lane);
            } else if !done.contains(&row.position) {
                settled.missing.insert(row.position);
            }
        }
        Ok(settled)
    }

    async fn call_settle(
        &self,
        flush: &Flush,
        worker: uuid::Uuid,
    ) -> Result<(LaneSet, Vec<i64>), StoreError> {
        let convert = |error| errors::convert("settle", "outbox", error);
        let rows = Columns::of(&flush.settlements);
        let query = sqlx::query(AssertSqlSafe(self.statements.settle_flush.as_str()))
            .bind(&flush.target)
            .bind(worker)
            .bind(flush.tokens.iter().map(|token| small(token.lane)).collect::<Vec<i16>>())
            .bind(flush.tokens.iter().map(|token| token.epoch).collect::<Vec<i64>>())
            .bind(flush.calm.iter().map(|lane| small(*lane)).collect::<Vec<i16>>())
            .bind(self.keeps_published)
            .bind(rows.ids)
            .bind(rows.lanes)
            .bind(rows.keys)
            .bind(rows.hot)
            .bind(rows.changes)
            .bind(rows.reasons)
            .bind(rows.due_in)
            .bind(rows.due_at)
            .bind(rows.failures)
            .bind(rows.crashes)
            .bind(rows.causes)
            .bind(rows.errors);
        let row = self.fetch_one("settle", query).await?;
        answer(&row).map_err(convert)
    }

    /// Deletes what was published, if every token is current and each event is where it was. Whether that was so; if not, nothing was deleted.
    async fn delete_all(&self, flush: &Flush, worker: uuid::Uuid) -> Result<bool, StoreError> {
        let convert = |error| errors::convert("settle", "event", error);
        let has_address = |row: &Settlement| matches!(row.place, Place::Hot(Some(_)));
        if flush.settlements.is_empty() || !flush.settlements.iter().all(has_address) {
            return Ok(false);
        }
        let query = self.delete_published(&self.statements.settle_published, flush, worker);
        let mut connection = self.database().connections.acquire().await.map_err(convert)?;
        let is_done = match self.database().run_query(&mut connection, query).await {
            Ok(_) => true,
            Err(error) if errors::has_code(&error, DIVISION_BY_ZERO) => false,
            Err(error) => return Err(convert(error)),
        };
        connection.keep();
        Ok(is_done)
    }

    /// The lanes whose tokens were current, and the positions that were deleted.
    async fn delete_named(
        &self,
        flush: &Flush,
        worker: uuid::Uuid,
    ) -> Result<(LaneSet, Vec<i64>), StoreError> {
        let convert = |error| errors::convert("settle", "event", error);
        let query = self.delete_published(&self.statements.settle_named, flush, worker);
        let row = self.fetch_one("settle", query).await?;
        answer(&row).map_err(convert)
    }

    /// One of the two statements, with what both want.
    fn delete_published<'q>(
        &self,
        sql: &'q str,
        flush: &'q Flush,
        worker: uuid::Uuid,
    ) -> Query<'q, Postgres, PgArguments> {
        let mut places: Vec<(RowAddress, i64)> =
            flush.settlements.iter().map(|row| (address_of(row), row.position)).collect();
        // As the server visits them: whoever meets the same rows meets them in the same order.
        places.sort_unstable_by_key(|(address, _)| (address.block, address.offset));
        sqlx::query(AssertSqlSafe(sql))
            .bind(&flush.target)
            .bind(flush.tokens.iter().map(|token| small(token.lane)).collect::<Vec<i16>>())
            .bind(flush.tokens.iter().map(|token| token.epoch).collect::<Vec<i64>>())
            .bind(worker)
            .bind(places.iter().map(|(address, _)| Tid(*address)).collect::<Vec<Tid>>())
            .bind(places.iter().map(|(_, position)| *position).collect::<Vec<i64>>())
            .bind(self.settles_asynchronously)
    }
}

fn answer(row: &PgRow) -> Result<(LaneSet, Vec<i64>), sqlx::Error> {
    let current: Vec<i16> = row.try_get(0)?;
    Ok((current.into_iter().filter_map(|lane| Lane::try_from(lane).ok()).collect(), row.try_get(1)?))
}

/// Settlements as the function takes them: a column each.
#[derive(Debug, Default)]
struct Columns {
    ids: Vec<i64>,
    lanes: Vec<i16>,
    keys: Vec<Option<String>>,
    hot: Vec<bool>,
    changes: Vec<&'static str>,
    reasons: Vec<Option<&'static str>>,
    due_in: Vec<Option<i64>>,
    due_at: Vec<Option<OffsetDateTime>>,
    failures: Vec<Option<i32>>,
    crashes: Vec<Option<i32>>,
    causes: Vec<Option<&'static str>>,
    errors: Vec<Option<String>>,
}

impl Columns {
    /// In the order of their positions: whoever meets the same rows meets them in the same order.
    fn of(settlements: &[Settlement]) -> Self {
        let mut sorted: Vec<&Settlement> = settlements.iter().collect();
        sorted.sort_unstable_by_key(|row| row.position);
        let mut columns = Self::default();
        for row in sorted {
            columns.push(row);
        }
        columns
    }

    fn push(&mut self, row: &Settlement) {
        self.ids.push(row.position);
        self.lanes.push(small(row.lane));
        self.keys.push(row.key.as_deref().map(str::to_owned));
        self.hot.push(row.place.is_hot());
        let (change, reason, due, attempts, failure) = match &row.change {
            Change::Publish => ("publish", None, Due::Never, None, None),
            Change::Park { reason, due, attempts, failure } => {
                ("park", Some(reason.word()), *due, Some(*attempts), failure.as_ref())
            }
            Change::Bury { attempts, failure, diverts } => {
                let change = if *diverts { "divert" } else { "bury" };
                (change, None, Due::Never, Some(*attempts), Some(failure))
            }
        };
        let (due_in, due_at) = match due {
            Due::In(wait) => (Some(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)), None),
            Due::At(moment) => {
                let nanos = i128::from(moment.as_micros()) * 1_000;
                (None, OffsetDateTime::from_unix_timestamp_nanos(nanos).ok())
            }
            Due::Never => (None, None),
        };
        let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        self.changes.push(change);
        self.reasons.push(reason);
        self.due_in.push(due_in);
        self.due_at.push(due_at);
        self.failures.push(attempts.map(|attempts| count(attempts.failures)));
        self.crashes.push(attempts.map(|attempts| count(attempts.crashes)));
        self.causes.push(failure.map(|failure| failure.cause.word()));
        self.errors.push(failure.map(|failure| failure.error.clone()));
    }
}

fn address_of(row: &Settlement) -> RowAddress {
    match row.place {
        Place::Hot(Some(address)) => address,
        // No row has this address: it is found by its position afterwards.
        _ => RowAddress { block: 0, offset: 0 },
    }
}
