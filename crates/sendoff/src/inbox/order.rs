//! How an arrival stands to those of its key before it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;
use serde::Serialize;

use super::Arrival;
use crate::event::EventId;

/// So many of a key's last events are remembered, to tell a copy from one that was never there.
const RECENT_MAX: usize = 16;

/// So many keys a checker remembers, unless it is told otherwise.
const KEYS_MAX: usize = 100_000;

/// How an arrival stands to those of its key before it.
///
/// | | what it may be | what to do |
/// |---|---|---|
/// | [`InOrder`](Self::InOrder) | the next one | handle it |
/// | [`Unordered`](Self::Unordered) | it has no key, or its outbox has no positions | handle it |
/// | [`Duplicate`](Self::Duplicate) | sent again after a crash or a lost answer, or delivered again by the broker | `once` has the last word: handle it if that says `First` |
/// | [`Behind`](Self::Behind) | an older one that was never there, of no older lease: a dead event that an operator has redriven after its key went on, one with `deliver_at`, or the broker has mixed up the order | if it is `First`, decide: what replaces newer state must not be applied blindly |
/// | [`StaleEpoch`](Self::StaleEpoch) | a worker that had lost its lease sent it late, or the broker delivers an older one again | as `Behind`; who has the lane now sends it as well |
///
/// Where the broker keeps the order of a key, and also redelivers in that order (a partition of Kafka), an event of a stale epoch may be dropped unseen: its lane's owner sends it again. Elsewhere it may be the
/// only copy, delivered again because a consumer died with it: do not drop what `once` calls `First`.
///
/// **A redriven event** keeps its id and its position, and is sent under its lane's present epoch. Where the key had gone on without it (the policy `skip`, or a single event of many redriven) it is `Behind`, or
/// a `Duplicate` if it had arrived in spite of its failure. Where the key had waited for it (`block`, `divert`) it is `InOrder`, and so are those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Later than all of its key before it, or the first that is known.
    InOrder,
    /// It has no order.
    Unordered,
    /// The same event has arrived before.
    Duplicate,
    /// Later ones of its key have arrived before it.
    Behind {
        /// The highest position of its key so far.
        last: i64,
    },
    /// Sent under an older lease than others of its key that have arrived before it.
    StaleEpoch {
        /// The highest epoch of its key so far.
        newest: i64,
    },
}

impl Order {
    /// Whether nothing speaks against handling it now.
    pub fn is_fine(self) -> bool {
        matches!(self, Self::InOrder | Self::Unordered)
    }

    /// By the last one of its key. The same event first: a copy that a frozen worker sent is a copy above all.
    pub(crate) fn judge(last: Option<&Mark>, arrival: &Arrival, position: i64) -> Self {
        let Some(last) = last else { return Self::InOrder };
        if last.event_id == arrival.event_id {
            return Self::Duplicate;
        }
        match (arrival.epoch, last.epoch) {
            (Some(epoch), Some(newest)) if epoch < newest => Self::StaleEpoch { newest },
            _ if position <= last.position => Self::Behind { last: last.position },
            _ => Self::InOrder,
        }
    }
}

/// How far a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) event_id: EventId,
    pub(crate) position: i64,
    pub(crate) epoch: Option<i64>,
}

impl Mark {
    /// As the database has it: `position epoch event-id`, and nothing for a key that is new.
    #[cfg(feature = "_sql")]
    pub(crate) fn read(text: &str) -> Result<Option<Self>, &'static str> {
        const WRONG: &str = "a key stands where it cannot be read";
        if text.is_empty() {
            return Ok(None);
        }
        let mut parts = text.split(' ');
        let mut next = || parts.next().ok_or(WRONG);
        let position = next()?.parse().map_err(|_| WRONG)?;
        let epoch = match next()? {
            "-" => None,
            epoch => Some(epoch.parse().map_err(|_| WRONG)?),
        };
        Ok(Some(Self { event_id: next()?.parse().map_err(|_| WRONG)?, position, epoch }))
    }

    fn of(arrival: &Arrival, position: i64) -> Self {
        Self { event_id: arrival.event_id, position, epoch: arrival.epoch }
    }

    /// An arrival of an older epoch moves nothing; one of a newer epoch tells that there is one, wherever it stands.
    fn move_to(&mut self, arrival: &Arrival, position: i64) {
        let is_stale = matches!((arrival.epoch, self.epoch), (Some(epoch), Some(newest)) if epoch < newest);
        if position > self.position && !is_stale {
            self.position = position;
            self.event_id = arrival.event_id;
        }
        self.epoch = self.epoch.max(arrival.epoch);
    }
}

/// Says of each arrival how it stands to those of its key before it, from memory.
///
/// It remembers the highest position and epoch of each key, and its last 16 events: an older copy than those is [`Behind`](Order::Behind). It remembers no more than so many keys; the one that was
/// not heard of for longest is forgotten first, and is new when it comes again. Whatever arrived counts, also if the consumer's transaction was rolled back; `Inbox::follow` is the one that is part of it.
///
/// ```
/// use sendoff::EventId;
/// use sendoff::inbox::{Arrival, Order, OrderChecker};
///
/// let mut checker = OrderChecker::new();
/// let arrival = |position, epoch| Arrival {
///     key: Some("order-4711".to_owned()),
///     position: Some(position),
///     epoch: Some(epoch),
///     ..Arrival::new(EventId::generate())
/// };
/// let (first, second) = (arrival(1, 7), arrival(5, 7));
/// assert_eq!(checker.check(&first), Order::InOrder);
/// assert_eq!(checker.check(&second), Order::InOrder);
/// assert_eq!(checker.check(&first), Order::Duplicate);
/// assert_eq!(checker.check(&arrival(3, 8)), Order::Behind { last: 5 });
/// assert_eq!(checker.check(&arrival(6, 7)), Order::StaleEpoch { newest: 8 });
/// ```
#[derive(Debug)]
pub struct OrderChecker {
    keys_max: usize,
    keys: HashMap<Arc<Key>, Known>,
    /// From the one that was not heard of for longest.
    by_turn: BTreeMap<u64, Arc<Key>>,
    turn: u64,
}

/// Positions of two sources do not compare.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    source: Option<String>,
    key: String,
}

#[derive(Debug)]
struct Known {
    mark: Mark,
    recent: VecDeque<EventId>,
    turn: u64,
}

impl Default for OrderChecker {
    fn default() -> Self {
        Self::new()
    }
}

impl OrderChecker {
    /// One that remembers 100,000 keys.
    pub fn new() -> Self {
        Self::with_keys_max(KEYS_MAX)
    }

    /// One that remembers so many keys, and at least one.
    pub fn with_keys_max(keys_max: usize) -> Self {
        Self { keys_max: keys_max.max(1), keys: HashMap::new(), by_turn: BTreeMap::new(), turn: 0 }
    }

    /// How many keys it remembers now.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// How this arrival stands to those before it.
    pub fn check(&mut self, arrival: &Arrival) -> Order {
        let (Some(key), Some(position)) = (&arrival.key, arrival.position) else { return Order::Unordered };
        let key = Arc::new(Key { source: arrival.source.clone(), key: key.clone() });
        self.turn += 1;
        let turn = self.turn;
        let Some(known) = self.keys.get_mut(&key) else {
            self.make_room();
            let mark = Mark::of(arrival, position);
            let known = Known { mark, recent: VecDeque::from([arrival.event_id]), turn };
            self.by_turn.insert(turn, Arc::clone(&key));
            self.keys.insert(key, known);
            return Order::InOrder;
        };
        self.by_turn.remove(&known.turn);
        self.by_turn.insert(turn, key);
        known.turn = turn;
        known.check(arrival, position)
    }

    fn make_room(&mut self) {
        while self.keys.len() >= self.keys_max {
            let Some((_, oldest)) = self.by_turn.pop_first() else { return };
            self.keys.remove(&oldest);
        }
    }
}

impl Known {
    fn check(&mut self, arrival: &Arrival, position: i64) -> Order {
        let order = if self.recent.contains(&arrival.event_id) {
            Order::Duplicate
        } else {
            Order::judge(Some(&self.mark), arrival, position)
        };
        self.mark.move_to(arrival, position);
        // One of a stale epoch is sent again by its lane's owner, and that is the one that counts.
        if matches!(order, Order::InOrder | Order::Behind { .. }) {
            if self.recent.len() == RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back(arrival.event_id);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(key: &str, position: i64, epoch: Option<i64>) -> Arrival {
        Arrival {
            key: Some(key.to_owned()),
            position: Some(position),
            epoch,
            ..Arrival::new(EventId::generate())
        }
    }

    #[test]
    fn a_run_sent_again_after_a_crash_is_duplicates() {
        let mut checker = OrderChecker::new();
        let run: Vec<Arrival> =
            (1..=RECENT_MAX as i64).map(|position| arrival("k", position, Some(1))).collect();
        for one in &run {
            assert_eq!(checker.check(one), Order::InOrder);
        }
        // By the successor, under its own epoch.
        for one in &run {
            assert_eq!(checker.check(&Arrival { epoch: Some(2), ..one.clone() }), Order::Duplicate);
        }
        assert_eq!(checker.check(&arrival("k", 17, Some(2))), Order::InOrder);
        assert_eq!(
            checker.check(&run[0]),
            Order::StaleEpoch { newest: 2 },
            "too long ago to be told from others"
        );
    }

    #[test]
    fn what_a_frozen_worker_sends_late_moves_nothing() {
        let mut checker = OrderChecker::new();
        assert_eq!(checker.check(&arrival("k", 1, Some(5))), Order::InOrder);
        assert_eq!(checker.check(&arrival("k", 2, Some(6))), Order::InOrder);
        let late = arrival("k", 9, Some(5));
        assert_eq!(checker.check(&late), Order::StaleEpoch { newest: 6 });
        assert_eq!(checker.check(&arrival("k", 3, Some(6))), Order::InOrder);
        let again = Arrival { epoch: Some(6), ..late };
        assert_eq!(checker.check(&again), Order::InOrder, "the owner's own copy");
    }

    #[test]
    fn a_redriven_event_is_behind_under_the_present_epoch() {
        let mut checker = OrderChecker::new();
        for position in [10, 12] {
            assert_eq!(checker.check(&arrival("k", position, Some(3))), Order::InOrder);
        }
        assert_eq!(checker.check(&arrival("k", 11, Some(4))), Order::Behind { last: 12 });
        assert_eq!(checker.check(&arrival("k", 13, Some(4))), Order::InOrder);
    }

    #[test]
    fn without_an_epoch_positions_decide_and_without_a_key_nothing_does() {
        let mut checker = OrderChecker::new();
        assert_eq!(checker.check(&arrival("k", 2, None)), Order::InOrder);
        assert_eq!(checker.check(&arrival("k", 1, None)), Order::Behind { last: 2 });
        assert_eq!(checker.check(&Arrival::new(EventId::generate())), Order::Unordered);
        let no_position = Arrival { position: None, ..arrival("k", 1, None) };
        assert_eq!(checker.check(&no_position), Order::Unordered);
    }

    #[test]
    fn keys_and_sources_are_apart() {
        let mut checker = OrderChecker::new();
        let of = |source: &str, position| Arrival {
            source: Some(source.to_owned()),
            ..arrival("k", position, Some(1))
        };
        assert_eq!(checker.check(&of("/sendoff/a", 9)), Order::InOrder);
        assert_eq!(checker.check(&of("/sendoff/b", 1)), Order::InOrder);
        assert_eq!(checker.check(&of("/sendoff/a", 8)), Order::Behind { last: 9 });
    }

    #[test]
    fn memory_is_bounded_and_the_longest_silent_is_forgotten() {
        let mut checker = OrderChecker::with_keys_max(3);
        for key in ["a", "b", "c"] {
            assert_eq!(checker.check(&arrival(key, 5, Some(1))), Order::InOrder);
        }
        assert_eq!(checker.check(&arrival("a", 6, Some(1))), Order::InOrder);
        assert_eq!(checker.check(&arrival("d", 1, Some(1))), Order::InOrder);
        assert_eq!(checker.keys(), 3);
        assert_eq!(checker.check(&arrival("a", 5, Some(1))), Order::Behind { last: 6 }, "heard of since");
        assert_eq!(checker.check(&arrival("b", 1, Some(1))), Order::InOrder, "forgotten");
        for number in 0..10_000 {
            let _ = checker.check(&arrival(&format!("k{number}"), 1, None));
        }
        assert_eq!((checker.keys(), checker.by_turn.len()), (3, 3));
    }

    #[cfg(feature = "_sql")]
    #[test]
    fn a_mark_is_read_as_the_database_has_it() {
        let id = EventId::generate();
        let mark = |epoch| Some(Mark { event_id: id, position: 42, epoch });
        assert_eq!(Mark::read(&format!("42 7 {id}")), Ok(mark(Some(7))));
        assert_eq!(Mark::read(&format!("42 - {}", id.0.simple())), Ok(mark(None)));
        assert_eq!(Mark::read(""), Ok(None));
        assert!(Mark::read("42").is_err());
        assert!(Mark::read("x 7 y").is_err());
    }
}
