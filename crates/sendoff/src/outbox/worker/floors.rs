//! Where the reading of a lane begins.
//!
//! An event of a transaction that commits late turns up anywhere above the horizon, so a lane is read from there every time, past what is in flight. Below the
//! horizon, if that was known before the lane was read, nothing can turn up that was not read: it need not be read again, but for what was
//! read and not handed out, or was put back. The floor, which the next owner begins at, stays below what is in flight as well.

use hashbrown::HashMap;
use tokio::time::Instant;

use super::followers::Followers;
use super::plan::Plan;
use super::state::{LaneState, State};
use crate::outbox::{Lane, LaneFloor, Page};

/// What the last reading of a lane has shown.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The horizon as it was known before.
    horizon: i64,
    /// All there was up to here has been read.
    to: i64,
    /// The lowest that was read and is not in flight: it may be there still.
    left: Option<i64>,
}

impl Reading {
    /// One that was in flight is back where it was.
    pub(super) fn put_back(&mut self, position: i64) {
        self.left = Some(self.left.map_or(position, |left| left.min(position)));
    }
}

impl LaneState {
    /// Nothing is at or below that is not in flight.
    pub(super) fn read_above(&self) -> i64 {
        let below = self.reading.left.map_or(i64::MAX, |left| left - 1);
        self.floor.max(below.min(self.reading.to).min(self.reading.horizon))
    }

    /// So many of those in flight are read again, to be passed over.
    pub(super) fn read_again(&self) -> usize {
        let above = self.read_above();
        let in_flight = self.in_flight.iter();
        in_flight.filter(|(position, event)| !event.place.is_hot() || **position > above).count()
            + self.followers.positions().filter(|position| *position > above).count()
    }

    /// From the beginning, the next time.
    fn forget_reading(&mut self) {
        self.floor = 0;
        self.reading = Reading::default();
        self.followers = Followers::default();
    }

    /// As high as the evidence goes.
    pub(super) fn raise_floor(&mut self) {
        let in_flight = self.in_flight.iter().filter(|(_, event)| event.place.is_hot());
        let known = in_flight.map(|(position, _)| *position).chain(self.followers.positions());
        let below = known.min().map_or(i64::MAX, |position| position - 1);
        self.floor = self.floor.max(below.min(self.read_above()));
    }
}

/// Which events of the event table a page has or had, lane by lane.
pub(super) fn positions(page: &Page) -> HashMap<Lane, Vec<i64>> {
    let mut positions: HashMap<Lane, Vec<i64>> = HashMap::new();
    for row in &page.events {
        positions.entry(row.event.lane).or_default().push(row.event.position);
    }
    for (lane, position) in &page.gone {
        let of_lane = positions.entry(*lane).or_default();
        of_lane.insert(of_lane.partition_point(|other| other < position), *position);
    }
    positions
}

impl State {
    /// Takes note of how far each lane was read, and what of that is not in flight.
    pub(super) fn note_reading(
        &mut self,
        plan: &Plan,
        ends_in: Option<Lane>,
        positions: &HashMap<Lane, Vec<i64>>,
    ) {
        let Some(horizon) = plan.horizon else { return };
        // It began at floors that mean nothing any more: what it has not shown may well be there.
        if plan.floor_resets != self.floor_resets {
            return;
        }
        // Put back while this was read, maybe below where it began.
        let put_back = std::mem::take(&mut self.recent.put_back);
        for number in plan.fetch.lanes.iter().map(|lane| lane.lane) {
            let read: &[i64] = positions.get(&number).map_or(&[], Vec::as_slice);
            let ends_here = ends_in == Some(number);
            if let Some(lane) = self.lane(plan.tokens[&number])
                && !(ends_here && read.is_empty())
            {
                let is_known = |position: i64| {
                    lane.in_flight.contains_key(&position) || lane.followers.contains(position)
                };
                let left = read.iter().copied().find(|position| !is_known(*position));
                lane.reading = Reading { horizon, to: read.last().copied().unwrap_or(i64::MAX), left };
                put_back
                    .iter()
                    .filter(|(lane, _)| *lane == number)
                    .for_each(|(_, position)| lane.reading.put_back(*position));
            }
            if ends_here {
                // Nothing is known of the lanes after it.
                return;
            }
        }
    }

    /// The horizon was found by a probe that began then. A lane that is above it has seen higher positions than will be given out next: they
    /// were set back, and its floor means nothing any more.
    pub(super) fn found_horizon(&mut self, horizon: i64, began: Instant) {
        self.horizon = Some(horizon);
        let mut is_reset = false;
        for lane in self.lanes.values_mut() {
            lane.gone = 0;
            if lane.floor > horizon && lane.since < began {
                lane.forget_reading();
                is_reset = true;
            }
        }
        self.floor_resets += u64::from(is_reset);
    }

    /// Nothing that was read means anything any more: lanes are read from the beginning.
    pub(super) fn forget_readings(&mut self) {
        self.horizon = None;
        self.lanes.values_mut().for_each(LaneState::forget_reading);
        self.floor_resets += 1;
    }

    /// Rows deleted since the horizon was found.
    pub(super) fn gone(&self) -> u64 {
        self.lanes.values().map(|lane| lane.gone).sum()
    }

    /// Floors that have moved since they were kept.
    pub(super) fn floors_to_keep(&mut self) -> Vec<LaneFloor> {
        let lanes = self.lanes.values_mut().filter_map(|lane| {
            lane.raise_floor();
            (lane.floor != lane.kept_floor).then_some(LaneFloor { token: lane.token, floor: lane.floor })
        });
        lanes.collect()
    }

    pub(super) fn kept_floors(&mut self, kept: &[LaneFloor]) {
        for LaneFloor { token, floor } in kept {
            if let Some(lane) = self.lane(*token) {
                lane.kept_floor = *floor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::{Leased, Token, WorkerConfig};

    /// Or the lane would be taken to have nothing up to the new horizon, and what was written there would stay for ever.
    #[test]
    fn a_page_that_was_asked_for_before_the_floors_were_reset_shows_nothing() {
        let now = Instant::now();
        let later = now + std::time::Duration::from_secs(1);
        let config = WorkerConfig::default();
        let mut state = State::new(now, None);
        let token = Token { lane: 3, epoch: 1, worker: crate::outbox::WorkerId::generate() };
        let leased = Leased { token, floor: 3_000, crashes: 0, named: None };
        state.add(&[leased], later + std::time::Duration::from_secs(60), now);
        // The sequence was set back; the horizon is known, the floor not yet reset.
        state.horizon = Some(50);
        let plan = state.plan(100, &config, later).unwrap();
        assert_eq!(plan.fetch.lanes[0].above, 3_000);
        state.found_horizon(50, later);
        state.note_reading(&plan, None, &HashMap::new());
        let next = state.plan(100, &config, later).unwrap();
        assert_eq!(next.fetch.lanes[0].above, 0, "events at or below 50 would never be read");
        state.note_reading(&next, None, &HashMap::new());
        assert_eq!(state.plan(100, &config, later).unwrap().fetch.lanes[0].above, 50);
    }

    /// Or an empty lane, as it seems, would be taken to have nothing up to the horizon, and what its page left out would never be read.
    #[test]
    fn what_was_gone_when_it_was_read_shows_how_far_its_lane_was_read() {
        let page = Page { gone: vec![(3, 17), (3, 19), (5, 18)], ..Page::default() };
        assert_eq!(positions(&page), HashMap::from([(3, vec![17, 19]), (5, vec![18])]));
    }
}
