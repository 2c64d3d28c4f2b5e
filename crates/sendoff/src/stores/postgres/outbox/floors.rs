//! The horizon, and the floors that it allows: dead rows which a pinned snapshot keeps in the table cost nothing below them.
//!
//! The horizon is found by evidence only. First the sequence's value is read; then who holds the lock that every INSERT takes before it draws its
//! position; when none of those is left, every position up to that value is either visible or will never be.

use sqlx::{AssertSqlSafe, Row as _};

use super::super::errors;
use super::PostgresOutbox;
use super::fetch::small;
use crate::error::StoreError;
use crate::outbox::{HorizonProbe, LaneFloor, Member};

impl PostgresOutbox {
    pub(super) async fn find_horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        let (position, writers) = match &probe.sampled {
            None => (self.position().await?, self.writers().await?),
            Some((position, before)) => {
                let now = self.writers().await?;
                (*position, before.iter().filter(|writer| now.contains(writer)).cloned().collect())
            }
        };
        if writers.is_empty() {
            probe.sampled = None;
            return Ok(Some(position));
        }
        probe.sampled = Some((position, writers));
        Ok(None)
    }

    pub(super) async fn position(&self) -> Result<i64, StoreError> {
        let convert = |error| errors::convert("find horizon", "event", error);
        let query = sqlx::query(AssertSqlSafe(self.statements.horizon_position.as_str()));
        self.fetch_one("find horizon", query).await?.try_get(0).map_err(convert)
    }

    async fn writers(&self) -> Result<Vec<String>, StoreError> {
        let convert = |error| errors::convert("find horizon", "event", error);
        let query = sqlx::query(AssertSqlSafe(self.statements.horizon_writers.as_str()));
        let rows = self.fetch_all("find horizon", query.bind(&self.statements.event)).await?;
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(convert)
    }

    pub(super) async fn write_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        let query = sqlx::query(AssertSqlSafe(self.statements.keep_floors.as_str()))
            .bind(&member.target)
            .bind(lanes.iter().map(|lane| small(lane.token.lane)).collect::<Vec<i16>>())
            .bind(lanes.iter().map(|lane| lane.token.epoch).collect::<Vec<i64>>())
            .bind(lanes.iter().map(|lane| lane.floor).collect::<Vec<i64>>())
            .bind(member.worker.0);
        self.fetch_all("keep floors", query).await?;
        Ok(())
    }
}
