//! What a worker knows: its lanes, and what of them is in flight. No store and no clock is asked here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::changes::change;
use super::config::{OnExhausted, Outcome, Receipt, Stats, Summary};
use super::floors::Reading;
use super::followers::Followers;
use super::plan::Spread;
use crate::event::Attempts;
use crate::outbox::{Change, Due, Flush, Lane, LaneSet, Leased, Place, Reason, Settled, Settlement, Token};

/// An idle lane's parked events are looked at so often, for those that an operator redrives.
pub(super) const PARKED_POLL: Duration = Duration::from_secs(1);

/// From so many crashes in a row on a lane is worked carefully.
const CRASHES_CAREFUL: u32 = 2;

/// How much further a lane is read at first if all that was read has to wait.
const REACH_MIN: u32 = 200;

/// How much further a lane is read at most: memory is bounded, and so is how far a key can look past another.
const REACH_MAX: u32 = 10_000;

/// An event in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) key: Option<Arc<str>>,
    pub(super) place: Place,
    pub(super) attempts: Attempts,
    /// It is published, and its settlement on the way: the next of its key may go.
    pub(super) is_delivered: bool,
}

/// What of a key is in flight.
#[derive(Debug, Default)]
struct KeyInFlight {
    all: u32,
    undelivered: u32,
}

/// What the lane's last owner was lost with is among these.
#[derive(Debug)]
pub(super) enum Suspects {
    /// Nobody was lost, or the lane got past it.
    None,
    /// Not yet looked.
    Unknown,
    /// These positions are left of those that were there, with their keys.
    Left(HashMap<i64, Option<String>>),
}

/// A lane that this worker has.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) token: Token,
    /// Nothing of it is at or below.
    pub(super) floor: i64,
    /// The floor that the store keeps for who has the lane next.
    pub(super) kept_floor: i64,
    pub(super) reading: Reading,
    pub(super) since: Instant,
    /// By this process's monotonic clock: nothing is handed out after it.
    pub(super) deadline: Instant,
    /// It is to go to another worker once nothing of it is in flight.
    pub(super) draining: bool,
    /// The store was asked to take it back, and may have done so though its answer was lost.
    pub(super) leaving: bool,
    crashes: u32,
    pub(super) suspects: Suspects,
    /// The last owner was lost with this one event in hand; nothing is handed out before that is settled.
    pub(super) accused: Option<i64>,
    /// What is written about that. Decided once: an answer may be lost, and a crash counts once.
    pub(super) accusation: Option<Settlement>,
    pub(super) in_flight: hashbrown::HashMap<i64, InFlight>,
    keys: hashbrown::HashMap<Arc<str>, KeyInFlight>,
    /// What was read and comes after those in flight.
    pub(super) followers: Followers,
    /// Rows deleted since the horizon was found.
    pub(super) gone: u64,
    /// So many rows more are read: what was read last was all of keys that have to wait.
    pub(super) reach: u32,
}

impl LaneState {
    fn new(leased: &Leased, deadline: Instant, now: Instant) -> Self {
        Self {
            token: leased.token,
            floor: leased.floor,
            kept_floor: leased.floor,
            reading: Reading::default(),
            since: now,
            deadline,
            draining: false,
            leaving: false,
            crashes: leased.crashes,
            suspects: if leased.crashes > 0 { Suspects::Unknown } else { Suspects::None },
            accused: leased.named,
            accusation: None,
            in_flight: hashbrown::HashMap::new(),
            keys: hashbrown::HashMap::new(),
            followers: Followers::default(),
            gone: 0,
            reach: 0,
        }
    }

    /// Its events go alone, and each is written down.
    pub(super) fn is_careful(&self) -> bool {
        self.crashes >= CRASHES_CAREFUL && !matches!(self.suspects, Suspects::None)
    }

    pub(super) fn is_usable(&self, now: Instant) -> bool {
        now < self.deadline && !self.draining && self.accused.is_none()
    }

    pub(super) fn start(&mut self, position: i64, event: InFlight) {
        if let Some(key) = &event.key {
            let of_key = self.keys.entry(Arc::clone(key)).or_default();
            of_key.all += 1;
            of_key.undelivered += 1;
        }
        self.in_flight.insert(position, event);
    }

    /// It is published. One that was parked keeps its key all the same: what waits behind it comes up by its settlement.
    fn delivered(&mut self, position: i64) {
        let Some(event) = self.in_flight.get_mut(&position) else { return };
        if event.is_delivered || !event.place.is_hot() {
            return;
        }
        event.is_delivered = true;
        if let Some(key) = &event.key
            && let Some(of_key) = self.keys.get_mut(key)
        {
            of_key.undelivered -= 1;
            if of_key.undelivered == 0 {
                self.followers.free(key);
            }
        }
    }

    /// One of this key is in flight, or about to be, and may come back to where it was.
    pub(super) fn has_in_flight(&self, key: &str) -> bool {
        self.keys.contains_key(key) || self.followers.has_key(key)
    }

    /// One of this key is in flight, and what became of it is not known.
    pub(super) fn is_busy(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|of_key| of_key.undelivered > 0)
    }

    fn end(&mut self, position: i64) {
        let Some(event) = self.in_flight.remove(&position) else { return };
        if let Some(key) = event.key
            && let Some(of_key) = self.keys.get_mut(&key)
        {
            of_key.all -= 1;
            of_key.undelivered -= u32::from(!event.is_delivered);
            if of_key.undelivered == 0 && !event.is_delivered {
                self.followers.free(&key);
            }
            if of_key.all == 0 {
                self.keys.remove(&key);
            }
        }
        if self.in_flight.is_empty() {
            self.reach = 0;
        }
    }

    /// Reads further: what one key has in the lane must not hold up the others.
    pub(super) fn reach_further(&mut self) {
        self.reach = (self.reach * 2).clamp(REACH_MIN, REACH_MAX);
    }

    /// The culprit is found, or there was none.
    pub(super) fn forget_crashes(&mut self) {
        self.crashes = 0;
        self.suspects = Suspects::None;
        self.accused = None;
        self.accusation = None;
    }
}

/// How much of a worker's may be in flight. A crash takes all of it along: an event that may be the cause goes alone, or others would be
/// accused with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Up to the window.
    Free,
    /// Nothing more, until all is settled and one can go alone.
    Emptying,
    /// One, and nothing beside it.
    Alone,
}

/// What was settled while a fetch was under way: it may still see it.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pub(super) positions: hashbrown::HashSet<i64>,
    /// How they stand may have changed.
    pub(super) keys: hashbrown::HashSet<Arc<str>>,
    pub(super) put_back: Vec<(Lane, i64)>,
}

/// All that a worker knows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) lanes: BTreeMap<Lane, LaneState>,
    /// Without this lane it may hand out from no other: somebody else works.
    pub(super) baton: Option<Lane>,
    pub(super) paused: bool,
    /// The leases could not be kept the last time.
    pub(super) suspended: bool,
    pub(super) stopping: bool,
    pub(super) pace: Pace,
    /// Its keeper is to end.
    pub(super) ended: bool,
    pub(super) stats: Stats,
    pub(super) rotation: usize,
    pub(super) spread: Spread,
    /// No event can turn up at or below it any more.
    pub(super) horizon: Option<i64>,
    /// So often floors were reset, since positions had been set back or the store had been away.
    pub(super) floor_resets: u64,
    pub(super) parked_poll: Instant,
    /// The last plan was for all lanes; the next is for those that have to be read further, if there are any.
    pub(super) was_wide: bool,
    pub(super) fetching: bool,
    pub(super) recent: Recent,
}

impl State {
    pub(super) fn new(now: Instant, baton: Option<Lane>) -> Self {
        Self {
            lanes: BTreeMap::new(),
            baton,
            paused: false,
            suspended: false,
            stopping: false,
            pace: Pace::Free,
            ended: false,
            stats: Stats::default(),
            rotation: 0,
            spread: Spread::default(),
            horizon: None,
            floor_resets: 0,
            parked_poll: now,
            was_wide: false,
            fetching: false,
            recent: Recent::default(),
        }
    }

    pub(super) fn tokens(&self) -> Vec<Token> {
        self.lanes.values().map(|lane| lane.token).collect()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lanes.values().map(|lane| lane.in_flight.len()).sum()
    }

    pub(super) fn add(&mut self, leased: &[Leased], deadline: Instant, now: Instant) {
        let deadline = self.within_baton(deadline);
        for lane in leased {
            self.lanes.insert(lane.token.lane, LaneState::new(lane, deadline, now));
        }
        self.stats.taken += leased.len() as u64;
        if !leased.is_empty() {
            self.parked_poll = now;
        }
    }

    /// Forgets lanes that others have. What of them is in flight is theirs now.
    pub(super) fn lose(&mut self, lanes: impl IntoIterator<Item = Token>) {
        for token in lanes {
            if self.lanes.get(&token.lane).is_some_and(|lane| lane.token == token) {
                self.lanes.remove(&token.lane);
                self.stats.lost += 1;
            }
        }
        self.drain_without_baton();
    }

    /// The lane, if it is still held under the same lease.
    pub(super) fn lane(&mut self, token: Token) -> Option<&mut LaneState> {
        self.lanes.get_mut(&token.lane).filter(|lane| lane.token == token)
    }

    pub(super) fn fetch_ended(&mut self) {
        self.fetching = false;
    }

    /// The parked events are looked at again by then.
    pub(super) fn poll_parked_in(&mut self, now: Instant, wait: Duration) {
        self.parked_poll = self.parked_poll.min(now + wait);
    }

    pub(super) fn parked_polled(&mut self, now: Instant, next_due: Option<Duration>, found: bool) {
        let wait = if found { Duration::ZERO } else { next_due.unwrap_or(PARKED_POLL).min(PARKED_POLL) };
        self.poll_parked_in(now, wait);
    }

    /// From what was decided to what is written. What is not in flight any more is counted as stale.
    pub(super) fn prepare(
        &mut self,
        target: &str,
        outcomes: &[(Receipt, Outcome)],
        policy: OnExhausted,
    ) -> (Flush, Vec<Receipt>, Summary) {
        let mut sorted: Vec<&(Receipt, Outcome)> = outcomes.iter().collect();
        sorted.sort_unstable_by_key(|(receipt, _)| receipt.position);
        let mut summary = Summary::default();
        let mut settlements = Vec::with_capacity(sorted.len());
        let mut released = Vec::new();
        let held = self.held_by(&sorted, policy);
        for (receipt, outcome) in sorted {
            let Receipt { token, position } = *receipt;
            let Some(event) = self.flying(receipt) else {
                summary.stale += 1;
                continue;
            };
            let key = event.key.as_deref();
            let is_behind = key.is_some_and(|key| held.contains(&(token.lane, key)));
            let Some(change) = change(event, outcome, policy, is_behind) else {
                released.push(*receipt);
                continue;
            };
            settlements.push(Settlement {
                lane: token.lane,
                position,
                place: event.place,
                key: event.key.clone(),
                change,
            });
        }
        let lanes: LaneSet = settlements.iter().map(|settlement| settlement.lane).collect();
        let tokens = lanes.iter().filter_map(|lane| Some(self.lanes.get(&lane)?.token)).collect();
        let calm = self.calmed_by(&settlements);
        (Flush { target: target.to_owned(), tokens, settlements, calm }, released, summary)
    }

    fn flying(&self, receipt: &Receipt) -> Option<&InFlight> {
        let lane = self.lanes.get(&receipt.token.lane).filter(|lane| lane.token == receipt.token)?;
        lane.in_flight.get(&receipt.position)
    }

    /// The keys of which one has to wait now. The rest of their runs waits with it, whatever its positions: a delayed event goes before lower ones that
    /// came up with it.
    fn held_by(&self, outcomes: &[&(Receipt, Outcome)], policy: OnExhausted) -> HashSet<(Lane, &str)> {
        let holds = |outcome: &Outcome| match outcome {
            Outcome::Retry { .. } => true,
            Outcome::GiveUp { .. } => policy == OnExhausted::Block,
            Outcome::Published | Outcome::Release => false,
        };
        let held = outcomes.iter().filter(|(_, outcome)| holds(outcome));
        held.filter_map(|(receipt, _)| Some((receipt.token.lane, self.flying(receipt)?.key.as_deref()?)))
            .collect()
    }

    /// The lanes that these settlements bring past what their last owner was lost with.
    fn calmed_by(&self, settlements: &[Settlement]) -> Vec<Lane> {
        let is_calmed = |(lane, state): &(&Lane, &LaneState)| {
            let Suspects::Left(left) = &state.suspects else { return false };
            let of_lane = settlements.iter().filter(|settlement| settlement.lane == **lane);
            let settled: HashSet<i64> = of_lane.map(|settlement| settlement.position).collect();
            !settled.is_empty() && left.keys().all(|left| settled.contains(left))
        };
        self.lanes.iter().filter(is_calmed).map(|(lane, _)| *lane).collect()
    }

    /// Takes note of what was written.
    pub(super) fn finish(&mut self, flush: &Flush, settled: &Settled, now: Instant) -> Summary {
        let mut summary = Summary::default();
        for settlement in &flush.settlements {
            if settled.stale.contains(&settlement.lane) {
                summary.stale += 1;
                continue;
            }
            self.settled(settlement, now);
            if settled.missing.contains(&settlement.position) {
                summary.missing += 1;
                // Gone, or not to be settled so.
                self.put_back(settlement.lane, settlement.position);
            } else {
                summary.applied += 1;
            }
        }
        let token_of = |lane: &Lane| flush.tokens.iter().find(|token| token.lane == *lane).copied();
        self.lose(settled.stale.iter().filter_map(token_of).collect::<Vec<_>>());
        for lane in flush.calm.iter().filter(|lane| !settled.stale.contains(lane)) {
            if let Some(lane) = self.lanes.get_mut(lane) {
                lane.forget_crashes();
            }
        }
        self.stats.applied += summary.applied as u64;
        self.stats.stale += summary.stale as u64;
        self.stats.missing += summary.missing as u64;
        summary
    }

    fn settled(&mut self, settlement: &Settlement, now: Instant) {
        let stays_free = settlement.change == Change::Publish && settlement.place.is_hot();
        self.end(settlement.lane, settlement.position, stays_free);
        let wait = match &settlement.change {
            Change::Park { due: Due::In(wait), .. } => Some(*wait),
            // How long that is, the store says with the next look.
            Change::Park { due: Due::At(_), .. } => Some(Duration::ZERO),
            // What waited behind it may be due now.
            _ if settlement.place == Place::Parked => Some(Duration::ZERO),
            Change::Bury { diverts: true, .. } => Some(Duration::ZERO),
            _ => None,
        };
        if let Some(wait) = wait {
            self.poll_parked_in(now, wait);
        }
        let Some(lane) = self.lanes.get_mut(&settlement.lane) else { return };
        lane.gone += u64::from(settlement.place.is_hot());
        if let Suspects::Left(left) = &mut lane.suspects {
            left.remove(&settlement.position);
            // What has to wait for it now was not what the worker was lost with.
            let waits =
                matches!(settlement.change, Change::Park { reason: Reason::Retry | Reason::Blocked, .. });
            left.retain(|_, key| !waits || key.is_none() || key.as_deref() != settlement.key.as_deref());
        }
    }

    /// It is published, and will be settled so.
    pub(super) fn delivered(&mut self, receipt: &Receipt) {
        if let Some(lane) = self.lane(receipt.token) {
            lane.delivered(receipt.position);
        }
    }

    /// It is not in flight any more. Its key stays free: what a fetch has seen of the key still holds.
    fn end(&mut self, number: Lane, position: i64, stays_free: bool) {
        let Some(lane) = self.lanes.get_mut(&number) else { return };
        let event = lane.in_flight.get(&position).filter(|_| !stays_free);
        let key = event.and_then(|event| event.key.clone());
        lane.end(position);
        if let Some(key) = &key {
            self.give_up_followers(number, key);
        }
        if self.fetching {
            self.recent.positions.insert(position);
            self.recent.keys.extend(key);
        }
    }

    /// It is as if it had not been handed out.
    pub(super) fn release(&mut self, token: Token, position: i64) {
        self.end(token.lane, position, false);
        self.put_back(token.lane, position);
    }

    /// It may be there still, and is to be read again.
    pub(super) fn put_back(&mut self, number: Lane, position: i64) {
        if let Some(lane) = self.lanes.get_mut(&number) {
            lane.reading.put_back(position);
            if self.fetching {
                self.recent.put_back.push((number, position));
            }
        }
    }
}
