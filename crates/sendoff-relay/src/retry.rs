//! From a delivery to an outcome: what is tried again, and when. No clock and no store is asked here.

use std::time::Duration;

use sendoff::outbox::{Cause, Failure, Outcome};
use sendoff::{Delivery, Event};

/// An event with this header is retried by its own policy: `attempts=3 base=1s cap=1m`, each part optional.
pub const RETRY_HEADER: &str = "sendoff-retry";

/// When a failed event is tried again.
///
/// The n-th retry comes after a random part of `base * 2^n`, of `cap` at most: events that failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most that the first retry waits.
    pub base: Duration,
    /// The most that any waits.
    pub cap: Duration,
    /// After so many failed attempts it is given up.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    /// Over an hour in all, mostly spent in the last attempts.
    fn default() -> Self {
        Self { base: Duration::from_millis(500), cap: Duration::from_secs(600), attempts: 20 }
    }
}

impl RetryPolicy {
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.attempts == 0 {
            return Err("retry.attempts must be at least 1");
        }
        if self.base.is_zero() || self.cap < self.base {
            return Err("retry.base must be more than 0, and retry.cap no less than it");
        }
        Ok(())
    }

    /// This policy as an event's own header changes it.
    ///
    /// # Errors
    /// What of the header is not understood.
    pub fn for_event(self, event: &Event) -> Result<Self, String> {
        let Some(text) = event.headers.get(RETRY_HEADER) else { return Ok(self) };
        let mut policy = self;
        for part in text.split_whitespace() {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not name=value"))?;
            let duration =
                || parse_duration(value).ok_or_else(|| format!("{value:?} is no duration, such as 500ms"));
            match name {
                "attempts" => {
                    policy.attempts = value.parse().map_err(|_| format!("{value:?} is no number"))?;
                }
                "base" => policy.base = duration()?,
                "cap" => policy.cap = duration()?,
                _ => return Err(format!("{name:?} is none of attempts, base, cap")),
            }
        }
        policy.check().map_err(str::to_owned)?;
        Ok(policy)
    }

    /// How long the retry after so many failures waits; `random` is from 0 to 1.
    pub fn wait(&self, failures: u32, random: f64) -> Duration {
        let doubled = self.base.saturating_mul(1_u32.checked_shl(failures.min(31)).unwrap_or(u32::MAX));
        // Not at once: what failed a microsecond ago fails again.
        self.cap.min(doubled).mul_f64(random.clamp(0.0, 1.0)).max(self.base / 10)
    }

    /// What becomes of an event that was tried.
    pub(crate) fn outcome(&self, event: &Event, delivery: Delivery, random: f64) -> Outcome {
        let policy = self.for_event(event).unwrap_or_else(|error| {
            tracing::warn!(event = %event.event_id, header = RETRY_HEADER, error, "an event's own retry policy is ignored");
            *self
        });
        match delivery {
            Delivery::Delivered => Outcome::Published,
            Delivery::Retry { error, after } => {
                let failures = event.attempts.failures;
                let failure = Failure::new(Cause::Transient, error);
                if failures.saturating_add(1) >= policy.attempts {
                    Outcome::GiveUp { failure }
                } else {
                    let wait = policy.wait(failures, random).max(after.unwrap_or_default());
                    Outcome::Retry { after: wait, failure }
                }
            }
            Delivery::Reject { error } => Outcome::GiveUp { failure: Failure::new(Cause::Rejected, error) },
            Delivery::Untried | Delivery::Down { .. } => Outcome::Release,
        }
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3_600).map(Duration::from_secs),
        _ => None,
    }
}
