//! Which of the events that were read may be handed out.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use super::config::{Claimed, WorkerConfig};
use super::state::{InFlight, LaneState, Pace, Plan, State, Suspects, behind, diverted, give_up};
use crate::event::Attempts;
use crate::outbox::{
    Cause, Change, Due, Failure, Fetched, Hold, Lane, LaneFetch, Place, Reason, Settlement, Token,
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
    /// Events of each key that this fetch hands out.
    runs: HashMap<(Lane, String), u32>,
    /// Keys of which one was passed over: the rest of this fetch is too.
    closed: HashSet<(Lane, String)>,
    /// Keys whose parked events are diverted: the marker of each, and whether any event was left to follow it.
    diverting: HashMap<(Lane, String), (Settlement, bool)>,
}

impl State {
    /// Takes note of what was read and says what of it is handed out. `rows`: the parked ones first, then each lane's in order.
    pub(super) fn admit(
        &mut self,
        plan: &Plan,
        rows: Vec<Fetched>,
        config: &WorkerConfig,
        now: Instant,
    ) -> Admitted {
        self.note_suspects(plan, &rows);
        let full = full_lanes(plan, &rows);
        let mut admission = Admission {
            plan,
            config,
            now,
            pace: Pace::Free,
            admitted: Admitted::default(),
            runs: HashMap::new(),
            closed: HashSet::new(),
            diverting: HashMap::new(),
        };
        for row in rows {
            if !admission.look_at(self, row) {
                break;
            }
        }
        self.pace = admission.pace;
        let mut admitted = admission.admitted;
        // A marker stays due until nothing of its key is parked behind it.
        let followed = admission.diverting.into_values().filter(|(_, is_followed)| !is_followed);
        admitted.moved.extend(followed.map(|(marker, _)| marker));
        admitted.calm = self.without_suspects();
        self.reach_further(plan, full, &admitted);
        self.stats.claimed += admitted.handed.len() as u64;
        admitted
    }

    /// The first look at a lane whose owner was lost: what that owner had in hand is among the lowest events.
    fn note_suspects(&mut self, plan: &Plan, rows: &[Fetched]) {
        let hot: Vec<&Fetched> = rows.iter().filter(|row| row.place.is_hot()).collect();
        let is_cut = hot.len() >= plan.fetch.limit as usize;
        let last = hot.last().map(|row| row.event.lane);
        for lane in plan.fetch.lanes.iter().map(|lane| lane.lane) {
            if is_cut && Some(lane) == last {
                // This lane and those after it were not read to their end.
                break;
            }
            let Some(state) = self.lane(plan.tokens[&lane]) else { continue };
            if matches!(state.suspects, Suspects::Unknown) && plan.parked {
                let of_lane = rows.iter().filter(|row| row.event.lane == lane);
                let left = of_lane.map(|row| (row.event.position, row.event.key.clone()));
                state.suspects = Suspects::Left(left.collect());
            }
        }
    }

    /// Lanes of which a full page was read and nothing handed out, though there was room.
    fn reach_further(&mut self, plan: &Plan, full: HashSet<Lane>, admitted: &Admitted) {
        if admitted.handed.len() >= plan.room {
            return;
        }
        let has_given = |lane: Lane| {
            let handed = admitted.handed.iter().map(|claimed| claimed.event.lane);
            handed.chain(admitted.moved.iter().map(|moved| moved.lane)).any(|given| given == lane)
        };
        for number in full.into_iter().filter(|lane| !has_given(*lane)) {
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
        let number = row.event.lane;
        let Some(token) = self.plan.tokens.get(&number) else { return true };
        let is_recent = state.recent.positions.contains(&row.event.position);
        let key_is_recent =
            row.event.key.as_ref().is_some_and(|key| state.recent.keys.contains(&(number, key.clone())));
        let Some(lane) = state.lane(*token) else { return true };
        if is_recent || lane.draining || lane.in_flight.contains_key(&row.event.position) {
            self.close(&row);
            return true;
        }
        if self.is_marker(&row) {
            return true;
        }
        if let Some(change) = self.aside(&row) {
            if !key_is_recent {
                self.admitted.moved.push(settlement(&row, change));
            }
            return true;
        }
        let is_busy = row.event.key.as_ref().is_some_and(|key| {
            lane.busy_keys.contains_key(key) && !self.runs.contains_key(&(number, key.clone()))
        });
        if row.hold == Hold::Draining || is_busy || key_is_recent || self.is_closed(&row) {
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
        let run = row.event.key.clone().map(|key| (row.event.lane, key));
        match row.hold {
            Hold::Held => Some(behind(attempts)),
            // Its time has come while others of its key are on their way: it takes its place among them. Passed over, it would
            // close its key to them as well, for ever.
            Hold::Draining if row.reason == Some(Reason::Delayed) => Some(behind(attempts)),
            Hold::Diverted => Some(diverted(attempts)),
            Hold::Free | Hold::Draining => {
                let (_, is_followed) = self.diverting.get_mut(&run?)?;
                *is_followed = true;
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
        self.diverting.insert((row.event.lane, key.clone()), (settlement(row, sleep), false));
        true
    }

    fn is_closed(&self, row: &Fetched) -> bool {
        let Some(key) = &row.event.key else { return false };
        let run = (row.event.lane, key.clone());
        self.closed.contains(&run) || self.runs.get(&run).is_some_and(|count| *count >= self.config.run)
    }

    fn close(&mut self, row: &Fetched) {
        if let Some(key) = &row.event.key {
            self.closed.insert((row.event.lane, key.clone()));
        }
    }

    fn hand_out(&mut self, lane: &mut LaneState, row: Fetched) {
        if let Some(failure) = self.is_over(&row) {
            // After those of its key that are in flight, so that the policy finds it first in line.
            let has_key = row.event.key.is_some();
            if row.event.key.as_ref().is_none_or(|key| !lane.busy_keys.contains_key(key)) {
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
        if let Some(key) = &row.event.key {
            *self.runs.entry((row.event.lane, key.clone())).or_default() += 1;
        }
        let event = InFlight { key: row.event.key.clone(), place: row.place, attempts: row.event.attempts };
        lane.start(row.event.position, event);
        if alone {
            self.pace = Pace::Alone;
            self.admitted.to_name.push((lane.token, row.event.position));
        }
        self.admitted.handed.push(Claimed { event: row.event, token: lane.token, deadline: lane.deadline });
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
fn full_lanes(plan: &Plan, rows: &[Fetched]) -> HashSet<Lane> {
    let mut read: HashMap<Lane, (u32, u64)> = HashMap::new();
    let mut all = 0;
    let mut last = None;
    for row in rows.iter().filter(|row| row.place.is_hot()) {
        let (count, bytes) = read.entry(row.event.lane).or_default();
        *count += 1;
        *bytes += row.event.payload.len() as u64;
        all += 1;
        last = Some(row.event.lane);
    }
    let is_cut = all >= plan.fetch.limit;
    let is_full = |want: &&LaneFetch| {
        let (count, bytes) = read.get(&want.lane).copied().unwrap_or_default();
        count >= want.limit || bytes >= plan.fetch.bytes_per_lane || (is_cut && last == Some(want.lane))
    };
    plan.fetch.lanes.iter().filter(is_full).map(|want| want.lane).collect()
}

fn settlement(row: &Fetched, change: Change) -> Settlement {
    Settlement {
        lane: row.event.lane,
        position: row.event.position,
        place: row.place,
        key: row.event.key.clone(),
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
