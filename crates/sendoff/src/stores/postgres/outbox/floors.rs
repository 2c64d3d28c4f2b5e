//! Safe floors: where a lane's scan may begin, so that dead rows which a pinned snapshot keeps in the table cost nothing.
//!
//! A floor is raised by evidence only. First the sequence's value is read; then who holds the lock that every INSERT takes before it draws its
//! position; when none of those is left, every position up to that value is either visible or will never be.

use sqlx::{AssertSqlSafe, Row as _};

use super::super::errors;
use super::PostgresOutbox;
use super::fetch::small;
use crate::error::StoreError;
use crate::outbox::{FloorProbe, Lane, LaneFloor, Member};

impl PostgresOutbox {
    pub(super) async fn raise(
        &self,
        member: &Member,
        probe: &mut FloorProbe,
        lanes: &[LaneFloor],
    ) -> Result<Vec<(Lane, i64)>, StoreError> {
        let Some((position, writers)) = probe.sampled.take() else {
            let position = self.position().await?;
            let writers = self.writers().await?;
            if lanes.iter().any(|lane| lane.floor > position) {
                // The sequence was set back: what was below a floor may be used again.
                return self.write_floors(member, lanes, 0).await;
            }
            probe.sampled = Some((position, writers));
            return Ok(Vec::new());
        };
        let now = self.writers().await?;
        if writers.iter().any(|writer| now.contains(writer)) {
            probe.sampled = Some((position, writers));
            return Ok(Vec::new());
        }
        self.write_floors(member, lanes, position).await
    }

    async fn position(&self) -> Result<i64, StoreError> {
        let convert = |error| errors::convert("raise floors", "event", error);
        let query = sqlx::query(AssertSqlSafe(self.statements.floor_position.as_str()));
        self.fetch_one("raise floors", query).await?.try_get(0).map_err(convert)
    }

    async fn writers(&self) -> Result<Vec<String>, StoreError> {
        let convert = |error| errors::convert("raise floors", "event", error);
        let query = sqlx::query(AssertSqlSafe(self.statements.floor_writers.as_str()));
        let rows = self.fetch_all("raise floors", query.bind(&self.statements.event)).await?;
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(convert)
    }

    async fn write_floors(
        &self,
        member: &Member,
        lanes: &[LaneFloor],
        position: i64,
    ) -> Result<Vec<(Lane, i64)>, StoreError> {
        let convert = |error| errors::convert("raise floors", "lane", error);
        let numbers: Vec<i16> = lanes.iter().map(|lane| small(lane.token.lane)).collect();
        let epochs: Vec<i64> = lanes.iter().map(|lane| lane.token.epoch).collect();
        let floors: Vec<i64> = lanes.iter().map(|lane| lane.floor).collect();
        let query = sqlx::query(AssertSqlSafe(self.statements.floor_raise.as_str()))
            .bind(&member.target)
            .bind(numbers)
            .bind(epochs)
            .bind(floors)
            .bind(position)
            .bind(member.worker.0);
        let rows = self.fetch_all("raise floors", query).await?;
        let mut raised = Vec::with_capacity(rows.len());
        for row in rows {
            let lane: i16 = row.try_get(0).map_err(convert)?;
            raised.push((Lane::try_from(lane).unwrap_or_default(), row.try_get(1).map_err(convert)?));
        }
        Ok(raised)
    }
}
