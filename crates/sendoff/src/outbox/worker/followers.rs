//! Events that were read while others of their keys are in flight.
//!
//! They are kept until their turn comes: left where they are, they would be read again with every page until then, and all that comes after them as well. Nothing depends on
//! them. They are given up, and read again, whenever something happens to an event before them but that it is delivered.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::hash_map::EntryRef;
use hashbrown::{HashMap, HashSet};
use tokio::time::Instant;

use super::config::{Claimed, WorkerConfig};
use super::state::{InFlight, LaneState, Pace, State};
use crate::outbox::{Fetched, Lane};

/// What follows events in flight, in one lane.
#[derive(Debug, Default)]
pub(super) struct Followers {
    /// In the order of their positions.
    keys: HashMap<Arc<str>, VecDeque<Fetched>>,
    positions: HashSet<i64>,
    /// Keys whose turn has come, as far as is known, in the order in which it did: where there is never room for all, none is left out for ever.
    next: VecDeque<Arc<str>>,
    bytes: u64,
}

impl Followers {
    pub(super) fn positions(&self) -> impl Iterator<Item = i64> {
        self.positions.iter().copied()
    }

    pub(super) fn contains(&self, position: i64) -> bool {
        self.positions.contains(&position)
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Whether one of its key comes after this position.
    pub(super) fn has_after(&self, key: &str, position: i64) -> bool {
        let last = self.keys.get(key).and_then(VecDeque::back);
        last.is_some_and(|last| last.event.position > position)
    }

    /// How many there are of a key.
    fn of_key(&self, key: &str) -> usize {
        self.keys.get(key).map_or(0, VecDeque::len)
    }

    fn add(&mut self, row: Fetched) {
        let Some(key) = row.event.key.as_deref() else { return };
        let position = row.event.position;
        self.positions.insert(position);
        self.bytes += row.event.payload.len() as u64;
        let rows = match self.keys.entry_ref(key) {
            EntryRef::Occupied(rows) => rows.into_mut(),
            EntryRef::Vacant(entry) => entry.insert(VecDeque::new()),
        };
        rows.insert(rows.partition_point(|other| other.event.position < position), row);
    }

    /// Nothing of the key is under way any more.
    pub(super) fn free(&mut self, key: &Arc<str>) {
        if self.keys.contains_key(key) {
            self.next.push_back(Arc::clone(key));
        }
    }

    fn take_first(&mut self, key: &str) -> Option<Fetched> {
        let rows = self.keys.get_mut(key)?;
        let row = rows.pop_front();
        if rows.is_empty() {
            self.keys.remove(key);
        }
        if let Some(row) = &row {
            self.positions.remove(&row.event.position);
            self.bytes -= row.event.payload.len() as u64;
        }
        row
    }

    /// Gives up those of a key. Returns the lowest of their positions.
    pub(super) fn give_up(&mut self, key: &str) -> Option<i64> {
        let rows = self.keys.remove(key)?;
        for row in &rows {
            self.positions.remove(&row.event.position);
            self.bytes -= row.event.payload.len() as u64;
        }
        rows.front().map(|row| row.event.position)
    }
}

impl LaneState {
    /// How many of what follows could go now.
    fn ready_followers(&self, run: u32) -> usize {
        let free = self.followers.next.iter().filter(|key| !self.is_busy(key));
        free.map(|key| self.followers.of_key(key).min(run as usize)).sum()
    }

    /// Hands out what follows of keys that are free, a run of each, while there is room.
    pub(super) fn hand_out_followers(&mut self, room: usize, run: u32, handed: &mut Vec<Claimed>) {
        while handed.len() < room
            && let Some(key) = self.followers.next.pop_front()
        {
            let mut left = if self.is_busy(&key) { 0 } else { run };
            while left > 0
                && handed.len() < room
                && let Some(row) = self.followers.take_first(&key)
            {
                left -= 1;
                let attempts = row.event.attempts;
                let event =
                    InFlight { key: Some(Arc::clone(&key)), place: row.place, attempts, is_delivered: false };
                self.start(row.event.position, event);
                handed.push(Claimed { event: row.event, token: self.token, deadline: self.deadline });
            }
        }
    }
}

impl State {
    /// How many are kept, and their payloads' bytes.
    pub(super) fn followers(&self) -> (usize, u64) {
        let all = self.lanes.values().map(|lane| &lane.followers);
        all.fold((0, 0), |(count, bytes), kept| (count + kept.positions.len(), bytes + kept.bytes))
    }

    /// How many of them could go now.
    pub(super) fn ready_followers(&self, run: u32) -> usize {
        self.lanes.values().map(|lane| lane.ready_followers(run)).sum()
    }

    /// Gives up what is kept where nothing may be handed out: that may be for long.
    pub(super) fn give_up_idle_followers(&mut self, now: Instant) {
        let is_open = !(self.paused || self.suspended || self.stopping) && self.pace == Pace::Free;
        let idle = self.lanes.iter().filter(|(_, lane)| !(is_open && lane.is_usable(now)));
        for number in idle.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.give_up_lane_followers(number);
        }
    }

    /// Gives up what is kept of a lane: it is read again. Returns the keys.
    pub(super) fn give_up_lane_followers(&mut self, number: Lane) -> Vec<Arc<str>> {
        let Some(lane) = self.lanes.get_mut(&number) else { return Vec::new() };
        let followers = std::mem::take(&mut lane.followers);
        if let Some(lowest) = followers.positions().min() {
            self.put_back(number, lowest);
        }
        followers.keys.into_keys().collect()
    }

    /// Keeps an event until its turn comes. False: there is no room for it.
    pub(super) fn keep_follower(&mut self, number: Lane, row: Fetched, config: &WorkerConfig) -> bool {
        let (events, bytes) = self.followers();
        let bytes = bytes + row.event.payload.len() as u64;
        let Some(lane) = self.lanes.get_mut(&number) else { return false };
        // No more of a key than goes next, and not so many that those of a few keys are all there is room for.
        let of_key = row.event.key.as_deref().map_or(usize::MAX, |key| lane.followers.of_key(key));
        let has_room =
            of_key < config.run as usize && events < config.window as usize / 2 && bytes <= config.bytes / 4;
        if has_room {
            lane.followers.add(row);
        }
        has_room
    }

    /// Gives up what follows in a key: it is read again.
    pub(super) fn give_up_followers(&mut self, number: Lane, key: &str) {
        let lowest = self.lanes.get_mut(&number).and_then(|lane| lane.followers.give_up(key));
        if let Some(position) = lowest {
            self.put_back(number, position);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::{Attempts, Event, EventId, Headers, Standing};
    use crate::outbox::{
        Cause, Failure, Hold, LaneSet, Leased, OnExhausted, Outcome, Page, ParkedFetch, Place, Reason,
        Receipt, Settled, Token, WorkerId,
    };

    const LANE: Lane = 3;

    fn row(position: i64, key: &str) -> Fetched {
        let event = Event {
            event_id: EventId::generate(),
            position,
            standing: Standing::Lane,
            target: "default".to_owned(),
            lane: LANE,
            topic: "t".to_owned(),
            key: Some(key.to_owned()),
            payload: vec![b'x'; 10],
            content_type: None,
            headers: Headers::new(),
            created_at: crate::claim::Timestamp::from_micros(0),
            attempts: Attempts::default(),
        };
        Fetched { event, place: Place::Hot(None), hold: Hold::Free, later: None, reason: None, corrupt: None }
    }

    /// A worker with one lane, where nothing can turn up at or below 100.
    struct Worker {
        state: State,
        token: Token,
        config: WorkerConfig,
        now: Instant,
    }

    impl Worker {
        fn new(config: WorkerConfig) -> Self {
            let now = Instant::now();
            let mut state = State::new(now, None);
            let token = Token { lane: LANE, epoch: 1, worker: WorkerId::generate() };
            let leased = Leased { token, floor: 0, crashes: 0, named: None };
            state.add(&[leased], now + Duration::from_secs(60), now);
            state.horizon = Some(100);
            Self { state, token, config, now }
        }

        /// What a claim hands out that finds these above where it begins, and where it begins.
        fn claim(&mut self, rows: &[(i64, &str)]) -> (Vec<i64>, i64) {
            self.claim_while(rows, ParkedFetch::nothing(None), |_| {})
        }

        /// The same, with what is parked and due, and with what happens while they are read.
        fn claim_while(
            &mut self,
            rows: &[(i64, &str)],
            parked: ParkedFetch,
            meanwhile: impl FnOnce(&mut Self),
        ) -> (Vec<i64>, i64) {
            let plan = self.state.plan(100, &self.config, self.now).unwrap();
            assert!(plan.parked || parked.due.is_empty(), "what is parked is not looked at");
            self.state.parked_polled(self.now, None, !parked.events.is_empty());
            let above = plan.fetch.lanes[0].above;
            let found = rows.iter().filter(|(position, _)| *position > above);
            let found = found.map(|(position, key)| row(*position, key)).collect();
            let page = Page::new(found, plan.fetch.limit);
            meanwhile(self);
            let admitted = self.state.admit(&plan, parked, page, &self.config, self.now);
            self.state.fetch_ended();
            (admitted.handed.iter().map(|claimed| claimed.event.position).collect(), above)
        }

        fn settle(&mut self, position: i64, outcome: Outcome) {
            let receipt = Receipt { token: self.token, position };
            let outcomes = [(receipt, outcome)];
            let (flush, released, _) = self.state.prepare("default", &outcomes, OnExhausted::Skip);
            self.state.finish(&flush, &Settled::default(), self.now);
            for receipt in released {
                self.state.release(receipt.token, receipt.position);
            }
        }

        fn deliver(&mut self, position: i64) {
            self.state.delivered(&Receipt { token: self.token, position });
        }
    }

    #[test]
    fn what_follows_an_event_in_flight_is_read_once() {
        let mut worker = Worker::new(WorkerConfig::default());
        let (first, all) = ([(1, "a"), (2, "b")], [(1, "a"), (2, "b"), (3, "a"), (4, "c"), (5, "a")]);
        assert_eq!(worker.claim(&first), (vec![1, 2], 0));
        assert_eq!(worker.claim(&all), (vec![4], 2), "3 and 5 come after 1");
        assert_eq!(worker.claim(&all), (vec![], 5), "and need not be read again");
        worker.deliver(2);
        assert_eq!(worker.claim(&all), (vec![], 100), "as nothing else is");
        worker.deliver(1);
        assert_eq!(worker.claim(&all), (vec![3, 5], 100));
        assert_eq!(worker.state.followers(), (0, 0));
        worker.settle(1, Outcome::Published);
        worker.settle(2, Outcome::Published);
        worker.state.lanes.values_mut().for_each(LaneState::raise_floor);
        assert_eq!(worker.state.lanes[&LANE].floor, 2, "below what is in flight");
    }

    #[test]
    fn the_next_owner_begins_below_what_follows() {
        let mut worker = Worker::new(WorkerConfig::default());
        worker.claim(&[(1, "a")]);
        worker.claim(&[(1, "a"), (2, "b"), (3, "a")]);
        worker.deliver(1);
        worker.settle(1, Outcome::Published);
        worker.settle(2, Outcome::Published);
        worker.state.lanes.values_mut().for_each(LaneState::raise_floor);
        assert_eq!(worker.state.lanes[&LANE].floor, 2);
    }

    #[test]
    fn what_follows_an_event_that_was_not_delivered_is_read_again() {
        let failure = || Failure::new(Cause::Transient, "no");
        for (outcome, first) in [
            (Outcome::Release, vec![1, 2, 3]),
            (Outcome::Retry { after: Duration::ZERO, failure: failure() }, vec![2, 3]),
            (Outcome::GiveUp { failure: failure() }, vec![2, 3]),
        ] {
            let mut worker = Worker::new(WorkerConfig::default());
            let all = [(1, "a"), (2, "a"), (3, "a")];
            worker.claim(&all[..1]);
            assert_eq!(worker.claim(&all).0, Vec::<i64>::new());
            worker.settle(1, outcome.clone());
            let left = &all[all.len() - first.len()..];
            let (handed, above) = worker.claim(left);
            assert_eq!(handed, first, "{outcome:?}");
            assert!(above < first[0], "{outcome:?}");
        }
    }

    #[test]
    fn what_is_freed_while_others_are_read_goes_along_with_them() {
        let mut worker = Worker::new(WorkerConfig::default());
        let all = [(1, "a"), (2, "a"), (3, "b")];
        worker.claim(&all[..1]);
        worker.claim(&all[..2]);
        let (handed, _) = worker.claim_while(&all, ParkedFetch::nothing(None), |worker| worker.deliver(1));
        assert_eq!(handed, [3, 2]);
    }

    /// An operator redrives an earlier event of the key, which is dead since before the others were read.
    #[test]
    fn what_is_kept_goes_after_what_is_redriven() {
        let redriven = || {
            let events = vec![Fetched { place: Place::Parked, reason: Some(Reason::Retry), ..row(1, "a") }];
            ParkedFetch { events, next_due: None, due: LaneSet::one(LANE) }
        };
        let mut worker = Worker::new(WorkerConfig { run: 1, ..WorkerConfig::default() });
        let all = [(2, "a"), (3, "a"), (4, "b"), (5, "b"), (6, "a")];
        assert_eq!(worker.claim(&all).0, [2, 4]);
        let (handed, _) = worker.claim_while(&all, redriven(), |worker| worker.deliver(2));
        assert_eq!(handed, Vec::<i64>::new(), "3 is not known to be next any more, nor is 6");
        let (handed, above) = worker.claim_while(&all, redriven(), |_| {});
        assert_eq!((handed, above), (vec![1], 2));
        worker.settle(1, Outcome::Published);
        worker.deliver(4);
        assert_eq!(worker.claim(&all).0, [3, 5]);
    }

    /// Where more is due than one look at the parked ones shows, it may be of any key.
    #[test]
    fn what_is_kept_goes_after_what_is_redriven_and_not_shown_yet() {
        let mut worker = Worker::new(WorkerConfig { run: 1, ..WorkerConfig::default() });
        let all = [(2, "a"), (3, "a")];
        worker.claim(&all);
        worker.deliver(2);
        let parked = ParkedFetch { due: LaneSet::one(LANE), ..ParkedFetch::nothing(None) };
        assert_eq!(worker.claim_while(&all, parked, |_| {}).0, Vec::<i64>::new());
        assert_eq!(worker.state.followers(), (0, 0));
        assert_eq!(worker.claim(&all).0, [3]);
    }

    /// Or one key could be all that there is room for.
    #[test]
    fn no_more_of_a_key_is_kept_than_goes_next() {
        let mut worker = Worker::new(WorkerConfig { run: 2, ..WorkerConfig::default() });
        let all = [(1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "a"), (6, "b")];
        worker.claim(&all[..1]);
        assert_eq!(worker.claim(&all).0, [6]);
        assert_eq!(worker.state.lanes[&LANE].followers.of_key("a"), 2);
        worker.deliver(1);
        let (handed, above) = worker.claim(&all);
        assert_eq!((handed, above), (vec![2, 3], 3), "from the first that was not kept");
        assert_eq!(worker.state.lanes[&LANE].followers.of_key("a"), 2);
        worker.deliver(2);
        worker.deliver(3);
        assert_eq!(worker.claim(&all).0, [4, 5]);
    }

    #[test]
    fn who_was_free_first_goes_first() {
        let mut worker = Worker::new(WorkerConfig { window: 6, ..WorkerConfig::default() });
        let all = [(1, "a"), (2, "b"), (3, "c"), (4, "a"), (5, "b"), (6, "c")];
        worker.claim(&all[..3]);
        worker.claim(&all);
        worker.deliver(2);
        worker.deliver(1);
        worker.deliver(3);
        // There is room for one beside the three that are not settled yet.
        worker.config.window = 4;
        assert_eq!(worker.claim(&all).0, [5]);
        worker.settle(2, Outcome::Published);
        assert_eq!(worker.claim(&all).0, [4]);
    }

    #[test]
    fn nothing_is_kept_while_nothing_may_be_handed_out() {
        let mut worker = Worker::new(WorkerConfig::default());
        let all = [(1, "a"), (2, "a")];
        worker.claim(&all[..1]);
        worker.claim(&all);
        assert_eq!(worker.state.lanes[&LANE].read_above(), 2);
        worker.state.paused = true;
        assert!(worker.state.plan(100, &worker.config, worker.now).is_none());
        assert_eq!(worker.state.lanes[&LANE].read_above(), 1, "it is read again");
    }
}
