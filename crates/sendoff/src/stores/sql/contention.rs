//! Contention is not an error to the caller: it is tried again, with jitter, for a bounded time.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{StoreError, StoreErrorKind};

/// How long a store tries again by itself before it says `Contended`.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Runs `attempt` until it answers anything but `Contended`. An attempt must be whole: either
/// committed or rolled back when it says `Contended`, so that nothing is ever done twice.
pub(crate) async fn retry<T, F, Fut>(
    op: &'static str,
    subject: &str,
    patience: Duration,
    mut attempt: F,
) -> Result<T, StoreError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, StoreError>>,
{
    let started = Instant::now();
    let mut ceiling = FIRST_PAUSE;
    let mut tries = 1_u32;
    loop {
        match attempt().await {
            Err(error) if error.kind() == StoreErrorKind::Contended => {
                let waited = started.elapsed();
                if waited >= patience {
                    let detail = format!(
                        "gave up after {tries} tries in {:.1} s; another session holds what is needed: \
                         look for a long transaction, then try again",
                        waited.as_secs_f64()
                    );
                    return Err(
                        StoreError::new(StoreErrorKind::Contended, op, subject, detail).caused_by(error)
                    );
                }
                tracing::debug!(op, subject, tries, "contended; trying again");
                // Full jitter: claimers that collided once must not collide again in step.
                tokio::time::sleep(ceiling.mul_f64(fastrand::f64())).await;
                ceiling = (ceiling * 2).min(LONGEST_PAUSE);
                tries += 1;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn contended() -> StoreError {
        StoreError::new(StoreErrorKind::Contended, "claim", "t", "deadlock")
    }

    #[tokio::test(start_paused = true)]
    async fn tries_again_until_it_works() {
        let tries = Cell::new(0);
        let answer = retry("claim", "t", PATIENCE, || async {
            tries.set(tries.get() + 1);
            if tries.get() < 5 { Err(contended()) } else { Ok(tries.get()) }
        })
        .await;
        assert_eq!(answer.unwrap(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_in_bounded_time_and_says_so() {
        let started = Instant::now();
        let answer: Result<(), _> = retry("claim", "t", PATIENCE, || async { Err(contended()) }).await;
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Contended);
        assert!(error.to_string().contains("gave up after"), "{error}");
        assert!(started.elapsed() < PATIENCE + LONGEST_PAUSE * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn other_errors_are_not_tried_again() {
        let tries = Cell::new(0);
        let answer: Result<(), _> = retry("claim", "t", PATIENCE, || async {
            tries.set(tries.get() + 1);
            Err(StoreError::new(StoreErrorKind::Unavailable, "claim", "t", "reply lost"))
        })
        .await;
        assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(tries.get(), 1, "a claim with an unknown outcome must never be sent twice");
    }
}
