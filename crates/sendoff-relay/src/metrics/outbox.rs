//! What an outbox holds, by queries that read a bounded number of rows.

use std::collections::BTreeMap;

use sendoff::StoreError;
use sendoff::outbox::{Counts, Inspect, KeyInfo, LaneInfo, Reason, WorkerInfo};

/// No more parked keys are looked at: what waits behind each is counted too.
const PARKED_KEYS_MAX: u32 = 100;

/// Owners lost in a row from which on a lane is worked carefully.
const CRASHES_CAREFUL: u32 = 2;

/// What an outbox holds, as it was when it was read.
#[derive(Debug, Clone, Default)]
pub struct OutboxView {
    pub(super) counts: Counts,
    /// It has lanes and registered workers, and so figures of them.
    pub(super) has_lanes: bool,
    workers: Vec<WorkerInfo>,
    lanes: BTreeMap<String, Vec<LaneInfo>>,
    parked: BTreeMap<String, Vec<KeyInfo>>,
}

impl OutboxView {
    /// Reads it: a handful of queries for each target.
    ///
    /// # Errors
    /// As the store's.
    pub async fn read(inspect: &dyn Inspect) -> Result<Self, StoreError> {
        let counts = inspect.counts().await?;
        if !inspect.has_lanes() {
            return Ok(Self { counts, ..Self::default() });
        }
        let mut view = Self { has_lanes: true, workers: inspect.workers().await?, ..Self::default() };
        for target in &counts.targets {
            let name = &target.target;
            view.lanes.insert(name.clone(), inspect.lanes(name).await?);
            if target.failed > 0 {
                view.parked.insert(name.clone(), inspect.parked_keys(name, PARKED_KEYS_MAX).await?);
            }
        }
        view.counts = counts;
        Ok(view)
    }

    /// The live workers, target by target.
    pub(super) fn workers(&self) -> BTreeMap<&str, u64> {
        let mut live: BTreeMap<&str, u64> =
            self.counts.targets.iter().map(|counts| (counts.target.as_str(), 0)).collect();
        for worker in &self.workers {
            *live.entry(&worker.target).or_default() += u64::from(!worker.expired);
        }
        live
    }

    /// Lanes that nobody has. A lane that no worker has ever seen is not counted.
    pub(super) fn lanes_unowned(&self, target: &str) -> usize {
        self.count_lanes(target, |lane| lane.owner.is_none() || lane.expired)
    }

    pub(super) fn lanes_careful(&self, target: &str) -> usize {
        self.count_lanes(target, |lane| lane.crashes >= CRASHES_CAREFUL)
    }

    fn count_lanes(&self, target: &str, is_so: impl Fn(&LaneInfo) -> bool) -> usize {
        self.lanes.get(target).map_or(0, |lanes| lanes.iter().filter(|lane| is_so(lane)).count())
    }

    /// The parked keys of a target by why they wait, the reasons that none has included.
    pub(super) fn parked_keys(&self, target: &str) -> [(Reason, usize); 4] {
        let parked = self.parked.get(target).map(Vec::as_slice).unwrap_or_default();
        [Reason::Retry, Reason::Behind, Reason::Blocked, Reason::Diverted]
            .map(|reason| (reason, parked.iter().filter(|key| key.reason == reason).count()))
    }
}
