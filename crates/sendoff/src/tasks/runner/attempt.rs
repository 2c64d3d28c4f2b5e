//! One attempt of one task.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::watch;

use super::Inner;
use super::context::Context;
use super::handler::{Fate, TaskError};
use super::state::Shared;
use crate::error::StoreError;
use crate::tasks::{Settled, Task, TaskToken, When};

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Outcome {
    Completed,
    Failed { text: String },
    Retry { when: When, text: String },
}

/// An attempt that has ended, to be settled.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) token: TaskToken,
    pub(super) outcome: Outcome,
    pub(super) panicked: bool,
}

/// Runs a task to its end. A panic is a failure like any other.
pub(super) async fn run(
    inner: Arc<Inner>,
    task: Task,
    token: TaskToken,
    cancelled: watch::Receiver<bool>,
) -> Ended {
    let context = Context {
        store: Arc::clone(&inner.store),
        token,
        kind: task.kind.as_str().into(),
        attempts_max: task.attempts_max,
        cancelled,
    };
    let retry = |text| Outcome::Retry { when: When::In(inner.config.retry.wait(token.attempt)), text };
    let Some(handler) = inner.handlers.of(&task.kind) else {
        // Claims ask for the kinds that have one.
        return Ended { token, outcome: retry("it has no handler here".to_owned()), panicked: false };
    };
    let payload = task.payload;
    let ran = without_panic(async move { handler(context, payload).await }).await;
    let panicked = ran.is_err();
    let outcome = match ran {
        Ok(Ok(())) => Outcome::Completed,
        Ok(Err(TaskError { fate: Fate::Fatal, text })) => Outcome::Failed { text },
        Ok(Err(TaskError { fate: Fate::RetryIn(wait), text })) => {
            Outcome::Retry { when: When::In(wait), text }
        }
        Ok(Err(TaskError { fate: Fate::Retry, text })) => retry(text),
        Err(panic) => retry(format!("its handler panicked: {}", words(&*panic))),
    };
    Ended { token, outcome, panicked }
}

/// The future's output, or what it panicked with.
async fn without_panic<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// Settles what has ended; what could not be settled stays in the list.
pub(super) async fn settle(inner: &Inner, shared: &Shared, ended: &mut Vec<Ended>) -> Result<(), StoreError> {
    let done: Vec<TaskToken> = ended
        .iter()
        .filter(|ended| matches!(ended.outcome, Outcome::Completed))
        .map(|ended| ended.token)
        .collect();
    if !done.is_empty() {
        let answers = inner.store.complete(&done).await?;
        let mut state = shared.state();
        for answer in answers {
            match answer {
                Settled::Applied => state.stats.completed += 1,
                Settled::Stale => state.stats.stale += 1,
            }
        }
        drop(state);
        ended.retain(|ended| !matches!(ended.outcome, Outcome::Completed));
    }
    while let Some(last) = ended.last() {
        let answer = match &last.outcome {
            Outcome::Completed => Settled::Stale,
            Outcome::Failed { text } => inner.store.fail(&last.token, text).await?,
            Outcome::Retry { when, text } => inner.store.schedule_retry(&last.token, *when, text).await?,
        };
        let mut state = shared.state();
        state.stats.panicked += u64::from(last.panicked);
        match (answer, &last.outcome) {
            (Settled::Stale, _) => state.stats.stale += 1,
            (Settled::Applied, Outcome::Failed { .. }) => state.stats.failed += 1,
            (Settled::Applied, _) => state.stats.retried += 1,
        }
        drop(state);
        ended.pop();
    }
    Ok(())
}
