//! How many events stand where.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::store::paused_name;
use super::{Arg, SqlDatabase, SqlOutbox, list};
use crate::error::StoreError;
use crate::outbox::{COUNT_MAX, Counts, EventState, LANES, Lane, LaneInfo, Reason, TargetCounts};

/// No more targets than this are looked for: they are configured, not made up by events.
const TARGETS_MAX: usize = 1_000;

/// In no lane: a list of values must not be empty.
const NO_LANE: i64 = -1;

/// The lanes of a target by the state of what is in them, each with the position that nothing is at or below.
pub(super) struct LaneStates {
    floors: HashMap<Lane, i64>,
    states: HashMap<Lane, EventState>,
}

impl LaneStates {
    pub(super) fn new(lanes: &[LaneInfo]) -> Self {
        let state = |lane: &LaneInfo| match (lane.owner, lane.expired) {
            (None, _) => EventState::Unprocessed,
            (Some(_), true) => EventState::Abandoned,
            (Some(_), false) => EventState::Processing,
        };
        Self {
            floors: lanes.iter().map(|lane| (lane.lane, lane.floor)).collect(),
            states: lanes.iter().map(|lane| (lane.lane, state(lane))).collect(),
        }
    }

    pub(super) fn floor(&self, lane: Lane) -> i64 {
        self.floors.get(&lane).copied().unwrap_or_default()
    }

    /// The lanes whose events are in this state. A lane that no worker has ever seen is one without an owner.
    pub(super) fn of(&self, state: EventState) -> Vec<Lane> {
        let of = |lane: &Lane| *self.states.get(lane).unwrap_or(&EventState::Unprocessed) == state;
        (0..LANES).filter(of).collect()
    }

    fn list(&self, state: EventState) -> Arg {
        let lanes = self.of(state);
        if lanes.is_empty() { list([NO_LANE]) } else { list(lanes) }
    }
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn count_targets(&self) -> Result<Counts, StoreError> {
        let paused = self.paused_targets().await?;
        let mut targets: BTreeSet<String> = paused.iter().cloned().collect();
        targets.extend(self.targets().await?);
        let mut counts = Counts::default();
        for target in targets {
            let is_paused = paused.contains(&target);
            counts.targets.push(self.count_target(target, is_paused).await?);
        }
        Ok(counts)
    }

    async fn paused_targets(&self) -> Result<HashSet<String>, StoreError> {
        let statement = self.templates.fill(include_str!("paused_targets.sql"), &[])?;
        let mut paused = HashSet::new();
        for mut row in self.read("inspect", &statement).await? {
            let name = row.text("name")?;
            paused.extend(name.strip_prefix(&paused_name("")).map(str::to_owned));
        }
        Ok(paused)
    }

    /// From one target's name to the next: DISTINCT would read every event.
    async fn targets(&self) -> Result<Vec<String>, StoreError> {
        let mut targets: Vec<String> = Vec::new();
        while targets.len() < TARGETS_MAX {
            let after = targets.last().map_or("", String::as_str);
            let statement =
                self.templates.fill(include_str!("next_target.sql"), &[("after", Arg::from(after))])?;
            let Some(mut row) = self.read("inspect", &statement).await?.pop() else { break };
            let Some(target) = row.optional_text("target")? else { break };
            targets.push(target);
        }
        Ok(targets)
    }

    async fn count_target(&self, target: String, paused: bool) -> Result<TargetCounts, StoreError> {
        let lanes = LaneStates::new(&self.lane_infos(&target).await?);
        let statement = self.templates.fill(
            include_str!("counts.sql"),
            &[
                ("target", Arg::from(target.as_str())),
                ("free", lanes.list(EventState::Unprocessed)),
                ("leased", lanes.list(EventState::Processing)),
                ("expired", lanes.list(EventState::Abandoned)),
                ("limit", count_max()),
            ],
        )?;
        let mut counts = TargetCounts { paused, ..TargetCounts::default() };
        if let Some(mut row) = self.read("inspect", &statement).await?.pop() {
            let mut count = |column| Ok::<u64, StoreError>(row.int(column)?.unsigned_abs());
            counts.unprocessed = count("free")?;
            counts.processing = count("leased")?;
            counts.abandoned = count("expired")?;
            counts.unprocessed = (counts.unprocessed + count("later")?).min(COUNT_MAX);
            counts.failed = count("failed")?;
            counts.dead = count("dead")?;
            counts.published = count("published")?;
        }
        counts.oldest = self.oldest(&target, &lanes).await?;
        counts.target = target;
        Ok(counts)
    }

    async fn oldest(&self, target: &str, lanes: &LaneStates) -> Result<Option<Duration>, StoreError> {
        let in_lanes = (0..LANES).map(|lane| {
            vec![
                ("target", Arg::from(target)),
                ("lane", Arg::from(lane)),
                ("above", Arg::from(lanes.floor(lane))),
            ]
        });
        let of_reasons = [Reason::Delayed, Reason::Retry, Reason::Behind, Reason::Blocked]
            .map(|reason| vec![("target", Arg::from(target)), ("reason", Arg::from(reason.word()))]);
        let statement = self.templates.fill(
            include_str!("oldest.sql"),
            &[
                ("lanes", Arg::Union(include_str!("oldest_in_lane.sql"), in_lanes.collect())),
                ("reasons", Arg::Union(include_str!("oldest_of_reason.sql"), of_reasons.into())),
            ],
        )?;
        let Some(mut row) = self.read("inspect", &statement).await?.pop() else { return Ok(None) };
        let now = row.moment("now")?;
        let oldest = row.optional_moment("oldest")?;
        let age = oldest.map(|oldest| now.as_micros().saturating_sub(oldest.as_micros()));
        Ok(age.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or_default())))
    }
}

/// How far is counted.
pub(super) fn count_max() -> Arg {
    Arg::from(i64::try_from(COUNT_MAX).unwrap_or(i64::MAX))
}
