//! How long things took, in steps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The steps, in seconds: from a call on the same machine to a backlog of an hour.
pub(crate) const BOUNDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3600.0];

/// How many took so long at most, and how long all took together.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// One for each step, and one for what took longer.
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    pub(crate) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let step = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.counts.get(step) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many took at most as long as each step, all of them last.
    pub(crate) fn cumulative(&self) -> Vec<u64> {
        let mut sum = 0;
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        counts
            .map(|count| {
                sum += count;
                sum
            })
            .collect()
    }

    pub(crate) fn sum(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_as_long_as_a_step_is_in_it() {
        let histogram = Histogram::default();
        for micros in [0, 1_000, 1_001, 3_000_000, 7_200_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let cumulative = histogram.cumulative();
        assert_eq!((cumulative[0], cumulative[1]), (2, 3));
        assert_eq!((cumulative[10], cumulative[11]), (3, 4), "3 s is below 5 s, not below 2.5 s");
        assert_eq!(cumulative.last(), Some(&5), "what took longer is in the last");
        assert_eq!(histogram.sum(), Duration::from_micros(7_203_002_001));
    }
}
