//! From claims to calls of the sink. Pure.
//!
//! What was claimed waits in a *pool*, from which calls are filled. A *run* is what waits of one key, in order. A sink that keeps order takes whole runs in one call,
//! another takes one event of each; a key is never in two calls at a time. So what has to wait for its key goes along with what is claimed next, and need not be a call by
//! itself, which costs a sink almost as much as a full one.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;

use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, HashMap};
use sendoff::outbox::Claimed;

/// A key, by its hash: two keys that share one only wait for each other.
pub(crate) type KeyHash = u64;

/// Events that are claimed and not yet sent.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The sink takes whole runs in one call.
    keeps_order: bool,
    hasher: DefaultHashBuilder,
    /// May go as soon as there is a call for them, unless a call with their key has begun meanwhile.
    ready: VecDeque<Waiting>,
    /// Keys that are in a call, with its number.
    under_way: HashMap<KeyHash, u64>,
    /// What waits for those of its key that are under way, or ready.
    behind: HashMap<KeyHash, VecDeque<Waiting>>,
    calls: u64,
}

#[derive(Debug)]
struct Waiting {
    claimed: Claimed,
    key: Option<KeyHash>,
}

/// What one call of the sink is given, and the keys that wait for its end.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) events: Vec<Claimed>,
    pub(crate) keys: Vec<KeyHash>,
}

impl Pool {
    /// Without any events, of a sink that keeps the order of a call or does not.
    pub(crate) fn new(keeps_order: bool) -> Self {
        Self {
            keeps_order,
            hasher: DefaultHashBuilder::default(),
            ready: VecDeque::new(),
            under_way: HashMap::new(),
            behind: HashMap::new(),
            calls: 0,
        }
    }

    /// How many may go, as far as is known.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Adds a claim: it goes after what is there.
    pub(crate) fn add(&mut self, claimed: Vec<Claimed>) {
        let hasher = &self.hasher;
        self.ready.extend(claimed.into_iter().map(|claimed| {
            let key = claimed.event.key.as_deref().map(|key| hasher.hash_one(key));
            Waiting { claimed, key }
        }));
    }

    /// The next call, of so many events and bytes at most; one event goes whatever its size. None: nothing may go now.
    pub(crate) fn next_call(&mut self, most: usize, bytes_most: usize) -> Option<Call> {
        let number = self.calls;
        let (mut events, mut keys, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(waiting) = self.ready.pop_front() {
            if let Some(key) = waiting.key
                && self.must_wait(key, number)
            {
                self.behind.entry(key).or_default().push_back(waiting);
                continue;
            }
            let size = waiting.claimed.event.payload.len();
            let fits = events.len() < most && bytes + size <= bytes_most;
            if !(fits || events.is_empty()) {
                self.ready.push_front(waiting);
                break;
            }
            if let Some(key) = waiting.key
                && self.under_way.insert(key, number).is_none()
            {
                keys.push(key);
            }
            bytes += size;
            events.push(waiting.claimed);
        }
        self.calls += 1;
        (!events.is_empty()).then_some(Call { events, keys })
    }

    /// Another call has its key, or this one may have no more of it.
    fn must_wait(&self, key: KeyHash, call: u64) -> bool {
        self.under_way.get(&key).is_some_and(|of_call| *of_call != call || !self.keeps_order)
    }

    /// A call has ended: what has waited for its keys may go, before what was claimed later. Returns what waits of the keys that `stopped`, since an event of theirs was
    /// not delivered: it is not to be sent.
    pub(crate) fn ended(&mut self, keys: &[KeyHash], stopped: &HashSet<String>) -> Vec<Claimed> {
        let given_up = self.remove(stopped);
        // In turn from the back, so that they stand in the order of the call.
        for key in keys.iter().rev() {
            self.under_way.remove(key);
            let Entry::Occupied(mut run) = self.behind.entry(*key) else { continue };
            if self.keeps_order {
                run.remove().into_iter().rev().for_each(|waiting| self.ready.push_front(waiting));
                continue;
            }
            if let Some(next) = run.get_mut().pop_front() {
                self.ready.push_front(next);
            }
            if run.get().is_empty() {
                run.remove();
            }
        }
        given_up
    }

    fn remove(&mut self, keys: &HashSet<String>) -> Vec<Claimed> {
        if keys.is_empty() {
            return Vec::new();
        }
        let stopped: HashSet<KeyHash> = keys.iter().map(|key| self.hasher.hash_one(key)).collect();
        let behind = stopped.iter().filter_map(|key| self.behind.remove(key)).flatten();
        let mut removed: Vec<Claimed> = behind.map(|waiting| waiting.claimed).collect();
        for waiting in std::mem::take(&mut self.ready) {
            if waiting.key.is_some_and(|key| stopped.contains(&key)) {
                removed.push(waiting.claimed);
            } else {
                self.ready.push_back(waiting);
            }
        }
        removed
    }

    /// Empties it: nothing of it is to be sent.
    pub(crate) fn remove_all(&mut self) -> Vec<Claimed> {
        let behind = self.behind.drain().flat_map(|(_, run)| run);
        self.ready.drain(..).chain(behind).map(|waiting| waiting.claimed).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use sendoff::testkit::claimed;

    const BYTES: usize = 1_000;

    /// Events of the keys `a`, `b` and so on, one after the other; ` ` has none.
    fn claim(keys: &str, first: i64) -> Vec<Claimed> {
        let key = |letter: char| (letter != ' ').then(|| letter.to_string());
        keys.chars()
            .zip(first..)
            .map(|(letter, position)| claimed(position, key(letter).as_deref(), "x"))
            .collect()
    }

    fn positions(events: &[Claimed]) -> Vec<i64> {
        events.iter().map(|claimed| claimed.event.position).collect()
    }

    fn next(pool: &mut Pool, most: usize) -> Call {
        pool.next_call(most, BYTES).unwrap()
    }

    fn none() -> HashSet<String> {
        HashSet::new()
    }

    #[test]
    fn what_waits_for_its_key_goes_along_with_the_next_claim() {
        let mut pool = Pool::new(false);
        pool.add(claim("aab a", 1));
        let first = next(&mut pool, 10);
        assert_eq!(positions(&first.events), [1, 3, 4]);
        assert!(pool.next_call(10, BYTES).is_none(), "the rest waits for its key");
        assert!(pool.ended(&first.keys, &none()).is_empty());
        pool.add(claim("bac", 6));
        let second = next(&mut pool, 10);
        assert_eq!(positions(&second.events), [2, 6, 8]);
        pool.ended(&second.keys, &none());
        let third = next(&mut pool, 10);
        assert_eq!(positions(&third.events), [5]);
        pool.ended(&third.keys, &none());
        assert_eq!(positions(&next(&mut pool, 10).events), [7]);
        assert_eq!(pool.ready(), 0);
    }

    #[test]
    fn a_sink_that_keeps_order_takes_whole_runs_and_no_key_twice_at_a_time() {
        let mut pool = Pool::new(true);
        pool.add(claim("aabaacb", 1));
        let first = next(&mut pool, 4);
        assert_eq!(positions(&first.events), [1, 2, 3, 4]);
        let second = next(&mut pool, 4);
        assert_eq!(positions(&second.events), [6], "`a` and `b` are under way");
        pool.add(claim("ac", 8));
        pool.ended(&first.keys, &none());
        assert_eq!(positions(&next(&mut pool, 4).events), [5, 7, 8]);
        pool.ended(&second.keys, &none());
        assert_eq!(positions(&next(&mut pool, 4).events), [9]);
    }

    #[test]
    fn a_call_is_bounded_by_events_and_by_bytes_and_takes_one_of_any_size() {
        let mut pool = Pool::new(false);
        let sizes = [400, 600, 1, 2_000, 1];
        pool.add(
            sizes
                .iter()
                .zip(1..)
                .map(|(size, position)| claimed(position, None, vec![b'x'; *size]))
                .collect(),
        );
        let calls: Vec<_> = std::iter::from_fn(|| pool.next_call(10, BYTES)).collect();
        let calls: Vec<_> = calls.iter().map(|call| positions(&call.events)).collect();
        assert_eq!(calls, [vec![1, 2], vec![3], vec![4], vec![5]]);
        pool.add(claim("abc", 1));
        assert_eq!(positions(&next(&mut pool, 2).events), [1, 2]);
    }

    #[test]
    fn what_follows_a_failure_in_its_key_is_given_up_and_nothing_else() {
        for keeps_order in [false, true] {
            let mut pool = Pool::new(keeps_order);
            pool.add(claim("abab", 1));
            let call = next(&mut pool, 2);
            assert_eq!(positions(&call.events), [1, 2]);
            pool.add(claim("c", 5));
            let given_up = pool.ended(&call.keys, &["a".to_owned()].into());
            assert_eq!(positions(&given_up), [3]);
            assert_eq!(positions(&next(&mut pool, 2).events), [4, 5]);
            pool.add(claim("bbd", 6));
            assert_eq!(positions(&next(&mut pool, 9).events), [8]);
            let left = pool.remove_all();
            assert_eq!(positions(&left), [6, 7]);
            assert_eq!(pool.ready(), 0);
        }
    }

    /// Whatever ends when, and is claimed when.
    #[test]
    fn every_event_goes_once_and_in_the_order_of_its_key() {
        const KEYS: [char; 8] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', ' '];
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut pool = Pool::new(random.bool());
            let (mut position, mut sent): (i64, Vec<i64>) = (0, Vec::new());
            let mut latest: HashMap<String, i64> = HashMap::new();
            let mut under_way: Vec<Call> = Vec::new();
            while position < 200 || pool.ready() > 0 || !under_way.is_empty() {
                if position < 200 && random.bool() {
                    let count = random.usize(1..20);
                    let keys: String = (0..count).map(|_| random.choice(KEYS).unwrap()).collect();
                    pool.add(claim(&keys, position + 1));
                    position += i64::try_from(keys.len()).unwrap();
                }
                if random.bool()
                    && let Some(call) = pool.next_call(random.usize(1..10), BYTES)
                {
                    under_way.push(call);
                }
                if !under_way.is_empty() && random.bool() {
                    let call = under_way.swap_remove(random.usize(..under_way.len()));
                    for claimed in &call.events {
                        sent.push(claimed.event.position);
                        if let Some(key) = &claimed.event.key {
                            let before = latest.insert(key.clone(), claimed.event.position);
                            assert!(before < Some(claimed.event.position), "seed {seed}, key {key}");
                        }
                    }
                    assert!(pool.ended(&call.keys, &none()).is_empty());
                }
                let mut keys: Vec<KeyHash> = under_way.iter().flat_map(|call| call.keys.clone()).collect();
                let count = keys.len();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), count, "seed {seed}: a key is in two calls");
            }
            sent.sort_unstable();
            assert_eq!(sent, (1..=position).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
