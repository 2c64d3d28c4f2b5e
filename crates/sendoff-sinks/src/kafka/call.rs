//! What becomes of the records of one call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::error::RDKafkaErrorCode as Code;
use tokio::sync::Notify;

/// What has become of each record so far; none: it is on its way.
pub(super) type Reports = Vec<Option<Result<(), Code>>>;

/// Records that were sent together. Who waits for them is woken once, when the last one is reported: woken for each of them, it would cost more than
/// the records do.
#[derive(Debug)]
pub(super) struct Call {
    state: Mutex<State>,
    complete: Notify,
}

#[derive(Debug)]
struct State {
    reports: Reports,
    missing: usize,
}

impl Call {
    /// Of so many records, none of them reported.
    pub(super) fn new(records: usize) -> Self {
        let state = State { reports: vec![None; records], missing: records };
        Self { state: Mutex::new(state), complete: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first report of a record counts.
    pub(super) fn report(&self, number: usize, result: Result<(), Code>) {
        let mut state = self.state();
        let Some(report @ None) = state.reports.get_mut(number) else { return };
        *report = Some(result);
        state.missing -= 1;
        if state.missing == 0 {
            // One who comes later finds it as well.
            self.complete.notify_one();
        }
    }

    /// Waits until every record is reported.
    pub(super) async fn completed(&self) {
        while self.state().missing > 0 {
            self.complete.notified().await;
        }
    }

    /// What was reported so far.
    pub(super) fn reports(&self) -> Reports {
        self.state().reports.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_is_complete_with_its_last_record() {
        let call = Call::new(2);
        call.report(1, Err(Code::MessageTimedOut));
        call.report(1, Ok(()));
        call.report(7, Ok(()));
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(20), call.completed()).await;
        assert!(waiting.is_err(), "one is on its way");
        call.report(0, Ok(()));
        call.completed().await;
        call.completed().await;
        assert_eq!(call.reports(), [Some(Ok(())), Some(Err(Code::MessageTimedOut))]);
    }
}
