//! From a claim to calls of the sink. Pure.
//!
//! A *run* is what was claimed of one key, in order; an event without a key is a run of its own. Runs are packed into *parcels*, which may be on their way at
//! the same time; a run is never split over two of them. A parcel is sent in *waves*: a sink that keeps order takes whole runs in one wave, another takes one
//! event of each.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use sendoff::Capabilities;
use sendoff::outbox::Claimed;

/// Runs that are published together, one after the other where they must.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    events: VecDeque<Claimed>,
    bytes: usize,
}

/// Packs a claim into parcels of about the size of one call.
pub(crate) fn parcels(claimed: Vec<Claimed>, capabilities: &Capabilities) -> Vec<Parcel> {
    // Without a key there is nothing to keep together; most claims have far more keys than parcels have events.
    let mut parcels: Vec<Parcel> = Vec::new();
    // By their hashes: two keys that share one are only kept together.
    let hasher = RandomState::new();
    let mut of_key: HashMap<u64, usize> = HashMap::new();
    for event in claimed {
        let key = event.event.key.as_deref().map(|key| hasher.hash_one(key));
        let known = key.and_then(|key| of_key.get(&key)).copied();
        let is_full = |parcel: &Parcel| {
            parcel.events.len() >= capabilities.events || parcel.bytes >= capabilities.bytes
        };
        let index = match known {
            Some(index) => index,
            None => {
                if parcels.last().is_none_or(is_full) {
                    parcels.push(Parcel::default());
                }
                let index = parcels.len() - 1;
                if let Some(key) = key {
                    of_key.insert(key, index);
                }
                index
            }
        };
        parcels[index].bytes += event.event.payload.len();
        parcels[index].events.push_back(event);
    }
    parcels
}

impl Parcel {
    /// The next wave; empty when all is sent. `stopped`: keys of which an event failed. The rest of those is put into `untried`.
    pub(crate) fn wave(
        &mut self,
        capabilities: &Capabilities,
        stopped: &HashSet<String>,
        untried: &mut Vec<Claimed>,
    ) -> Vec<Claimed> {
        let mut wave: Vec<Claimed> = Vec::new();
        let hasher = RandomState::new();
        let mut keys: HashSet<u64> = HashSet::new();
        let mut bytes = 0;
        let mut later = VecDeque::new();
        while let Some(event) = self.events.pop_front() {
            let key = event.event.key.as_deref();
            if key.is_some_and(|key| stopped.contains(key)) {
                untried.push(event);
                continue;
            }
            let size = event.event.payload.len();
            let is_full = wave.len() >= capabilities.events.max(1)
                || (!wave.is_empty() && bytes + size > capabilities.bytes);
            let hash = key.filter(|_| !capabilities.keeps_order).map(|key| hasher.hash_one(key));
            let must_wait = hash.is_some_and(|hash| keys.contains(&hash));
            if is_full || must_wait {
                // What comes after it in its key waits as well.
                later.push_back(event);
                if is_full {
                    later.append(&mut self.events);
                }
                continue;
            }
            keys.extend(hash);
            bytes += size;
            wave.push(event);
        }
        self.events = later;
        wave
    }
}
