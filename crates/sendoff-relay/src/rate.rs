//! At most so many events a second, over all workers of a target.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket that fills at the rate and holds a tenth of a second of it.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: f64,
    held: f64,
    filled: Instant,
}

impl Rate {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, held: Self::most(per_second), filled: now }
    }

    fn most(per_second: f64) -> f64 {
        (per_second / 10.0).max(1.0)
    }

    /// Takes up to `wanted`; if there is none, how long until there is one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub(crate) fn take(&mut self, wanted: usize, now: Instant) -> Result<usize, Duration> {
        let grown = (now - self.filled).as_secs_f64() * self.per_second;
        self.held = (self.held + grown).min(Self::most(self.per_second));
        self.filled = now;
        if self.held < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.held) / self.per_second));
        }
        let taken = (self.held as usize).min(wanted);
        self.held -= taken as f64;
        Ok(taken)
    }

    /// Gives back what was taken and not used.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn give_back(&mut self, unused: usize) {
        self.held += unused as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_gives_out_its_rate_and_no_more() {
        let start = Instant::now();
        let mut rate = Rate::new(1_000, start);
        let mut taken = 0;
        let mut now = start;
        while now < start + Duration::from_secs(10) {
            match rate.take(70, now) {
                Ok(some) => taken += some,
                Err(wait) => now += wait.max(Duration::from_micros(1)),
            }
        }
        assert!((10_000..=10_101).contains(&taken), "{taken}");
    }

    #[tokio::test]
    async fn what_is_given_back_is_given_out_again() {
        let now = Instant::now();
        let mut rate = Rate::new(10, now);
        assert_eq!(rate.take(5, now), Ok(1));
        rate.give_back(1);
        assert_eq!(rate.take(5, now), Ok(1));
        assert!(rate.take(5, now).is_err());
    }
}
