//! From the outcome of an event to what is written about it.

use super::config::{OnExhausted, Outcome};
use super::state::InFlight;
use crate::event::Attempts;
use crate::outbox::{Cause, Change, Due, Failure, Reason};

/// What becomes of an event. None: it stays as it is.
pub(super) fn change(
    event: &InFlight,
    outcome: &Outcome,
    policy: OnExhausted,
    is_behind: bool,
) -> Option<Change> {
    let attempts = event.attempts;
    match outcome {
        Outcome::Published => Some(Change::Publish),
        Outcome::Retry { after, failure } => Some(Change::Park {
            reason: Reason::Retry,
            due: Due::In(*after),
            attempts: Attempts { failures: attempts.failures.saturating_add(1), ..attempts },
            failure: Some(failure.clone()),
        }),
        Outcome::GiveUp { failure } => {
            let failures = attempts.failures.saturating_add(1);
            Some(give_up(policy, event.key.is_some(), Attempts { failures, ..attempts }, failure.clone()))
        }
        Outcome::Release if is_behind && event.place.is_hot() => Some(behind(attempts)),
        Outcome::Release => None,
    }
}

/// It waits for what is before it in its key.
pub(super) fn behind(attempts: Attempts) -> Change {
    Change::Park { reason: Reason::Behind, due: Due::Never, attempts, failure: None }
}

/// It goes where the earlier ones of its key went.
pub(super) fn diverted(attempts: Attempts) -> Change {
    let failure = Failure::new(Cause::Diverted, "an earlier event of its key is dead");
    Change::Bury { attempts, failure, diverts: false }
}

/// What the policy makes of an event that will not be tried again.
pub(super) fn give_up(policy: OnExhausted, has_key: bool, attempts: Attempts, failure: Failure) -> Change {
    match policy {
        OnExhausted::Block => {
            Change::Park { reason: Reason::Blocked, due: Due::Never, attempts, failure: Some(failure) }
        }
        OnExhausted::Skip => Change::Bury { attempts, failure, diverts: false },
        OnExhausted::Divert => Change::Bury { attempts, failure, diverts: has_key },
    }
}
