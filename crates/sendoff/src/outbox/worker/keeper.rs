//! Keeps a worker's leases: registers, shares lanes with the others, renews, raises floors.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Inner;
use super::admit::accuse;
use super::share::{Share, shares};
use super::state::State;
use crate::error::StoreError;
use crate::outbox::{Flush, HorizonProbe, Lane, LaneSet, Reason, Settlement, Token};

/// So many deleted rows make it worth finding the horizon again.
const FLOOR_WORTH: u64 = 500;

/// Floors are looked at so often though nothing was deleted.
const FLOOR_CHECK: Duration = Duration::from_secs(5);

/// What the keeper remembers from one tick to the next.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    renewed: Option<Instant>,
    probe: HorizonProbe,
    probe_began: Option<Instant>,
}

/// Ticks until it is dropped with its worker.
pub(super) async fn run(inner: Arc<Inner>, mut keeper: Keeper) {
    let tick = inner.config.tick();
    loop {
        // Woken early when a lane that another worker waits for has become empty, and to end.
        let _ = tokio::time::timeout(tick, inner.lane_emptied.notified()).await;
        if inner.state().ended {
            return;
        }
        let kept = keeper.tick(&inner).await;
        keeper.note(&mut inner.state(), kept.is_ok());
        if let Err(error) = kept {
            tracing::warn!(%error, worker = %inner.member.worker, "the leases could not be kept; trying again");
        }
    }
}

impl Keeper {
    /// Whoever cannot reach the store may have been given up by the others. And when it can be reached again it may not know all that it had confirmed: settlements that did not wait for
    /// the disk, or that a standby did not have. Their events are there again, below where reading begins, and are read again.
    fn note(&mut self, state: &mut State, is_kept: bool) {
        if is_kept && state.suspended {
            self.probe = HorizonProbe::default();
            self.probe_began = None;
            state.forget_readings();
        }
        state.suspended = !is_kept;
    }

    /// One round. Every step can fail alone: what is not renewed in time is no longer handed out.
    pub(super) async fn tick(&mut self, inner: &Inner) -> Result<(), StoreError> {
        let census = inner.store.census(&inner.member).await?;
        inner.state().paused = census.paused;
        if !census.workers.iter().any(|peer| peer.worker == inner.member.worker) {
            inner.store.join(&inner.member).await?;
            // Who lost its registration may have lost its lanes with it.
            self.renewed = None;
            return self.renew(inner).await;
        }
        self.renew(inner).await?;
        keep_shares(inner, &shares(&census.workers, inner.member.worker)).await?;
        settle_accused(inner).await?;
        self.raise_floors(inner).await
    }

    async fn renew(&mut self, inner: &Inner) -> Result<(), StoreError> {
        let is_due = self.renewed.is_none_or(|renewed| renewed.elapsed() >= inner.config.lease / 3);
        if !is_due {
            return Ok(());
        }
        let tokens = inner.state().tokens();
        // Counted from before the request: the database's lease begins later, so it ends later too.
        let before = Instant::now();
        let kept = inner.store.renew(&inner.member, &tokens).await?;
        self.renewed = Some(before);
        let deadline = inner.deadline_from(before);
        let mut state = inner.state();
        let lost: Vec<Token> = tokens.iter().filter(|token| !kept.contains(&token.lane)).copied().collect();
        state.lose(lost);
        for token in tokens {
            if let Some(lane) = state.lane(token) {
                lane.deadline = deadline;
            }
        }
        Ok(())
    }

    async fn raise_floors(&mut self, inner: &Inner) -> Result<(), StoreError> {
        // Now and then in any case: a sequence that was set back shows itself nowhere else.
        let is_due = inner.state().gone() >= FLOOR_WORTH
            || self.probe_began.is_none_or(|began| began.elapsed() >= FLOOR_CHECK);
        if !is_due && !self.probe.is_under_way() {
            return Ok(());
        }
        if !self.probe.is_under_way() {
            self.probe_began = Some(Instant::now());
        }
        if let (Some(horizon), Some(began)) = (inner.store.horizon(&mut self.probe).await?, self.probe_began)
        {
            inner.state().found_horizon(horizon, began);
        }
        let moved = inner.state().floors_to_keep();
        if is_due && !moved.is_empty() {
            inner.store.keep_floors(&inner.member, &moved).await?;
            inner.state().kept_floors(&moved);
        }
        Ok(())
    }
}

/// Gives and takes lanes until it has its shares. Without its baton an exclusive worker has nothing, and asks for nothing else.
async fn keep_shares(inner: &Inner, shares: &[Share]) -> Result<(), StoreError> {
    if let Some(baton) = inner.member.scope.baton().filter(|_| inner.state().stands_by()) {
        let baton = [Share { lanes: LaneSet::one(baton), count: 1 }];
        give_surplus(inner, &baton).await?;
        take_missing(inner, &baton).await?;
        if inner.state().stands_by() {
            return Ok(());
        }
        tracing::info!(worker = %inner.member.worker, scope = %inner.member.scope, "this worker works from now on; other exclusive ones with its lanes stand by");
    }
    give_surplus(inner, shares).await?;
    take_missing(inner, shares).await
}

/// Lanes above the share are not handed out from any more, and go back once nothing of them is in flight: the next owner
/// never meets an event that is under way here.
async fn give_surplus(inner: &Inner, shares: &[Share]) -> Result<(), StoreError> {
    let empty: Vec<Token> = {
        let mut state = inner.state();
        let mut idle_first: Vec<(usize, Lane)> =
            state.lanes.iter().map(|(lane, known)| (known.in_flight.len(), *lane)).collect();
        idle_first.sort_unstable();
        let shared = shares.iter().fold(LaneSet::NONE, |all, share| all.with(share.lanes));
        let rest = Share { lanes: LaneSet::ALL.without(shared), count: 0 };
        for share in shares.iter().chain([&rest]) {
            drain_surplus(&mut state, &idle_first, share);
        }
        let empty = state.lanes.values_mut().filter(|lane| lane.draining && lane.in_flight.is_empty());
        let leave = |lane: &mut super::state::LaneState| {
            lane.leaving = true;
            lane.token
        };
        empty.map(leave).collect()
    };
    if empty.is_empty() {
        return Ok(());
    }
    inner.store.give(&inner.member, &empty).await?;
    let mut state = inner.state();
    for token in &empty {
        if state.lane(*token).is_some() {
            state.lanes.remove(&token.lane);
            state.stats.given += 1;
        }
    }
    Ok(())
}

fn drain_surplus(state: &mut State, idle_first: &[(usize, Lane)], share: &Share) {
    let of_share = |lane: &Lane| share.lanes.contains(*lane);
    let mut staying = state.lanes.iter().filter(|(lane, known)| of_share(lane) && !known.draining).count();
    for (_, number) in idle_first.iter().filter(|(_, lane)| of_share(lane)) {
        let Some(lane) = state.lanes.get_mut(number) else { continue };
        if staying > share.count && !lane.draining {
            lane.draining = true;
            staying -= 1;
        } else if staying < share.count && lane.draining && !lane.leaving {
            // Somebody left: it is wanted here after all.
            lane.draining = false;
            staying += 1;
        }
    }
}

async fn take_missing(inner: &Inner, shares: &[Share]) -> Result<(), StoreError> {
    for share in shares {
        let held = inner.state().lanes.keys().filter(|lane| share.lanes.contains(**lane)).count();
        let missing = u16::try_from(share.count.saturating_sub(held)).unwrap_or(u16::MAX);
        if missing == 0 || inner.state().stopping {
            continue;
        }
        let before = Instant::now();
        let leased = inner.store.take(&inner.member, share.lanes, missing).await?;
        let now = Instant::now();
        inner.state().add(&leased, inner.deadline_from(before), now);
    }
    Ok(())
}

/// Events that their worker was lost with, alone in hand.
async fn settle_accused(inner: &Inner) -> Result<(), StoreError> {
    let accused: Vec<(Token, i64)> =
        inner.state().lanes.values().filter_map(|lane| Some((lane.token, lane.accused?))).collect();
    for (token, position) in accused {
        let Some(settlement) = accusation(inner, token, position).await? else { continue };
        let flush = Flush {
            target: inner.member.target.clone(),
            tokens: vec![token],
            settlements: vec![settlement],
            calm: vec![token.lane],
        };
        let settled = inner.store.settle(&flush).await?;
        inner.state().finish(&flush, &settled, Instant::now());
    }
    Ok(())
}

/// What is to be written about the event that the last owner was lost with. None: it was another that it was lost with.
async fn accusation(inner: &Inner, token: Token, position: i64) -> Result<Option<Settlement>, StoreError> {
    if let Some(known) = inner.state().lane(token).and_then(|lane| lane.accusation.clone()) {
        return Ok(Some(known));
    }
    let found = inner.store.find(&inner.member, token.lane, position).await?;
    // What stands for a diverted key is no event: that one is dead.
    let found = found.filter(|found| found.reason != Some(Reason::Diverted));
    let settlement = found.map(|found| accuse(&found, &inner.config));
    let mut state = inner.state();
    let Some(lane) = state.lane(token) else { return Ok(None) };
    if settlement.is_some() {
        tracing::warn!(position, lane = token.lane, "a worker was lost with this event in hand");
    } else {
        // It was settled before its worker was lost: the culprit is another.
        lane.accused = None;
    }
    lane.accusation.clone_from(&settlement);
    Ok(settlement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::{Leased, WorkerConfig, WorkerId};

    /// A settlement that was confirmed and is lost: its event is there again, below everything that was read.
    #[test]
    fn a_store_that_was_away_is_read_from_the_beginning() {
        let now = Instant::now();
        let mut state = State::new(now, None);
        let token = Token { lane: 3, epoch: 1, worker: WorkerId::generate() };
        state.add(
            &[Leased { token, floor: 3_000, crashes: 0, named: None }],
            now + Duration::from_secs(60),
            now,
        );
        let mut keeper = Keeper { probe_began: Some(now), ..Keeper::default() };
        let above =
            |state: &mut State| state.plan(100, &WorkerConfig::default(), now).unwrap().fetch.lanes[0].above;
        state.found_horizon(4_000, now);
        keeper.note(&mut state, true);
        assert_eq!(above(&mut state), 3_000, "nothing has happened");
        state.fetch_ended();
        keeper.note(&mut state, false);
        assert!(state.plan(100, &WorkerConfig::default(), now).is_none(), "nothing is read while it is away");
        keeper.note(&mut state, true);
        assert_eq!(above(&mut state), 0);
        assert_eq!(
            (state.horizon, keeper.probe_began),
            (None, None),
            "what was known of writers means nothing any more"
        );
    }
}
