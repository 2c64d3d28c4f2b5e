//! Whether the guarantees held: what was committed beside what was delivered. Pure.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::journal::Entry;

/// What the producers did.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) committed: HashSet<Uuid>,
    pub(crate) rolled_back: HashSet<Uuid>,
}

/// The counts, under the names that programs know.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    /// Of those committed, delivered at least once.
    pub(crate) delivered: u64,
    /// Committed and never delivered.
    pub(crate) lost: u64,
    /// Delivered though rolled back, or never written.
    pub(crate) phantom: u64,
    /// Deliveries beyond the first.
    pub(crate) duplicated: u64,
    /// Of those, the ones of events that a killed or frozen process had in hand.
    pub(crate) duplicates_explained: u64,
    /// First deliveries that came after a later event of their key.
    pub(crate) out_of_order: u64,
    pub(crate) seconds: f64,
}

impl Verdict {
    pub(crate) fn holds(&self) -> bool {
        self.lost == 0
            && self.phantom == 0
            && self.out_of_order == 0
            && self.duplicated == self.duplicates_explained
    }
}

/// Judges. `troubled`: the processes that were killed or frozen.
pub(crate) fn judge(
    written: &Written,
    delivered: &[Entry],
    troubled: &HashSet<u32>,
    seconds: f64,
) -> Verdict {
    let mut verdict = Verdict {
        committed: written.committed.len() as u64,
        rolled_back: written.rolled_back.len() as u64,
        seconds,
        ..Verdict::default()
    };
    let mut by: HashMap<Uuid, Vec<&Entry>> = HashMap::new();
    let mut latest: HashMap<&str, u64> = HashMap::new();
    for entry in delivered {
        if !written.committed.contains(&entry.id) {
            verdict.phantom += 1;
            continue;
        }
        let before = by.entry(entry.id).or_default();
        if before.is_empty() {
            let highest = latest.entry(entry.key.as_str()).or_default();
            verdict.out_of_order += u64::from(entry.number <= *highest);
            *highest = entry.number.max(*highest);
        } else {
            verdict.duplicated += 1;
            // Whoever had it before was interrupted between delivering and saying so; or this one was, before it delivered, and its
            // lane has gone over since.
            let is_late = |other: &&Entry| troubled.contains(&entry.pid) && entry.epoch < other.epoch;
            let is_explained = before.iter().any(|other| troubled.contains(&other.pid) || is_late(other));
            verdict.duplicates_explained += u64::from(is_explained);
        }
        before.push(entry);
    }
    verdict.delivered = by.len() as u64;
    verdict.lost = verdict.committed - verdict.delivered;
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u128, key: &str, number: u64, pid: u32) -> Entry {
        Entry { pid, id: Uuid::from_u128(id), key: key.to_owned(), number, epoch: 1 }
    }

    fn written(committed: &[u128], rolled_back: &[u128]) -> Written {
        let ids = |ids: &[u128]| ids.iter().copied().map(Uuid::from_u128).collect();
        Written { committed: ids(committed), rolled_back: ids(rolled_back) }
    }

    #[test]
    fn all_well() {
        let delivered = [entry(1, "a", 1, 7), entry(3, "b", 1, 8), entry(2, "a", 2, 7)];
        let verdict = judge(&written(&[1, 2, 3], &[4]), &delivered, &HashSet::new(), 1.0);
        assert!(verdict.holds(), "{verdict:?}");
        assert_eq!((verdict.delivered, verdict.rolled_back), (3, 1));
    }

    #[test]
    fn each_fault_is_seen() {
        let of = |delivered: &[Entry], troubled: &[u32]| {
            judge(&written(&[1, 2], &[4]), delivered, &troubled.iter().copied().collect(), 1.0)
        };
        let lost = of(&[entry(1, "a", 1, 7)], &[]);
        assert!(!lost.holds() && lost.lost == 1);
        let phantom = of(&[entry(1, "a", 1, 7), entry(2, "a", 2, 7), entry(4, "a", 3, 7)], &[]);
        assert!(!phantom.holds() && phantom.phantom == 1);
        let out_of_order = of(&[entry(2, "a", 2, 7), entry(1, "a", 1, 7)], &[]);
        assert!(!out_of_order.holds() && out_of_order.out_of_order == 1);
        let twice = [entry(1, "a", 1, 7), entry(1, "a", 1, 8), entry(2, "a", 2, 8)];
        let unexplained = of(&twice, &[]);
        assert!(!unexplained.holds() && unexplained.duplicated == 1);
        let explained = of(&twice, &[7]);
        assert!(explained.holds() && explained.duplicates_explained == 1);
        let again = Entry { epoch: 2, ..entry(1, "a", 1, 8) };
        let late = [again.clone(), entry(1, "a", 1, 7), entry(2, "a", 2, 8)];
        assert!(of(&late, &[7]).holds(), "it was frozen with the event in hand");
        let anew = [again, Entry { epoch: 3, ..entry(1, "a", 1, 7) }, entry(2, "a", 2, 8)];
        assert!(!of(&anew, &[7]).holds(), "it has leased the lane again, and delivers what was delivered");
    }
}
