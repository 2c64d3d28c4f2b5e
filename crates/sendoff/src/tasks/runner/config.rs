//! How a runner works.

use std::time::Duration;

/// How a runner works.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerConfig {
    /// What people call it.
    pub name: String,
    /// So many tasks run at a time.
    pub concurrency: u32,
    /// How long its tasks stay its own after its last sign of life, which it gives three times as often.
    pub lease: Duration,
    /// How soon it looks again when there was nothing to do: first so soon, and then ever later.
    pub poll_first: Duration,
    /// No later than this.
    pub poll_most: Duration,
    /// How often it looks whether tasks that run here were cancelled.
    pub watch: Duration,
    /// How long tasks that run may go on when it stops.
    pub drain: Duration,
    /// When a failed task is tried again.
    pub retry: RetryPolicy,
}

impl Default for RunnerConfig {
    fn default() -> Self {
        Self {
            name: "tasks".to_owned(),
            concurrency: 16,
            lease: Duration::from_secs(30),
            poll_first: Duration::from_millis(20),
            poll_most: Duration::from_secs(1),
            watch: Duration::from_secs(1),
            drain: Duration::from_secs(30),
            retry: RetryPolicy::default(),
        }
    }
}

/// When a failed task is tried again: twice as late each time, with jitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// After the first attempt.
    pub first: Duration,
    /// No later than this.
    pub most: Duration,
    /// By how much of itself a wait may be shorter, so that tasks which failed together are not tried together: 0 to 1.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_secs(3_600), jitter: 0.2 }
    }
}

impl RetryPolicy {
    /// After this attempt has failed; counted from 1.
    pub fn wait(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let wait = self.first.saturating_mul(1 << doublings).min(self.most);
        wait.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most() {
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let waits: Vec<u64> = [1, 2, 3, 12, 13, 1_000].map(|attempt| policy.wait(attempt).as_secs()).to_vec();
        assert_eq!(waits, [1, 2, 4, 2_048, 3_600, 3_600]);
        let jittered = RetryPolicy::default();
        for _ in 0..100 {
            let wait = jittered.wait(3);
            assert!(wait <= Duration::from_secs(4) && wait >= Duration::from_millis(3_200), "{wait:?}");
        }
    }
}
