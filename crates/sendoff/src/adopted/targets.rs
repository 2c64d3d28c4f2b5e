//! An adopted table target by target: what a relay claims from, and an operator looks at.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::inspect::Listing;
use super::source::Adopted;
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::{Event, EventId};
use crate::outbox::{
    COUNT_MAX, Cancelled, Counts, Discard, Engine, EventState, Explanation, Inspect, KeyInfo, LaneInfo,
    ListQuery, Listed, Purge, Redrive, Redriven, Source, TargetCounts, WorkerConfig, WorkerInfo,
};
use async_trait::async_trait;

/// The rows of an adopted table, by the target that they are for.
///
/// Operators see how many rows stand where, and which. What only sendoff's own outbox has (lanes, registered workers, parked keys) is empty; what would change
/// rows is refused: they are the host's.
#[derive(Debug, Clone)]
pub struct Targets {
    table: String,
    rows: BTreeMap<String, Adopted>,
}

impl Targets {
    /// These targets, each with its rows of `table`.
    pub fn new(table: &str, rows: impl IntoIterator<Item = (String, Adopted)>) -> Self {
        Self { table: table.to_owned(), rows: rows.into_iter().collect() }
    }

    /// The rows of a target.
    ///
    /// # Errors
    /// `Rejected` if there is no such target.
    pub fn target(&self, name: &str) -> Result<&Adopted, StoreError> {
        self.rows.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.rows.keys().map(String::as_str).collect();
            let detail = format!("there is no target `{name}` here; there are: {}", known.join(", "));
            StoreError::rejected("find target", &self.table, detail)
        })
    }

    fn refuse<T>(&self, op: &'static str, detail: &str) -> Result<T, StoreError> {
        let detail = format!("its rows are the host's own, and {detail}");
        Err(StoreError::rejected(op, &self.table, detail))
    }
}

/// How long ago that was. Only ever shown: this process's clock is good enough.
fn age(at: Timestamp) -> Duration {
    let now = Timestamp::from(SystemTime::now()).as_micros();
    Duration::from_micros(u64::try_from(now.saturating_sub(at.as_micros())).unwrap_or_default())
}

fn listed(target: &str, state: EventState, listing: Listing) -> Option<Listed> {
    let event = Event { target: target.to_owned(), ..listing.event.ok()? };
    Some(Listed { event, state, reason: None, due_at: listing.due, failure: None, since: None })
}

#[async_trait]
impl Source for Targets {
    async fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError> {
        self.target(&config.target)?.start(config).await
    }
}

#[async_trait]
impl Inspect for Targets {
    fn has_lanes(&self) -> bool {
        false
    }

    async fn ping(&self) -> Result<(), StoreError> {
        match self.rows.values().next() {
            Some(rows) => rows.counted(EventState::Processing, 1).await.map(drop),
            None => Ok(()),
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let mut targets = Vec::with_capacity(self.rows.len());
        for (target, rows) in &self.rows {
            let count = |state| rows.counted(state, u32::try_from(COUNT_MAX).unwrap_or(u32::MAX));
            targets.push(TargetCounts {
                target: target.clone(),
                unprocessed: count(EventState::Unprocessed).await?,
                processing: count(EventState::Processing).await?,
                failed: count(EventState::Failed).await?,
                abandoned: count(EventState::Abandoned).await?,
                dead: count(EventState::Dead).await?,
                published: count(EventState::Published).await?,
                oldest: rows.oldest().await?.map(age),
                paused: false,
            });
        }
        Ok(Counts { targets })
    }

    /// The first rows of a state in the table's own order; those that cannot be read are left out ([`Adopted::standing`] has them).
    async fn list(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        if query.after > 0 {
            return self.refuse("list", "have no position to go on behind: ask for more at once");
        }
        let rows = self.target(&query.target)?.standing(query.state, query.limit).await?;
        Ok(rows.into_iter().filter_map(|row| listed(&query.target, query.state, row)).collect())
    }

    /// Only where the host's own id is a UUID: others cannot be found by the id that is made of them.
    async fn get(&self, id: EventId) -> Result<Option<Listed>, StoreError> {
        for (target, rows) in &self.rows {
            for state in EventState::ALL {
                if let Some(row) = rows.find(id.0, state).await? {
                    return Ok(listed(target, state, row));
                }
            }
        }
        Ok(None)
    }

    async fn explain(&self, _id: EventId) -> Result<Explanation, StoreError> {
        self.refuse("explain", "have no lanes that could be explained; `show` has where one stands")
    }

    async fn lanes(&self, _target: &str) -> Result<Vec<LaneInfo>, StoreError> {
        Ok(Vec::new())
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        Ok(Vec::new())
    }

    async fn parked_keys(&self, _target: &str, _limit: u32) -> Result<Vec<KeyInfo>, StoreError> {
        Ok(Vec::new())
    }

    async fn redrive(&self, _redrive: &Redrive) -> Result<Redriven, StoreError> {
        self.refuse("redrive", "only it may set a dead one back: to its word for pending, with attempts of 0")
    }

    async fn cancel(&self, _id: EventId, _by: &str) -> Result<Cancelled, StoreError> {
        self.refuse("cancel", "only it may take one out")
    }

    async fn discard(&self, _discard: &Discard) -> Result<u64, StoreError> {
        self.refuse("discard", "only it may delete them")
    }

    async fn purge(&self, _purge: &Purge, _batch: u32) -> Result<u64, StoreError> {
        self.refuse("purge", "only it may delete them")
    }

    async fn set_paused(&self, _target: &str, _paused: bool, _by: &str) -> Result<(), StoreError> {
        self.refuse("pause", "there is nothing to write it down in: stop the relay instead")
    }
}
