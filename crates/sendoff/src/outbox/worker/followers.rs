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
    /// Keys whose turn has come, as far as is known.
    next: Vec<Arc<str>>,
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
            self.next.push(Arc::clone(key));
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

    /// Gives up all. Returns the lowest of their positions.
    fn give_up_all(&mut self) -> Option<i64> {
        let lowest = self.positions().min();
        *self = Self::default();
        lowest
    }
}

impl LaneState {
    /// Hands out what follows of keys that are free, a run of each, while there is room.
    fn hand_out_followers(&mut self, room: usize, run: u32, handed: &mut Vec<Claimed>) {
        while handed.len() < room
            && let Some(key) = self.followers.next.pop()
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
    /// Up to `limit` events that were read before and whose turn has come.
    pub(super) fn hand_out_followers(
        &mut self,
        limit: usize,
        config: &WorkerConfig,
        now: Instant,
    ) -> Vec<Claimed> {
        let is_open = !(self.paused || self.suspended || self.stopping) && self.pace == Pace::Free;
        let room = limit.min((config.window as usize).saturating_sub(self.in_flight()));
        let mut handed = Vec::new();
        let mut given_up = Vec::new();
        for (number, lane) in &mut self.lanes {
            if is_open && lane.is_usable(now) {
                lane.hand_out_followers(room, config.run, &mut handed);
            } else {
                given_up.extend(lane.followers.give_up_all().map(|position| (*number, position)));
            }
        }
        for (lane, position) in given_up {
            self.put_back(lane, position);
        }
        self.stats.claimed += handed.len() as u64;
        handed
    }

    /// Keeps an event until its turn comes. False: there is no room for it.
    pub(super) fn keep_follower(&mut self, number: Lane, row: Fetched, config: &WorkerConfig) -> bool {
        let (mut events, mut bytes) = (0, row.event.payload.len() as u64);
        for lane in self.lanes.values() {
            events += lane.followers.positions.len();
            bytes += lane.followers.bytes;
        }
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

    /// Payload bytes of what was read and not handed out.
    pub(super) fn follower_bytes(&self) -> u64 {
        self.lanes.values().map(|lane| lane.followers.bytes).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::{Attempts, Event, EventId, Headers, Standing};
    use crate::outbox::{
        Cause, Failure, Hold, Leased, OnExhausted, Outcome, Page, Place, Receipt, Settled, Token, WorkerId,
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
            let mut handed = self.state.hand_out_followers(100, &self.config, self.now);
            let plan = self.state.plan("default", 100 - handed.len(), 1_000, 1 << 20, self.now).unwrap();
            let above = plan.fetch.lanes[0].above;
            let found = rows.iter().filter(|(position, _)| *position > above);
            let found = found.map(|(position, key)| row(*position, key)).collect();
            let page = Page::new(found, plan.fetch.limit);
            let admitted = self.state.admit(&plan, Vec::new(), page, &self.config, self.now);
            self.state.fetch_ended();
            handed.extend(admitted.handed);
            (handed.iter().map(|claimed| claimed.event.position).collect(), above)
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
        assert_eq!(worker.state.follower_bytes(), 0);
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
    fn nothing_is_kept_while_nothing_may_be_handed_out() {
        let mut worker = Worker::new(WorkerConfig::default());
        let all = [(1, "a"), (2, "a")];
        worker.claim(&all[..1]);
        worker.claim(&all);
        assert_eq!(worker.state.lanes[&LANE].read_above(), 2);
        worker.state.paused = true;
        assert!(worker.state.hand_out_followers(100, &worker.config, worker.now).is_empty());
        assert_eq!(worker.state.lanes[&LANE].read_above(), 1, "it is read again");
    }
}
