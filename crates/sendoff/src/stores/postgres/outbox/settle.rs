//! Settling in one trip.

use std::collections::HashSet;

use sqlx::{AssertSqlSafe, Row as _};

use super::super::errors;
use super::PostgresOutbox;
use super::fetch::small;
use super::tid::Tid;
use crate::error::StoreError;
use crate::outbox::{Flush, Lane, Place, RowAddress, Settled, Settlement};
use crate::stores::sql::{is_plain, retry};

impl PostgresOutbox {
    /// Published events go in one statement; a flush with anything else in it goes in one transaction.
    pub(super) async fn settle_fast(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let is_plain =
            flush.calm.is_empty() && !self.keeps_published && flush.settlements.iter().all(is_plain);
        let (Some(first), true) = (flush.tokens.first(), is_plain) else {
            return self.floor.settle_in_transaction(flush).await;
        };
        let patience = self.database().patience;
        let (current, gone) =
            retry("settle", "event", patience, || self.delete_published(flush, first.worker.0)).await?;
        let mut settled = Settled::default();
        let mut left: Vec<Settlement> = Vec::new();
        for row in &flush.settlements {
            if !current.contains(&row.lane) {
                settled.stale.insert(row.lane);
            } else if !gone.contains(&row.position) {
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

    /// The lanes whose tokens were current, and the positions that were deleted.
    async fn delete_published(
        &self,
        flush: &Flush,
        worker: uuid::Uuid,
    ) -> Result<(HashSet<Lane>, HashSet<i64>), StoreError> {
        let convert = |error| errors::convert("settle", "event", error);
        let lanes: Vec<i16> = flush.tokens.iter().map(|token| small(token.lane)).collect();
        let epochs: Vec<i64> = flush.tokens.iter().map(|token| token.epoch).collect();
        // By address: pages are visited in turn, and whoever meets the same rows meets them in the same order.
        let mut rows: Vec<(RowAddress, i16, i64)> = flush.settlements.iter().map(address_of).collect();
        rows.sort_unstable_by_key(|(address, ..)| (address.block, address.offset));
        let addresses: Vec<Tid> = rows.iter().map(|row| Tid(row.0)).collect();
        let row_lanes: Vec<i16> = rows.iter().map(|row| row.1).collect();
        let ids: Vec<i64> = rows.iter().map(|row| row.2).collect();
        let mut connection = self.database().connections.acquire().await.map_err(convert)?;
        let row = sqlx::query(AssertSqlSafe(self.statements.settle_published.as_str()))
            .persistent(self.has_sessions())
            .bind(&flush.target)
            .bind(lanes)
            .bind(epochs)
            .bind(worker)
            .bind(addresses)
            .bind(row_lanes)
            .bind(ids)
            .bind(self.settles_asynchronously)
            .fetch_one(&mut *connection)
            .await
            .map_err(convert)?;
        connection.keep();
        let current: Vec<i16> = row.try_get(0).map_err(convert)?;
        let gone: Vec<i64> = row.try_get(1).map_err(convert)?;
        let current = current.into_iter().filter_map(|lane| Lane::try_from(lane).ok()).collect();
        Ok((current, gone.into_iter().collect()))
    }
}

fn address_of(row: &Settlement) -> (RowAddress, i16, i64) {
    let address = match row.place {
        Place::Hot(Some(address)) => address,
        // No row has this address: it is found by its position afterwards.
        _ => RowAddress { block: 0, offset: 0 },
    };
    (address, small(row.lane), row.position)
}
