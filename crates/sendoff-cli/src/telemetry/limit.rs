//! A line that repeats itself is not logged each time: a store that is away is asked again and again, and every worker says so.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// So many of the same are logged at once.
const BURST: u32 = 3;

/// And one more after each such time.
const EVERY: Duration = Duration::from_secs(30);

/// More that differ are not remembered.
const REMEMBERED: usize = 1_000;

/// What two lines are the same by, beside where they come from. Numbers and times change with each.
const TOLD_APART_BY: [&str; 3] = ["message", "error", "target_name"];

/// Lets only some of the same lines pass.
#[derive(Debug, Default)]
pub(super) struct Limit {
    quotas: Mutex<HashMap<u64, Quota>>,
}

#[derive(Debug)]
struct Quota {
    left: u32,
    since: Instant,
}

impl Limit {
    fn permits(&self, line: u64, now: Instant) -> bool {
        let mut quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        if quotas.len() >= REMEMBERED && !quotas.contains_key(&line) {
            quotas.clear();
        }
        let quota = quotas.entry(line).or_insert(Quota { left: BURST, since: now });
        if now.saturating_duration_since(quota.since) >= EVERY {
            *quota = Quota { left: quota.left.saturating_add(1).min(BURST), since: now };
        }
        let is_permitted = quota.left > 0;
        quota.left = quota.left.saturating_sub(1);
        is_permitted
    }
}

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        // Who wants to see everything sees everything.
        if *event.metadata().level() > Level::INFO {
            return true;
        }
        let mut words = Words(DefaultHasher::new());
        event.metadata().callsite().hash(&mut words.0);
        event.record(&mut words);
        self.permits(words.0.finish(), Instant::now())
    }
}

struct Words(DefaultHasher);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if TOLD_APART_BY.contains(&field.name()) {
            format!("{value:?}").hash(&mut self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_logged_a_few_times_and_then_now_and_then() {
        let limit = Limit::default();
        let start = Instant::now();
        let passed = |at: u64| limit.permits(1, start + Duration::from_secs(at));
        assert_eq!([0, 0, 1, 2, 29].map(passed), [true, true, true, false, false]);
        assert_eq!([30, 31, 59, 60, 61].map(passed), [true, false, false, true, false]);
        assert!(limit.permits(2, start), "another one is another matter");
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let limit = Limit::default();
        for line in 0..10 * REMEMBERED as u64 {
            limit.permits(line, Instant::now());
        }
        assert!(limit.quotas.lock().unwrap_or_else(PoisonError::into_inner).len() <= REMEMBERED);
    }
}
