//! Which of the events that were read may be handed out.

use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

use hashbrown::hash_map::EntryRef;

use super::config::{Claimed, WorkerConfig};
use super::floors;
use super::plan::Plan;
use super::state::{InFlight, LaneState, Pace, State, Suspects, behind, diverted, give_up};
use crate::event::Attempts;
use crate::outbox::{
    Cause, Change, Due, Failure, Fetched, Hold, LANES, Lane, LaneFetch, LaneSet, Page, Place, Reason,
    Settlement, Token,
};

/// What comes of a fetch.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// To be handed out.
    pub(super) handed: Vec<Claimed>,
    /// Of those, the ones to write down first.
    pub(super) to_name: Vec<(Token, i64)>,
    /// Events that are moved without being handed out.
    pub(super) moved: Vec<Settlement>,
    /// Lanes that have nothing left of what their last owner was lost with.
    pub(super) calm: Vec<Lane>,
}

/// Looks at each row in turn.
struct Admission<'a> {
    plan: &'a Plan,
    config: &'a WorkerConfig,
    now: Instant,
    pace: Pace,
    admitted: Admitted,
    /// The keys met so far. A key has one lane: it need not be told from the same one in another.
    keys: hashbrown::HashMap<Arc<str>, KeyState>,
}

/// What a fetch has brought of one key so far.
#[derive(Debug, Default)]
struct KeyState {
    /// So many are handed out.
    run: u32,
    /// One was passed over: the rest of this fetch is too.
    closed: bool,
    /// Its parked events are diverted: the marker, and whether any event was left to follow it.
    diverting: Option<(Settlement, bool)>,
}

impl State {
    /// Takes note of what was read and says what of it is handed out: the parked ones first, then each lane's in order.
    pub(super) fn admit(
        &mut self,
        plan: &Plan,
        parked: Vec<Fetched>,
        page: Page,
        config: &WorkerConfig,
        now: Instant,
    ) -> Admitted {
        self.note_suspects(plan, &parked, &page);
        let full = full_lanes(plan, &page);
        // Where the limit was reached, the last key may have more.
        let cut = parked.get(plan.fetch.limit.max(1) as usize - 1).and_then(|last| last.event.key.clone());
        let (ends_in, positions) = (page.ends_in, floors::positions(&page));
        let mut admission = Admission {
            plan,
            config,
            now,
            pace: Pace::Free,
            admitted: Admitted::default(),
            keys: hashbrown::HashMap::new(),
        };
        for row in parked.into_iter().chain(page.events) {
            if !admission.look_at(self, row) {
                break;
            }
        }
        self.pace = admission.pace;
        self.note_reading(plan, ends_in, &positions);
        let mut admitted = admission.admitted;
        // A marker stays due until nothing of its key is parked behind it, as far as that was read.
        let markers = admission.keys.into_values().filter_map(|key| key.diverting);
        let alone = markers.filter(|(_, is_followed)| !is_followed).map(|(marker, _)| marker);
        admitted
            .moved
            .extend(alone.filter(|marker| cut.is_none() || marker.key.as_deref() != cut.as_deref()));
        admitted.calm = self.without_suspects();
        self.reach_further(plan, full, &admitted);
        self.stats.claimed += admitted.handed.len() as u64;
        admitted
    }

    /// The first look at a lane whose owner was lost: what that owner had in hand is among the lowest events.
    fn note_suspects(&mut self, plan: &Plan, parked: &[Fetched], page: &Page) {
        let is_cut = parked.len() >= plan.fetch.limit as usize;
        for lane in plan.fetch.lanes.iter().map(|lane| lane.lane) {
            if page.ends_in == Some(lane) {
                // This lane and those after it were not read to their end.
                break;
            }
            let Some(state) = self.lane(plan.tokens[&lane]) else { continue };
            if matches!(state.suspects, Suspects::Unknown) && plan.parked {
                let of_lane = parked.iter().chain(&page.events).filter(|row| row.event.lane == lane);
                let left = of_lane.map(|row| (row.event.position, row.event.key.clone()));
                let left: HashMap<i64, Option<String>> = left.collect();
                // Nothing seen is no proof that nothing is there, where other lanes' parked events have filled the limit.
                if !(left.is_empty() && is_cut) {
                    state.suspects = Suspects::Left(left);
                }
            }
        }
    }

    /// Lanes of which a full page was read and nothing handed out, though there was room.
    fn reach_further(&mut self, plan: &Plan, full: LaneSet, admitted: &Admitted) {
        let is_filled = admitted.handed.len() >= plan.room;
        self.spread.note(is_filled, !full.is_empty());
        if is_filled {
            return;
        }
        let has_given = |lane: Lane| {
            let handed = admitted.handed.iter().map(|claimed| claimed.event.lane);
            handed.chain(admitted.moved.iter().map(|moved| moved.lane)).any(|given| given == lane)
        };
        for number in full.iter().filter(|lane| !has_given(*lane)) {
            let Some(lane) = self.lane(plan.tokens[&number]) else { continue };
            if !lane.is_careful() && !lane.in_flight.is_empty() {
                lane.reach_further();
            }
        }
    }

    fn without_suspects(&self) -> Vec<Lane> {
        let is_clear = |lane: &LaneState| matches!(&lane.suspects, Suspects::Left(left) if left.is_empty());
        self.lanes.iter().filter(|(_, lane)| is_clear(lane)).map(|(lane, _)| *lane).collect()
    }
}

impl Admission<'_> {
    /// False: there is no room for more.
    fn look_at(&mut self, state: &mut State, row: Fetched) -> bool {
        let Some(token) = self.plan.tokens.get(&row.event.lane) else { return true };
        let is_recent = state.recent.positions.contains(&row.event.position);
        let key_is_recent = row.event.key.as_deref().is_some_and(|key| state.recent.keys.contains(key));
        let Some(lane) = state.lane(*token) else { return true };
        let flying = lane.in_flight.get(&row.event.position);
        if (is_recent && !key_is_recent) || flying.is_some_and(|event| event.is_delivered) {
            return true;
        }
        if is_recent || lane.draining || flying.is_some() {
            self.close(&row);
            return true;
        }
        if self.is_marker(&row) {
            return true;
        }
        if let Some(change) = self.aside(&row) {
            // Never past an earlier one of its key that is under way: that one may come back to where it was, and what was moved would be in front of it.
            let is_delayed = matches!(&change, Change::Park { reason: Reason::Delayed, .. });
            if !key_is_recent && (is_delayed || !self.is_under_way(lane, &row)) {
                self.admitted.moved.push(settlement(&row, change));
            }
            return true;
        }
        if row.hold == Hold::Draining || key_is_recent || self.must_wait(lane, &row) {
            self.close(&row);
            return true;
        }
        if self.admitted.handed.len() == self.plan.room || self.pace == Pace::Alone {
            return false;
        }
        self.hand_out(lane, row);
        true
    }

    /// What is moved rather than handed out.
    fn aside(&mut self, row: &Fetched) -> Option<Change> {
        let attempts = row.event.attempts;
        if let (Some(later), Place::Hot(_)) = (row.later, row.place) {
            return Some(Change::Park {
                reason: Reason::Delayed,
                due: Due::At(later),
                attempts,
                failure: None,
            });
        }
        match row.hold {
            Hold::Held => Some(behind(attempts)),
            // Its time has come while others of its key are on their way: it takes its place among them. Passed over, it would
            // close its key to them as well, for ever.
            Hold::Draining if row.reason == Some(Reason::Delayed) => Some(behind(attempts)),
            Hold::Diverted => Some(diverted(attempts)),
            Hold::Free | Hold::Draining => {
                let key = self.keys.get_mut(row.event.key.as_deref()?)?;
                key.diverting.as_mut()?.1 = true;
                Some(diverted(attempts))
            }
        }
    }

    /// The marker of a diverted key that has come up: what of the key is parked comes after it in this fetch.
    fn is_marker(&mut self, row: &Fetched) -> bool {
        let (Some(Reason::Diverted), Some(key)) = (row.reason, &row.event.key) else { return false };
        let sleep = Change::Park {
            reason: Reason::Diverted,
            due: Due::Never,
            attempts: row.event.attempts,
            failure: None,
        };
        self.keys.entry_ref(key.as_str()).or_default().diverting = Some((settlement(row, sleep), false));
        true
    }

    /// An earlier one of its key was passed over, or is in flight since before this fetch, or enough of them go along.
    fn must_wait(&self, lane: &LaneState, row: &Fetched) -> bool {
        let Some(key) = row.event.key.as_deref() else { return false };
        match self.keys.get(key) {
            Some(known) if known.closed => true,
            Some(known) if known.run > 0 => known.run >= self.config.run,
            _ => lane.is_busy(key),
        }
    }

    /// An earlier one of its key is in flight, or was passed over in this fetch.
    fn is_under_way(&self, lane: &LaneState, row: &Fetched) -> bool {
        row.event.key.as_deref().is_some_and(|key| {
            lane.has_in_flight(key) || self.keys.get(key).is_some_and(|known| known.closed)
        })
    }

    fn close(&mut self, row: &Fetched) {
        let Some(key) = row.event.key.as_deref() else { return };
        let known = self.keys.entry_ref(key).or_default();
        known.closed = true;
        if let Some((_, is_followed)) = &mut known.diverting {
            // It comes back and has to follow then.
            *is_followed = true;
        }
    }

    fn hand_out(&mut self, lane: &mut LaneState, row: Fetched) {
        if let Some(failure) = self.is_over(&row) {
            // After those of its key that are in flight, so that the policy finds it first in line.
            let has_key = row.event.key.is_some();
            if row.event.key.as_deref().is_none_or(|key| !lane.has_in_flight(key)) {
                let change = give_up(self.config.on_exhausted, has_key, row.event.attempts, failure);
                self.admitted.moved.push(settlement(&row, change));
            }
            self.close(&row);
            return;
        }
        let alone = lane.is_careful() || row.event.attempts.crashes > 0;
        let is_first = self.plan.is_first && self.admitted.handed.is_empty();
        if alone && !is_first {
            self.pace = Pace::Emptying;
        }
        let must_wait = if alone { !is_first } else { self.plan.only_alone };
        if must_wait || self.now >= lane.deadline {
            self.close(&row);
            return;
        }
        let key = row.event.key.as_deref().map(|key| self.count_in_run(key));
        lane.start(
            row.event.position,
            InFlight { key, place: row.place, attempts: row.event.attempts, is_delivered: false },
        );
        if alone {
            self.pace = Pace::Alone;
            self.admitted.to_name.push((lane.token, row.event.position));
        }
        self.admitted.handed.push(Claimed { event: row.event, token: lane.token, deadline: lane.deadline });
    }

    /// One more of this key goes along; the key, to be shared by them all.
    fn count_in_run(&mut self, key: &str) -> Arc<str> {
        match self.keys.entry_ref(key) {
            EntryRef::Occupied(mut known) => {
                known.get_mut().run += 1;
                Arc::clone(known.key())
            }
            EntryRef::Vacant(entry) => {
                let known = entry.insert_entry(KeyState { run: 1, ..KeyState::default() });
                Arc::clone(known.key())
            }
        }
    }

    /// Why it is not tried again, if it is not.
    fn is_over(&self, row: &Fetched) -> Option<Failure> {
        if let Some(error) = &row.corrupt {
            return Some(Failure::new(Cause::Corrupt, error));
        }
        let crashes = row.event.attempts.crashes;
        (crashes >= self.config.crashes_max).then(|| {
            Failure::new(Cause::Crash, format!("its worker was lost {crashes} times with this event in hand"))
        })
    }
}

/// Lanes that have more than was read of them.
fn full_lanes(plan: &Plan, page: &Page) -> LaneSet {
    let mut read = [(0_u32, 0_u64); LANES as usize];
    let events = page.events.iter().map(|row| (row.event.lane, row.event.payload.len() as u64));
    for (lane, size) in events.chain(page.gone.iter().map(|(lane, _)| (*lane, 0))) {
        if let Some((count, bytes)) = read.get_mut(usize::from(lane)) {
            *count += 1;
            *bytes += size;
        }
    }
    let is_full = |want: &&LaneFetch| {
        let (count, bytes) = read.get(usize::from(want.lane)).copied().unwrap_or_default();
        count >= want.limit || bytes >= plan.fetch.bytes_per_lane || page.ends_in == Some(want.lane)
    };
    plan.fetch.lanes.iter().filter(is_full).map(|want| want.lane).collect()
}

fn settlement(row: &Fetched, change: Change) -> Settlement {
    Settlement {
        lane: row.event.lane,
        position: row.event.position,
        place: row.place,
        key: row.event.key.as_deref().map(Arc::from),
        change,
    }
}

/// What a crash does to the event that was in hand: one more on its account, and a pause in which a publish that may still be under
/// way ends. Whether it is one too many is found when it is due.
pub(super) fn accuse(found: &Fetched, config: &WorkerConfig) -> Settlement {
    let attempts = found.event.attempts;
    let change = Change::Park {
        reason: Reason::Retry,
        due: Due::In(config.crash_pause),
        attempts: Attempts { crashes: attempts.crashes.saturating_add(1), ..attempts },
        failure: Some(Failure::new(Cause::Crash, "its worker was lost with this event in hand")),
    };
    settlement(found, change)
}
