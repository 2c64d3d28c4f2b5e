//! From when on an event that is sent again may be seen twice: the retries beside the time for which the sink can tell.

use std::fmt;
use std::time::Duration;

use sendoff::Capabilities;

use crate::config::TargetConfig;

/// Whether an event that was sent, and sent again since no answer came, can be seen twice by consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// The sink does not tell the second from the first.
    Always,
    /// The sink tells, but not for as long as it may be tried again.
    From {
        /// This attempt may come too late.
        attempt: u32,
        /// For so long the sink can tell.
        window: Duration,
        /// For so long it is tried.
        horizon: Duration,
    },
    /// The sink tells for longer than it is tried, unless the relay or the sink is away for longer.
    Never {
        /// For so long the sink can tell.
        window: Duration,
    },
}

impl TargetConfig {
    /// What a sink of these capabilities makes of events that are sent again.
    pub fn repeats(&self, capabilities: &Capabilities) -> Repeats {
        let Some(window) = capabilities.dedupes_for else { return Repeats::Always };
        let mut passed = Duration::ZERO;
        let mut attempt = None;
        for failures in 0..self.retry.attempts.saturating_sub(1) {
            // At most: a random part of it is waited.
            passed =
                passed.saturating_add(self.publish_timeout).saturating_add(self.retry.wait(failures, 1.0));
            if passed > window && attempt.is_none() {
                attempt = Some(failures + 2);
            }
        }
        match attempt {
            Some(attempt) => Repeats::From { attempt, window, horizon: passed },
            None => Repeats::Never { window },
        }
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str(
                "the sink does not tell a second delivery from the first: an event that is sent again may be seen twice, and is told by its id",
            ),
            Self::From { attempt, window, horizon } => write!(
                f,
                "the sink drops a second delivery for {window:?}, but an event is tried for up to {horizon:?}: from attempt {attempt} on it may be seen twice, \
                 and after an outage that is longer"
            ),
            Self::Never { window } => write!(
                f,
                "the sink drops a second delivery for {window:?}, longer than an event is tried: it may be seen twice only after an outage that is longer"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::RetryPolicy;

    fn config(attempts: u32) -> TargetConfig {
        let retry = RetryPolicy { base: Duration::from_secs(1), cap: Duration::from_secs(4), attempts };
        TargetConfig { retry, publish_timeout: Duration::from_secs(10), ..TargetConfig::default() }
    }

    fn repeats(attempts: u32, seconds: Option<u64>) -> Repeats {
        let dedupes_for = seconds.map(Duration::from_secs);
        config(attempts).repeats(&Capabilities { dedupes_for, ..Capabilities::default() })
    }

    #[test]
    fn the_window_is_compared_with_how_long_an_event_is_tried() {
        assert_eq!(repeats(5, None), Repeats::Always);
        // Waits of at most 1, 2, 4 and 4 seconds, each after a call of at most 10.
        let (window, horizon) = (Duration::from_secs(25), Duration::from_secs(51));
        assert_eq!(repeats(5, Some(25)), Repeats::From { attempt: 4, window, horizon });
        assert_eq!(repeats(5, Some(51)), Repeats::Never { window: horizon });
        assert_eq!(repeats(1, Some(1)), Repeats::Never { window: Duration::from_secs(1) });
    }

    #[test]
    fn people_are_told_from_when_on() {
        let text = repeats(5, Some(25)).to_string();
        assert!(
            text.contains("for 25s") && text.contains("up to 51s") && text.contains("from attempt 4 on"),
            "{text}"
        );
    }
}
