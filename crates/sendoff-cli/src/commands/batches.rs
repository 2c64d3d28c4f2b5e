//! What deletes much does so a batch at a time, each in a transaction of its own, and says how far it is.

use std::future::Future;
use std::time::Duration;

use sendoff::StoreError;
use tokio::time::Instant;

/// It says so this often.
const TOLD_EVERY: Duration = Duration::from_secs(2);

/// Until nothing is left; how many there were. On standard error, every now and then, how many so far.
pub(super) async fn all<F>(what: &str, mut batch: impl FnMut() -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<u64, StoreError>>,
{
    let mut total = 0;
    let mut told = Instant::now();
    loop {
        let gone = match batch().await {
            Ok(0) => return Ok(total),
            Ok(gone) => gone,
            Err(error) => {
                if total > 0 {
                    eprintln!("{total} {what} were deleted before this went wrong; the rest is there");
                }
                return Err(error);
            }
        };
        total += gone;
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            eprintln!("{total} {what} so far");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use sendoff::StoreErrorKind;

    use super::*;

    #[tokio::test]
    async fn batches_go_on_until_nothing_is_left() {
        let mut left = vec![0, 3, 10, 10];
        assert_eq!(all("rows", || std::future::ready(Ok(left.pop().unwrap()))).await.unwrap(), 23);
        assert_eq!(left, [0; 0], "nothing is asked after a batch was empty");
        let mut answers =
            vec![Err(StoreError::new(StoreErrorKind::Unavailable, "purge", "event", "away")), Ok(7)];
        let ended = all("rows", || std::future::ready(answers.pop().unwrap())).await;
        assert_eq!(ended.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
}
