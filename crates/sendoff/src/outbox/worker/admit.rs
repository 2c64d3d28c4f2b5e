//! Which of the events that were read may be handed out.

use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

use hashbrown::hash_map::EntryRef;

use super::changes::{behind, diverted, give_up};
use super::config::{Claimed, WorkerConfig};
use super::floors;
use super::plan::Plan;
use super::state::{InFlight, LaneState, Pace, State, Suspects};
use crate::event::Attempts;
use crate::outbox::{
    Cause, Change, Due, Failure, Fetched, Hold, LANES, Lane, LaneFetch, LaneSet, Page, ParkedFetch, Place,
    Reason, Settlement, Token,
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
    /// The lane of each that is kept until its turn comes.
    kept: Vec<Lane>,
}

/// Looks at each row in turn.
struct Admission<'a> {
    plan: &'a Plan,
    config: &'a WorkerConfig,
    now: Instant,
    /// Lanes where something parked is due.
    due: LaneSet,
    pace: Pace,
    admitted: Admitted,
    /// The keys met so far. A key has one lane: it need not be told from the same one in another.
    keys: hashbrown::HashMap<Arc<str>, KeyState>,
}

/// Whether an event may go.
enum Turn {
    Now,
    /// Once those of its key that are in flight are delivered.
    Next,
    /// Not with this fetch.
    Never,
}

/// What a fetch has brought of one key so far.
#[derive(Debug, Default)]
struct KeyState {
    /// So many are handed out.
    run: u32,
    /// One was passed over: the rest of this fetch is too.
    closed: bool,
    /// One comes after those in flight: so does the rest.
    follows: bool,
    /// Its parked events are diverted: the marker, and whether any event was left to follow it.
    diverting: Option<(Settlement, bool)>,
}

impl State {
    /// Takes note of what was read and says what of it is handed out: the parked ones first, then each lane's in order.
    pub(super) fn admit(
        &mut self,
        plan: &Plan,
        parked: ParkedFetch,
        page: Page,
        config: &WorkerConfig,
        now: Instant,
    ) -> Admitted {
        let ParkedFetch { events: parked, due, .. } = parked;
        self.note_suspects(plan, &parked, &page);
        let full = full_lanes(plan, &page);
        // Where the limit was reached, the last key may have more.
        let cut = parked.get(plan.fetch.limit.max(1) as usize - 1).and_then(|last| last.event.key.clone());
        let (ends_in, positions) = (page.ends_in, floors::positions(&page));
        let mut admission = Admission {
            plan,
            config,
            now,
            due,
            pace: Pace::Free,
            admitted: Admitted::default(),
            keys: hashbrown::HashMap::new(),
        };
        admission.give_up_followers(self);
        if parked.into_iter().all(|row| admission.look_at(self, row)) {
            // As many as the page was asked to leave room for; what was freed since then goes along if there is room after it.
            let most = admission.admitted.handed.len() + plan.ready;
            admission.hand_out_followers(self, most.min(plan.room));
            if page.events.into_iter().all(|row| admission.look_at(self, row)) {
                admission.hand_out_followers(self, plan.room);
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
        let is_filled = admitted.handed.len() + admitted.kept.len() >= plan.room;
        self.spread.note(is_filled, !full.is_empty());
        if is_filled {
            return;
        }
        let has_given = |lane: Lane| {
            let handed = admitted.handed.iter().map(|claimed| claimed.event.lane);
            let moved = admitted.moved.iter().map(|moved| moved.lane);
            handed.chain(moved).chain(admitted.kept.iter().copied()).any(|given| given == lane)
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
        let is_known = flying.is_some() || lane.followers.contains(row.event.position);
        if is_known && row.hold == Hold::Free && !is_recent && !key_is_recent && !lane.draining {
            self.follow(&row);
            return true;
        }
        if is_recent || lane.draining || is_known {
            self.close(&row);
            if row.hold != Hold::Free {
                // They were read when it was free.
                state.give_up_followers(row.event.lane, row.event.key.as_deref().unwrap_or_default());
            }
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
        let turn = match row.hold == Hold::Draining || key_is_recent {
            true => Turn::Never,
            false => self.turn(lane, &row),
        };
        if matches!(turn, Turn::Never) {
            self.close(&row);
            return true;
        }
        let is_full = self.admitted.handed.len() + self.admitted.kept.len() == self.plan.room;
        if is_full || self.pace == Pace::Alone {
            return false;
        }
        match turn {
            Turn::Now => self.hand_out(lane, row),
            Turn::Next | Turn::Never => self.keep(state, row),
        }
        true
    }

    /// Something parked came up in these lanes, maybe what an operator has redriven: nothing of its key that was kept may go before it. All are read again.
    fn give_up_followers(&mut self, state: &mut State) {
        for number in self.due.iter() {
            for key in state.give_up_lane_followers(number) {
                self.keys.entry(key).or_default().closed = true;
            }
        }
    }

    /// What was kept and whose turn has come, as nothing of its key is parked that could go, until so many are handed out.
    fn hand_out_followers(&mut self, state: &mut State, most: usize) {
        if !self.plan.parked || self.plan.only_alone || self.pace != Pace::Free {
            return;
        }
        for want in &self.plan.fetch.lanes {
            if let Some(lane) =
                state.lane(self.plan.tokens[&want.lane]).filter(|lane| lane.is_usable(self.now))
            {
                lane.hand_out_followers(most, self.config.run, &mut self.admitted.handed);
            }
        }
    }

    /// Keeps an event for its turn, if it can be kept.
    fn keep(&mut self, state: &mut State, row: Fetched) {
        self.follow(&row);
        let number = row.event.lane;
        let Some(lane) = state.lanes.get(&number) else { return };
        let is_plain = row.place.is_hot() && row.corrupt.is_none();
        let may_stay = is_plain && !lane.is_careful() && !self.plan.only_alone && !self.due.contains(number);
        let key = row.event.key.clone().unwrap_or_default();
        let has_after = lane.followers.has_after(&key, row.event.position);
        if may_stay && state.keep_follower(number, row, self.config) {
            self.admitted.kept.push(number);
            return;
        }
        // They must not go before it.
        if has_after {
            state.give_up_followers(number, &key);
        }
        self.keys.entry_ref(key.as_str()).or_default().closed = true;
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

    /// Whether an earlier one of its key was passed over, or is in flight since before this fetch, or enough of them go along.
    fn turn(&self, lane: &LaneState, row: &Fetched) -> Turn {
        let Some(key) = row.event.key.as_deref() else { return Turn::Now };
        let is_next = match self.keys.get(key) {
            Some(known) if known.closed => return Turn::Never,
            Some(known) if known.follows => true,
            Some(known) if known.run > 0 => known.run >= self.config.run,
            _ => lane.is_busy(key) || lane.followers.has_key(key),
        };
        if is_next { Turn::Next } else { Turn::Now }
    }

    /// An earlier one of its key is in flight, or was passed over in this fetch.
    fn is_under_way(&self, lane: &LaneState, row: &Fetched) -> bool {
        row.event.key.as_deref().is_some_and(|key| {
            lane.has_in_flight(key) || self.keys.get(key).is_some_and(|known| known.closed || known.follows)
        })
    }

    fn close(&mut self, row: &Fetched) {
        if let Some(known) = self.wait(row) {
            known.closed = true;
        }
    }

    fn follow(&mut self, row: &Fetched) {
        if let Some(known) = self.wait(row) {
            known.follows = true;
        }
    }

    /// It does not go along.
    fn wait(&mut self, row: &Fetched) -> Option<&mut KeyState> {
        let known = self.keys.entry_ref(row.event.key.as_deref()?).or_default();
        if let Some((_, is_followed)) = &mut known.diverting {
            // It comes back and has to follow then.
            *is_followed = true;
        }
        Some(known)
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
