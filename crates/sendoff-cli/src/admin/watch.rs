//! Looks after one store: whether it answers, and what its outbox holds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sendoff::outbox::Inspect;
use sendoff_relay::RelayHandle;
use sendoff_relay::metrics::{self, OutboxView, Page};
use tokio::time::Instant;

use crate::output::span;

/// The outbox is counted no more often than this.
const COUNT_EVERY: Duration = Duration::from_secs(15);

/// A count that takes longer is given up, and tried again later.
const COUNT_TIMEOUT: Duration = Duration::from_secs(60);

/// A store is asked so often whether it is there, and oftener if it has to answer sooner.
const ASK_EVERY_MAX: Duration = Duration::from_secs(5);

/// A worker that has not got on for so long never will. Longer than any call of a sink or of a store may take.
const STUCK_AFTER: Duration = Duration::from_secs(5 * 60);

/// One store, with the relay that works on it.
pub(crate) struct Watch {
    store: String,
    relay: RelayHandle,
    inspect: Arc<dyn Inspect>,
    ready_within: Duration,
    seen: Mutex<Seen>,
}

struct Seen {
    /// When it last answered, or was first looked at.
    answered: Instant,
    is_up: bool,
    view: Option<(Instant, OutboxView)>,
}

impl Watch {
    /// A store that has just answered.
    pub(crate) fn new(
        store: &str,
        relay: RelayHandle,
        inspect: Arc<dyn Inspect>,
        ready_within: Duration,
    ) -> Self {
        let seen = Mutex::new(Seen { answered: Instant::now(), is_up: true, view: None });
        Self { store: store.to_owned(), relay, inspect, ready_within, seen }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks until it is dropped. The two are apart, so that a long count is not taken for silence.
    pub(super) async fn run(&self) {
        tokio::join!(self.ask(), self.count());
    }

    async fn ask(&self) {
        loop {
            let answered = tokio::time::timeout(self.ready_within, self.inspect.ping()).await;
            let is_up = matches!(answered, Ok(Ok(_)));
            {
                let mut seen = self.seen();
                seen.is_up = is_up;
                if is_up {
                    seen.answered = Instant::now();
                }
            }
            if let Ok(Err(error)) = answered {
                tracing::debug!(store = self.store, %error, "the store was asked whether it is there");
            }
            tokio::time::sleep((self.ready_within / 3).min(ASK_EVERY_MAX)).await;
        }
    }

    async fn count(&self) {
        loop {
            match tokio::time::timeout(COUNT_TIMEOUT, OutboxView::read(&*self.inspect)).await {
                Ok(Ok(view)) => self.seen().view = Some((Instant::now(), view)),
                Ok(Err(error)) => {
                    tracing::debug!(store = self.store, %error, "the outbox could not be counted");
                }
                Err(_) => {
                    tracing::warn!(
                        store = self.store,
                        "counting the outbox took too long; its figures are old"
                    );
                }
            }
            tokio::time::sleep(COUNT_EVERY).await;
        }
    }

    /// What is to be said if the store has not answered lately.
    pub(super) fn silent(&self) -> Option<String> {
        let age = self.seen().answered.elapsed();
        (age > self.ready_within)
            .then(|| format!("store {:?} has not answered for {}", self.store, span(age)))
    }

    /// What is to be said of workers that hang.
    pub(super) fn stuck(&self) -> Vec<String> {
        let stuck = self.relay.stuck(STUCK_AFTER);
        let say = |target| {
            let after = span(STUCK_AFTER);
            format!("target {target:?} of store {:?}: a worker has not got on for {after}", self.store)
        };
        stuck.into_iter().map(say).collect()
    }

    /// Its figures.
    pub(super) fn tell(&self, page: &mut Page) {
        page.relay(&self.store, &self.relay);
        let seen = self.seen();
        page.add(&metrics::STORE_UP, &[&self.store], f64::from(u8::from(seen.is_up)));
        page.add(&metrics::STORE_ANSWER_AGE, &[&self.store], seen.answered.elapsed().as_secs_f64());
        if let Some((read, view)) = &seen.view {
            page.outbox(&self.store, view, read.elapsed());
        }
    }
}
