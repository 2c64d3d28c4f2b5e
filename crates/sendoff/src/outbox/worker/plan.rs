//! What a worker reads next.

use std::collections::HashMap;
use tokio::time::Instant;

use super::state::{LaneState, PARKED_POLL, Pace, Recent, State, Suspects};
use crate::outbox::{Fetch, Lane, LaneFetch, Token};

/// A careful lane hands out one event, but must read past those it has to skip.
const CAREFUL_PAGE: u32 = 100;

/// Once it is known what a careful lane's owner was lost with, so many rows are enough to find the next one to hand out.
const CAREFUL_STEP: u32 = 10;

/// What to read next.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fetch: Fetch,
    pub(super) tokens: HashMap<Lane, Token>,
    /// The horizon that was known before.
    pub(super) horizon: Option<i64>,
    /// So many may be handed out.
    pub(super) room: usize,
    /// Parked events are looked at as well.
    pub(super) parked: bool,
    /// Nothing is in flight.
    pub(super) is_first: bool,
    /// Only what goes alone is handed out.
    pub(super) only_alone: bool,
}

/// At most so many events of a lane, if there is room for `room` of `lanes`, of which `full` had more to give the last time.
///
/// A little of every lane: events that were inserted together lie together, whatever their lanes, so that touches far fewer pages of the table than as many
/// of one lane. But where few lanes have the backlog, those give more.
fn share(room: usize, lanes: usize, full: usize, is_full: bool) -> usize {
    let among = if is_full { full } else { lanes };
    room.div_ceil(among.clamp(1, lanes.max(1))).max(1)
}

impl State {
    /// What to read for `limit` more events.
    pub(super) fn plan(
        &mut self,
        target: &str,
        limit: usize,
        window: u32,
        bytes: u64,
        now: Instant,
    ) -> Option<Plan> {
        if self.paused || self.suspended || self.stopping {
            return None;
        }
        let is_first = self.in_flight() == 0;
        if self.pace == Pace::Alone && is_first {
            self.pace = Pace::Free;
        }
        if self.pace != Pace::Free && !is_first {
            return None;
        }
        let room = limit.min((window as usize).saturating_sub(self.in_flight()));
        self.lanes.values_mut().for_each(LaneState::raise_floor);
        let mut lanes: Vec<&LaneState> = self.lanes.values().filter(|lane| lane.is_usable(now)).collect();
        if room == 0 || lanes.is_empty() {
            return None;
        }
        // In turn with the others, so that they have all of the limits.
        let is_narrow = self.was_wide && lanes.iter().any(|lane| lane.reach > 0);
        self.was_wide = !is_narrow;
        if is_narrow {
            lanes.retain(|lane| lane.reach > 0);
        }
        let reach = |lane: &LaneState| if is_narrow { lane.reach as usize } else { 0 };
        // Another lane comes first each time: the limit may end before the last one.
        self.rotation = (self.rotation + 1) % lanes.len();
        lanes.rotate_left(self.rotation);
        let again: HashMap<Lane, usize> =
            lanes.iter().map(|lane| (lane.token.lane, lane.read_again())).collect();
        let passed_over: usize = lanes.iter().map(|lane| again[&lane.token.lane] + reach(lane)).sum();
        let tokens = lanes.iter().map(|lane| (lane.token.lane, lane.token)).collect();
        let bytes_per_lane = (bytes / lanes.len() as u64).max(1);
        let full = lanes.iter().filter(|lane| lane.has_more).count();
        let share = |lane: &LaneState| share(room, lanes.len(), full, lane.has_more);
        let fetches = lanes.iter().map(|lane| LaneFetch {
            lane: lane.token.lane,
            above: lane.read_above(),
            limit: match (lane.is_careful(), &lane.suspects) {
                (true, Suspects::Unknown) => CAREFUL_PAGE,
                (true, _) => CAREFUL_STEP,
                (false, Suspects::None) => count(share(lane) + again[&lane.token.lane] + reach(lane)),
                // The first look must find all that its last owner may have had in hand.
                (false, _) => count(room + again[&lane.token.lane] + reach(lane)),
            },
        });
        // One event is handed out then: a lane is enough, and one row more, which shows that the lane was read to its page's end.
        let all_careful = lanes.iter().all(|lane| lane.is_careful());
        let wanted = if all_careful { CAREFUL_PAGE + 1 } else { count(room + passed_over) };
        // What stands for a diverted key comes with what follows it.
        let limit = wanted.max(2);
        let fetch = Fetch { target: target.to_owned(), lanes: fetches.collect(), limit, bytes_per_lane };
        self.fetching = true;
        self.recent = Recent::default();
        let parked = now >= self.parked_poll;
        if parked {
            // Whatever is settled while this one is read may bring the next look forward.
            self.parked_poll = now + PARKED_POLL;
        }
        let only_alone = self.pace == Pace::Emptying;
        Some(Plan { fetch, tokens, horizon: self.horizon, room, parked, is_first, only_alone })
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_little_of_every_lane_or_much_of_those_that_have_more() {
        assert_eq!(share(500, 16, 0, false), 32);
        assert_eq!(share(500, 16, 16, true), 32, "all have more");
        assert_eq!(share(500, 16, 1, true), 500, "one has everything");
        assert_eq!(share(500, 16, 1, false), 32, "the others are read all the same");
        assert_eq!(share(1, 64, 0, false), 1);
    }
}
