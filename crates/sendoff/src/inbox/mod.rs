//! The consumer's half of reliable delivery: each event handled once, however often it arrives, and arrivals out of order told.
//!
//! A relay delivers at least once. A consumer that writes to a database makes that one effect for each event: in the transaction of its effect it calls `Inbox::once`, which says
//! whether the event is [`First`](Once::First) or was [`Seen`](Once::Seen), and it acknowledges the event to the broker after its commit.
//!
//! - `Inbox` writes in the consumer's own transaction, with any of the drivers that `Outbox` takes: `once` and `once_many`; `follow` for the order of keys.
//! - `SqlInbox::migration` makes its tables, and `SqlInbox` looks after them: [`Inspect`] has the figures, and `purge`.
//! - [`Arrival`] reads what the relay says about an event from the headers that a broker delivers; [`OrderChecker`] says how arrivals of a key stand to each other.
//!
//! # How long it is remembered
//!
//! For as long as its row is there: [`Inspect::purge`] deletes what is older than you say. Keep rows for longer than a copy may take to arrive: the relay's retries and leases, an outage of the broker or of
//! the consumer, whatever the broker itself keeps and redelivers, and an operator who redrives a dead event. A week is a good beginning; see `docs/inbox.md`.

mod arrival;
mod inspect;
mod order;

use std::fmt;

use serde::Serialize;

pub use arrival::{Arrival, ArrivalError};
pub use inspect::{CONSUMERS_MAX, ConsumerStats, InboxStats, Inspect};
#[cfg(feature = "_sql")]
pub(crate) use order::Mark;
pub use order::{Order, OrderChecker};

#[cfg(feature = "_sql")]
pub use crate::stores::Inbox;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use crate::stores::SqlInbox;

#[cfg(feature = "_sql")]
use crate::error::StoreError;

/// The longest name of a consumer, in bytes.
pub const CONSUMER_BYTES_MAX: usize = 255;
/// The longest source that a key is followed under, in bytes.
pub const SOURCE_BYTES_MAX: usize = 255;

/// Whether an event is new to a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[must_use = "an event that was seen is not to be handled again"]
pub enum Once {
    /// This transaction is the first to handle it: go on. If it rolls back, it was not.
    First,
    /// Another transaction of this consumer has handled it, or this one has: acknowledge it and do no more.
    Seen,
}

impl Once {
    /// Whether it is the first.
    pub fn is_first(self) -> bool {
        self == Self::First
    }
}

impl fmt::Display for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Seen => "seen",
        })
    }
}

#[cfg(feature = "_sql")]
pub(crate) fn check_consumer(op: &'static str, consumer: &str) -> Result<(), StoreError> {
    check_text(op, "consumer", consumer, CONSUMER_BYTES_MAX, false)
}

#[cfg(feature = "_sql")]
pub(crate) fn check_key(op: &'static str, key: &str) -> Result<(), StoreError> {
    check_text(op, "key", key, crate::event::KEY_BYTES_MAX, false)
}

#[cfg(feature = "_sql")]
pub(crate) fn check_source(op: &'static str, source: &str) -> Result<(), StoreError> {
    check_text(op, "source", source, SOURCE_BYTES_MAX, true)
}

#[cfg(feature = "_sql")]
fn check_text(
    op: &'static str,
    part: &'static str,
    text: &str,
    most: usize,
    may_be_empty: bool,
) -> Result<(), StoreError> {
    let refuse = |detail: String| Err(StoreError::rejected(op, part, detail));
    if text.is_empty() && !may_be_empty {
        return refuse("it is empty; give it a name".to_owned());
    }
    if text.contains(|letter: char| letter.is_control()) {
        return refuse("it has a control character, such as NUL or a line break".to_owned());
    }
    if text.len() > most {
        return refuse(format!("it has {} bytes; at most {most} are taken", text.len()));
    }
    Ok(())
}

#[cfg(all(test, feature = "_sql"))]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_anything_is_sent() {
        check_consumer("once", &"x".repeat(255)).unwrap();
        check_source("follow", "").unwrap();
        for (name, part) in [
            ("", "consumer: rejected: it is empty"),
            ("a\nb", "consumer: rejected: it has a control character"),
            (&*"ü".repeat(128), "consumer: rejected: it has 256 bytes; at most 255"),
        ] {
            let error = check_consumer("once", name).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
