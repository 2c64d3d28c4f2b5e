//! When to look for events again.
//!
//! While events come, a worker looks every few milliseconds; the longer nothing has come, the rarer, up to the limit. Where the store can tell cheaply that
//! something was written, that is what is asked, and events are read only after it was.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The shortest wait between two looks.
const POLL_MIN: Duration = Duration::from_millis(2);

/// The wait is this part of the time in which nothing has come.
const POLL_PART: u32 = 8;

/// Wakes a relay of the same process: ring it after a commit, and the events are read at once.
///
/// A ring that is never heard costs nothing, and one that is forgotten costs a few milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Bell {
    notify: Arc<Notify>,
}

impl Bell {
    /// There may be new events.
    pub fn ring(&self) {
        self.notify.notify_waiters();
    }

    pub(crate) fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

/// How often one worker looks.
#[derive(Debug)]
pub(crate) struct Poll {
    max: Duration,
    /// When something last showed that events come.
    alive: Instant,
    /// When events were last read.
    claimed: Instant,
    newest: Option<i64>,
}

impl Poll {
    pub(crate) fn new(max: Duration, now: Instant) -> Self {
        Self { max, alive: now, claimed: now, newest: None }
    }

    /// Events came, or somebody rang.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.alive = now;
    }

    /// Events are being read.
    pub(crate) fn claims(&mut self, now: Instant) {
        self.claimed = now;
    }

    /// How long to wait before the next look.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        ((now - self.alive) / POLL_PART).clamp(POLL_MIN.min(self.max), self.max)
    }

    /// The store was asked for the newest position. True: read events.
    ///
    /// A position is seen when it is taken, which is before its transaction commits. So for a while after each one events are read in any case,
    /// though rarer than the position.
    pub(crate) fn saw(&mut self, newest: Option<i64>, now: Instant) -> bool {
        let Some(newest) = newest else { return true };
        if self.newest.replace(newest) != Some(newest) {
            self.alive = now;
            return true;
        }
        now - self.claimed >= (self.wait(now) * 2).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(250);

    #[tokio::test]
    async fn it_looks_often_while_events_come_and_rarely_after_a_while() {
        let start = Instant::now();
        let poll = Poll::new(MAX, start);
        assert_eq!(poll.wait(start), POLL_MIN);
        assert_eq!(poll.wait(start + Duration::from_millis(80)), Duration::from_millis(10));
        assert_eq!(poll.wait(start + Duration::from_secs(60)), MAX);
    }

    #[tokio::test]
    async fn a_new_position_is_read_at_once_and_an_old_one_now_and_then() {
        let start = Instant::now();
        let mut poll = Poll::new(MAX, start);
        assert!(poll.saw(Some(7), start));
        poll.claims(start);
        let idle = start + Duration::from_secs(10);
        poll.claims(idle);
        assert!(!poll.saw(Some(7), idle + Duration::from_millis(100)));
        assert!(poll.saw(Some(7), idle + MAX), "a transaction that took long has committed, maybe");
        assert!(poll.saw(Some(8), idle + Duration::from_millis(100)));
        assert_eq!(poll.wait(idle + Duration::from_millis(100)), POLL_MIN);
        assert!(poll.saw(None, idle), "a store that cannot tell is read every time");
    }
}
