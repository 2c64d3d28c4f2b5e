//! Whether a sink is taken to be there. Time is told, not asked.

use std::time::Duration;

use tokio::time::Instant;

/// What is done while a sink is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// It is looked at again after this time, which doubles each time that it is still down.
    pub probe: Duration,
    /// And so often at least.
    pub probe_max: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { probe: Duration::from_millis(100), probe_max: Duration::from_secs(2) }
    }
}

/// The state of one sink.
#[derive(Debug)]
pub(crate) struct Breaker {
    config: BreakerConfig,
    state: State,
    /// How long the next opening lasts.
    pause: Duration,
    /// What the sink said when it went down, until it has delivered an event again: it may be reached and still take nothing.
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    /// Nothing is sent before then.
    Open {
        until: Instant,
    },
    /// Somebody looks whether it is back.
    Probing,
}

/// What a worker may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    /// Claim and publish.
    Send,
    /// Look whether the sink is back, and tell [`Breaker::probed`].
    Probe,
    /// Ask again by then.
    Wait(Instant),
}

impl Breaker {
    pub(crate) fn new(config: BreakerConfig) -> Self {
        Self { config, state: State::Closed, pause: config.probe, error: None }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// What the sink said when it went down; none: it has delivered since.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(crate) fn permit(&mut self, now: Instant) -> Permit {
        match self.state {
            State::Closed => Permit::Send,
            State::Open { until } if now >= until => {
                self.state = State::Probing;
                Permit::Probe
            }
            State::Open { until } => Permit::Wait(until),
            State::Probing => Permit::Wait(now + self.config.probe),
        }
    }

    /// What a look at it has shown. A pause grows until an event has been delivered: a sink may be reached and still take nothing.
    pub(crate) fn probed(&mut self, is_there: bool, now: Instant) {
        if is_there {
            self.state = State::Closed;
        } else {
            self.open(now);
        }
    }

    /// An event was delivered.
    pub(crate) fn delivered(&mut self) {
        // One that was sent before it went down may be answered after: it is not back for that.
        if self.is_closed() {
            self.pause = self.config.probe;
            self.error = None;
        }
    }

    /// The sink said that it is down. True: that is news.
    pub(crate) fn went_down(&mut self, error: &str, now: Instant) -> bool {
        // What was sent before it opened comes back later, and tells nothing new.
        let is_news = self.state == State::Closed;
        if is_news {
            self.error = Some(error.to_owned());
            self.open(now);
        }
        is_news
    }

    fn open(&mut self, now: Instant) {
        self.state = State::Open { until: now + self.pause };
        self.pause = (self.pause * 2).min(self.config.probe_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_opens_probes_and_closes() {
        let start = Instant::now();
        let config = BreakerConfig::default();
        let mut breaker = Breaker::new(config);
        assert_eq!(breaker.permit(start), Permit::Send);
        assert_eq!(breaker.error(), None);
        assert!(breaker.went_down("gone", start));
        assert_eq!(breaker.error(), Some("gone"));
        assert!(!breaker.went_down("gone", start), "the rest of a batch is no news");
        assert_eq!(breaker.permit(start), Permit::Wait(start + config.probe));
        let later = start + config.probe;
        assert_eq!(breaker.permit(later), Permit::Probe);
        assert!(matches!(breaker.permit(later), Permit::Wait(_)), "one looks at a time");
        breaker.probed(false, later);
        assert_eq!(breaker.permit(later), Permit::Wait(later + config.probe * 2));
        let last = later + config.probe * 2;
        assert_eq!(breaker.permit(last), Permit::Probe);
        breaker.probed(true, last);
        assert_eq!((breaker.permit(last), breaker.error()), (Permit::Send, Some("gone")));
        // It was reached, but took nothing: the pause goes on growing.
        assert!(breaker.went_down("gone", last));
        assert_eq!(breaker.permit(last), Permit::Wait(last + config.probe * 4));
        breaker.probed(true, last);
        breaker.delivered();
        assert_eq!(breaker.error(), None);
        assert!(breaker.went_down("gone", last));
        assert_eq!(breaker.permit(last), Permit::Wait(last + config.probe));
    }

    #[tokio::test]
    async fn an_answer_to_what_was_sent_before_does_not_make_it_be_back() {
        let now = Instant::now();
        let mut breaker = Breaker::new(BreakerConfig::default());
        breaker.went_down("gone", now);
        breaker.delivered();
        assert_eq!(breaker.error(), Some("gone"));
        breaker.probed(true, now);
        breaker.delivered();
        assert_eq!(breaker.error(), None);
    }

    #[tokio::test]
    async fn the_pause_is_bounded() {
        let mut now = Instant::now();
        let mut breaker = Breaker::new(BreakerConfig::default());
        breaker.went_down("gone", now);
        for _ in 0..50 {
            if let Permit::Wait(until) = breaker.permit(now) {
                assert!(until - now <= BreakerConfig::default().probe_max);
                now = until;
            } else {
                breaker.probed(false, now);
            }
        }
    }
}
