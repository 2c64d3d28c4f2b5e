//! The operator's view of an outbox in SQL. The questions are in `counts`, `listing` and `explain`; what changes something is in
//! `redrive`, `cancel` and `purge`.

use async_trait::async_trait;

use super::store::paused_name;
use super::{Arg, SqlDatabase, SqlOutbox};
use crate::error::StoreError;
use crate::event::EventId;
use crate::outbox::{
    COUNT_MAX, Cancelled, Counts, Discard, Explanation, Inspect, KeyInfo, LaneInfo, ListQuery, Listed, Purge,
    Redrive, Redriven, WorkerId, WorkerInfo,
};

#[async_trait]
impl<D: SqlDatabase> Inspect for SqlOutbox<D> {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.count_targets().await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        self.list_state(query).await
    }

    async fn get(&self, id: EventId) -> Result<Option<Listed>, StoreError> {
        self.locate(id).await
    }

    async fn explain(&self, id: EventId) -> Result<Explanation, StoreError> {
        self.explain_event(id).await
    }

    async fn lanes(&self, target: &str) -> Result<Vec<LaneInfo>, StoreError> {
        self.lane_infos(target).await
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        self.worker_infos().await
    }

    async fn parked_keys(&self, target: &str, limit: u32) -> Result<Vec<KeyInfo>, StoreError> {
        self.keys_parked(target, limit).await
    }

    async fn redrive(&self, redrive: &Redrive) -> Result<Redriven, StoreError> {
        self.redrive_selection(redrive).await
    }

    async fn cancel(&self, id: EventId, by: &str) -> Result<Cancelled, StoreError> {
        self.cancel_event(id, by).await
    }

    async fn discard(&self, discard: &Discard) -> Result<u64, StoreError> {
        self.discard_selection(discard).await
    }

    async fn purge(&self, purge: &Purge, batch: u32) -> Result<u64, StoreError> {
        match purge {
            Purge::Published { target, older_than } => self.published.purge(target, *older_than, batch).await,
            Purge::Dead { target, older_than } => self.purge_dead(target, *older_than, batch).await,
        }
    }

    async fn set_paused(&self, target: &str, paused: bool, by: &str) -> Result<(), StoreError> {
        let name = Arg::from(paused_name(target).as_str());
        let (word, template) = if paused {
            ("pause", include_str!("pause.sql"))
        } else {
            ("resume", include_str!("resume.sql"))
        };
        let by_whom = super::operate::cut(by, super::operate::OPERATOR_CHARS_MAX);
        let change = self.templates.fill(template, &[("name", name), ("by", Arg::from(by_whom.as_str()))])?;
        let record = self.operation(by, &format!("{word} target {target}"), 1)?;
        self.write("pause", &[change, record]).await?;
        Ok(())
    }
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn lane_infos(&self, target: &str) -> Result<Vec<LaneInfo>, StoreError> {
        let statement = self.templates.fill(include_str!("lanes.sql"), &[("target", Arg::from(target))])?;
        let rows = self.read("inspect", &statement).await?;
        let covered = self.census_of(target).await?.covered();
        let read = |mut row: super::RowReader| {
            let lane = row.lane()?;
            Ok(LaneInfo {
                lane,
                covered: covered.contains(lane),
                owner: row.optional_uuid("owner")?.map(WorkerId),
                name: row.optional_text("name")?,
                lease_until: row.optional_moment("lease_until")?.map(|until| until.as_micros()),
                expired: row.int("expired")? > 0,
                epoch: row.int("epoch")?,
                floor: row.int("floor")?,
                crashes: row.count("crashes")?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    async fn worker_infos(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        let limit = i64::try_from(COUNT_MAX).unwrap_or(i64::MAX);
        let statement = self.templates.fill(include_str!("workers.sql"), &[("limit", Arg::from(limit))])?;
        let rows = self.read("inspect", &statement).await?;
        let mut notes = self.notes().await?.by_worker;
        let read = |mut row: super::RowReader| {
            let worker = WorkerId(row.uuid("worker")?);
            Ok(WorkerInfo {
                worker,
                sink_down: notes.remove(&worker),
                name: row.text("name")?,
                target: row.text("target")?,
                started_at: row.moment("started_at")?.as_micros(),
                lease_until: row.moment("lease_until")?.as_micros(),
                expired: row.int("expired")? > 0,
                lanes: row.count("lanes")?.into(),
                scope: row.scope()?,
            })
        };
        rows.into_iter().map(read).collect()
    }
}
