//! What a worker reads next.

use hashbrown::HashMap;
use tokio::time::Instant;

use super::config::WorkerConfig;
use super::state::{LaneState, PARKED_POLL, Pace, Recent, State, Suspects};
use crate::outbox::{Fetch, Lane, LaneFetch, Token};

/// A careful lane hands out one event, but must read past those it has to skip.
const CAREFUL_PAGE: u32 = 100;

/// After a page that was too narrow the next ones are wide.
const WIDE_PAGES: u32 = 16;

/// What to read next.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fetch: Fetch,
    pub(super) tokens: HashMap<Lane, Token>,
    /// The horizon that was known before.
    pub(super) horizon: Option<i64>,
    /// How often floors had been reset before.
    pub(super) floor_resets: u64,
    /// So many may be handed out.
    pub(super) room: usize,
    /// Of those, so many were read before.
    pub(super) ready: usize,
    /// Parked events are looked at as well.
    pub(super) parked: bool,
    /// Nothing is in flight.
    pub(super) is_first: bool,
    /// Only what goes alone is handed out.
    pub(super) only_alone: bool,
}

/// Of how many lanes a page is made.
///
/// Events that were inserted together lie together, whatever their lanes: a little of every lane touches far fewer pages of the table than as much of
/// one lane. But where one lane has all of the backlog, a little of it would be a small batch.
#[derive(Debug)]
pub(super) struct Spread {
    /// A lane gives this part of the room, or its even share, whichever is more.
    divisor: usize,
    /// So many pages stay wide.
    wide: u32,
}

impl Default for Spread {
    fn default() -> Self {
        Self { divisor: 1, wide: 0 }
    }
}

impl Spread {
    /// At most so many events of a lane.
    fn share(&self, room: usize, lanes: usize) -> usize {
        room.div_ceil(self.divisor.min(lanes).max(1))
    }

    /// What became of the last page: whether it filled the room, and whether any lane had more to give.
    pub(super) fn note(&mut self, is_filled: bool, has_more: bool) {
        if !is_filled && has_more && self.divisor > 1 {
            *self = Self { divisor: 1, wide: WIDE_PAGES };
        } else if is_filled && self.wide > 0 {
            self.wide -= 1;
        } else if is_filled {
            self.divisor = (self.divisor * 2).min(1 << 16);
        }
    }
}

impl State {
    /// What to read for `limit` more events.
    pub(super) fn plan(&mut self, limit: usize, config: &WorkerConfig, now: Instant) -> Option<Plan> {
        self.give_up_idle_followers(now);
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
        let room = limit.min((config.window as usize).saturating_sub(self.in_flight()));
        self.lanes.values_mut().for_each(LaneState::raise_floor);
        let mut lanes: Vec<&LaneState> = self.lanes.values().filter(|lane| lane.is_usable(now)).collect();
        if room == 0 || lanes.is_empty() {
            return None;
        }
        // What was read before takes part of the room, and of the memory.
        let (kept, kept_bytes) = self.followers();
        let ready = self.ready_followers(config.run);
        let unread = room.saturating_sub(ready).max(1);
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
        let bytes_per_lane = (config.bytes.saturating_sub(kept_bytes) / lanes.len() as u64).max(1);
        let share = self.spread.share(unread, lanes.len());
        let fetches = lanes.iter().map(|lane| LaneFetch {
            lane: lane.token.lane,
            above: lane.read_above(),
            limit: match (lane.is_careful(), &lane.suspects) {
                (true, _) => CAREFUL_PAGE,
                (false, Suspects::None) => count(share + again[&lane.token.lane] + reach(lane)),
                // The first look must find all that its last owner may have had in hand.
                (false, _) => count(unread + again[&lane.token.lane] + reach(lane)),
            },
        });
        // One event is handed out then: a lane is enough, and one row more, which shows that the lane was read to its page's end.
        let all_careful = lanes.iter().all(|lane| lane.is_careful());
        let wanted = if all_careful { CAREFUL_PAGE + 1 } else { count(unread + passed_over) };
        // What stands for a diverted key comes with what follows it.
        let limit = wanted.max(2);
        let fetch = Fetch { target: config.target.clone(), lanes: fetches.collect(), limit, bytes_per_lane };
        self.fetching = true;
        self.recent = Recent::default();
        // What was kept goes after what an operator has redriven of its key meanwhile.
        let parked = now >= self.parked_poll || kept > 0;
        if parked {
            // Whatever is settled while this one is read may bring the next look forward.
            self.parked_poll = now + PARKED_POLL;
        }
        let only_alone = self.pace == Pace::Emptying;
        let (horizon, floor_resets) = (self.horizon, self.floor_resets);
        Some(Plan { fetch, tokens, horizon, floor_resets, room, ready, parked, is_first, only_alone })
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_spread_while_it_fills_and_wide_after_it_did_not() {
        let mut spread = Spread::default();
        assert_eq!(spread.share(500, 16), 500);
        for _ in 0..10 {
            spread.note(true, true);
        }
        assert_eq!(spread.share(500, 16), 32);
        spread.note(false, false);
        assert_eq!(spread.share(500, 16), 32, "nobody had more to give");
        spread.note(false, true);
        assert_eq!(spread.share(500, 16), 500);
        for _ in 0..WIDE_PAGES {
            spread.note(true, true);
            assert_eq!(spread.share(500, 16), 500, "it narrows at once where one lane has everything");
        }
        spread.note(true, true);
        assert_eq!(spread.share(500, 16), 250);
    }
}
