//! What handlers have run.

use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

/// What every task of every system carries: its number, as JSON.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) number: u32,
}

/// Counts how often the task of each number was run, by whatever handler.
#[derive(Debug)]
pub(crate) struct Tally {
    runs: Vec<AtomicU32>,
    first_runs: AtomicU32,
    /// Numbers that nobody has enqueued.
    strange: AtomicU32,
}

/// What a tally came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Tasks that no handler has run.
    pub(crate) missed: u32,
    /// Runs beyond the first of each task.
    pub(crate) repeated: u32,
    /// Tasks that the database does not have as completed.
    pub(crate) unsettled: u64,
}

impl Tally {
    pub(crate) fn new(tasks: u32) -> Self {
        let runs = (0..tasks).map(|_| AtomicU32::new(0)).collect();
        Self { runs, first_runs: AtomicU32::new(0), strange: AtomicU32::new(0) }
    }

    /// The whole handler: every system calls this and nothing else.
    pub(crate) fn ran(&self, work: Work) {
        match self.runs.get(work.number as usize) {
            Some(runs) if runs.fetch_add(1, Ordering::Relaxed) == 0 => {
                self.first_runs.fetch_add(1, Ordering::Relaxed);
            }
            Some(_) => {}
            None => {
                self.strange.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Every task has been run at least once.
    pub(crate) fn is_full(&self) -> bool {
        self.first_runs.load(Ordering::Relaxed) as usize == self.runs.len()
    }

    /// To be asked when nothing runs any more.
    pub(crate) fn faults(&self, unsettled: u64) -> Faults {
        let mut faults = Faults { missed: 0, repeated: self.strange.load(Ordering::Relaxed), unsettled };
        for runs in &self.runs {
            match runs.load(Ordering::Relaxed) {
                0 => faults.missed += 1,
                runs => faults.repeated += runs - 1,
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_or_repeated_is_counted() {
        let tally = Tally::new(4);
        for number in [0, 1, 1, 1, 3, 9] {
            tally.ran(Work { number });
        }
        assert!(!tally.is_full());
        assert_eq!(tally.faults(5), Faults { missed: 1, repeated: 3, unsettled: 5 });
        tally.ran(Work { number: 2 });
        assert!(tally.is_full());
    }
}
