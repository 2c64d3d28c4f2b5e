//! One claiming loop's engine: lanes, events in flight, settlements. It publishes nothing.

mod admit;
mod baton;
mod changes;
mod config;
mod floors;
mod followers;
mod keeper;
mod plan;
mod share;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub use config::{Claimed, OnExhausted, Outcome, Receipt, Stats, Summary, WorkerConfig};

use self::admit::Admitted;
use self::keeper::Keeper;
use self::state::State;
use crate::error::StoreError;
use crate::outbox::{Flush, Lane, Member, Page, ParkedFetch, Store, Token, WorkerId};

/// One claiming loop on an outbox.
///
/// It keeps its share of the target's lanes leased in the background, for as long as it lives. [`claim`](Self::claim) hands out events of
/// those lanes; [`settle`](Self::settle) says what became of them. Both may be called at any time: to claim before everything is settled is to
/// prefetch, up to the window.
///
/// **Order.** Events of one key are handed out in the order of their positions, a run of them at a time, and no more of that key until the run is settled.
/// Publish a run in order and stop at its first failure; settle the rest with [`Outcome::Release`].
///
/// **Deadline.** Do not begin to publish after [`Claimed::deadline`]: by then the lane may be another's.
///
/// [`stop`](Self::stop) gives the lanes back at once. A worker that is dropped just stops renewing, and others take over when its leases end.
#[derive(Debug)]
pub struct Worker {
    inner: Arc<Inner>,
    /// None once it has been stopped.
    keeper: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    member: Member,
    config: WorkerConfig,
    state: Mutex<State>,
    /// One fetch at a time: what two of them read would have to be compared.
    fetching: tokio::sync::Mutex<()>,
    lane_emptied: Notify,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deadline_from(&self, before: Instant) -> Instant {
        before + self.config.lease - self.config.margin()
    }
}

impl Worker {
    /// Registers a worker and leases what is free of its share.
    ///
    /// # Errors
    /// As the store's, or `Rejected` for a configuration that cannot work.
    pub async fn start(store: Arc<dyn Store>, config: WorkerConfig) -> Result<Self, StoreError> {
        config.check()?;
        let member = Member {
            worker: WorkerId::generate(),
            name: config.name.clone(),
            target: config.target.clone(),
            lease: config.lease,
            scope: config.scope(),
        };
        let baton = member.scope.baton();
        store.join(&member).await?;
        let inner = Arc::new(Inner {
            store,
            member,
            config,
            state: Mutex::new(State::new(Instant::now(), baton)),
            fetching: tokio::sync::Mutex::new(()),
            lane_emptied: Notify::new(),
        });
        let mut first = Keeper::default();
        first.tick(&inner).await?;
        let keeper = tokio::spawn(keeper::run(Arc::clone(&inner), first));
        Ok(Self { inner, keeper: Mutex::new(Some(keeper)) })
    }

    /// What this worker is known by.
    pub fn id(&self) -> WorkerId {
        self.inner.member.worker
    }

    /// The lanes it has.
    pub fn lanes(&self) -> Vec<Lane> {
        self.inner.state().lanes.keys().copied().collect()
    }

    /// By this process's monotonic clock: nothing of the lane may be published after it. It moves on as the lease is renewed. None: the lane is no longer
    /// this worker's.
    pub fn deadline(&self, token: Token) -> Option<Instant> {
        self.inner.state().lane(token).map(|lane| lane.deadline)
    }

    /// Events handed out and not settled.
    pub fn in_flight(&self) -> usize {
        self.inner.state().in_flight()
    }

    /// What it has seen since it started.
    pub fn stats(&self) -> Stats {
        self.inner.state().stats
    }

    /// Up to `limit` events that are due. None: there are none now, or the window is full; ask again later.
    ///
    /// Dropped half-way, it may leave events in flight that nobody has, until the worker stops: run it to its end.
    ///
    /// # Errors
    /// As the store's; then nothing was handed out.
    pub async fn claim(&self, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        let inner = &self.inner;
        let _one = inner.fetching.lock().await;
        let config = &inner.config;
        let plan = inner.state().plan(limit, config, Instant::now());
        let Some(plan) = plan else { return Ok(Vec::new()) };
        let fetched = self.fetch(&plan).await;
        let admitted = {
            let mut state = inner.state();
            let admitted =
                fetched.map(|(parked, page)| state.admit(&plan, parked, page, config, Instant::now()));
            state.fetch_ended();
            if admitted.is_err() && plan.parked {
                state.poll_parked_in(Instant::now(), Duration::ZERO);
            }
            admitted?
        };
        self.apply_moves(&admitted).await;
        let mut handed = self.write_names(admitted).await;
        // What was moved or written down may have shown that a lane was lost.
        let mut state = inner.state();
        handed.retain(|claimed| state.lane(claimed.token).is_some());
        Ok(handed)
    }

    /// The parked events that may be tried, and a page of the others.
    async fn fetch(&self, plan: &plan::Plan) -> Result<(ParkedFetch, Page), StoreError> {
        let inner = &self.inner;
        let mut parked = ParkedFetch::nothing(None);
        if plan.parked {
            let asked = Instant::now();
            parked = inner.store.fetch_parked(&plan.fetch).await?;
            inner.state().parked_polled(asked, parked.next_due, !parked.events.is_empty());
        }
        Ok((parked, inner.store.fetch(&plan.fetch).await?))
    }

    /// What is moved aside is tried again with the next fetch if it fails: the rows are still there.
    async fn apply_moves(&self, admitted: &Admitted) {
        if admitted.moved.is_empty() && admitted.calm.is_empty() {
            return;
        }
        let inner = &self.inner;
        let flush = {
            let state = inner.state();
            let moved = admitted.moved.iter().filter(|moved| state.lanes.contains_key(&moved.lane));
            let calm = admitted.calm.iter().copied().filter(|lane| state.lanes.contains_key(lane));
            Flush {
                target: inner.member.target.clone(),
                tokens: state.tokens(),
                settlements: moved.cloned().collect(),
                calm: calm.collect(),
            }
        };
        match inner.store.settle(&flush).await {
            Ok(settled) => {
                inner.state().finish(&flush, &settled, Instant::now());
            }
            Err(error) => {
                tracing::warn!(%error, events = flush.settlements.len(), "events could not be moved aside; trying again");
            }
        }
    }

    async fn write_names(&self, admitted: Admitted) -> Vec<Claimed> {
        let inner = &self.inner;
        let mut handed = admitted.handed;
        for (token, position) in admitted.to_name {
            let named = inner.store.name(&inner.member, token, position).await;
            let mut state = inner.state();
            if matches!(named, Ok(true)) {
                state.stats.named += 1;
                continue;
            }
            handed.retain(|claimed| claimed.event.position != position);
            match named {
                Ok(_) => state.lose([token]),
                Err(error) => {
                    state.release(token, position);
                    tracing::warn!(%error, position, "an event could not be written down; trying again");
                }
            }
        }
        handed
    }

    /// Says that events are published and will be settled so, in a call of [`settle`](Self::settle) that comes before that of any later event of
    /// their keys: the next events of these keys may be handed out by now.
    ///
    /// Where settling is what takes time, a key's next event need not wait for it. Events without a key, and those that were parked, gain nothing by it.
    pub fn delivered<'r>(&self, receipts: impl IntoIterator<Item = &'r Receipt>) {
        let mut state = self.inner.state();
        for receipt in receipts {
            state.delivered(receipt);
        }
    }

    /// Says what became of events that were handed out.
    ///
    /// # Errors
    /// As the store's. Whether it was written is then unknown: call it again with the same outcomes, which is safe, or
    /// drop the worker, which redelivers what was not.
    pub async fn settle(&self, outcomes: &[(Receipt, Outcome)]) -> Result<Summary, StoreError> {
        let inner = &self.inner;
        let config = &inner.config;
        let (flush, released, unknown) = inner.state().prepare(&config.target, outcomes, config.on_exhausted);
        let settled = if flush.settlements.is_empty() {
            Default::default()
        } else {
            inner.store.settle(&flush).await?
        };
        let mut state = inner.state();
        let mut summary = state.finish(&flush, &settled, Instant::now());
        for receipt in released {
            state.release(receipt.token, receipt.position);
            summary.applied += 1;
        }
        summary.stale += unknown.stale;
        state.stats.stale += unknown.stale as u64;
        if state.lanes.values().any(|lane| lane.draining && lane.in_flight.is_empty()) {
            inner.lane_emptied.notify_one();
        }
        Ok(summary)
    }

    /// Writes down, for people to read, that this worker's sink is down and what it said; none: it is there again. Write it down when it
    /// changes: it stands until then, or until the worker is gone.
    ///
    /// # Errors
    /// As the store's. Nothing depends on it.
    pub async fn note_sink(&self, down: Option<&str>) -> Result<(), StoreError> {
        self.inner.store.note_sink(&self.inner.member, down).await
    }

    /// Stops: hands out nothing more, waits up to `grace` for what is in flight to be settled, and gives its lanes back. What was not settled by then is
    /// delivered again by others: nothing of it may be published any more.
    ///
    /// # Errors
    /// As the store's; then the lanes go over when their leases end.
    pub async fn stop(&self, grace: Duration) -> Result<Stats, StoreError> {
        self.inner.state().stopping = true;
        // A claim that is under way ends first: it may be handing out.
        drop(self.inner.fetching.lock().await);
        let until = Instant::now() + grace;
        while self.in_flight() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // A tick that is under way ends first: it may be taking lanes.
        self.inner.state().ended = true;
        self.inner.lane_emptied.notify_one();
        if let Some(keeper) = self.take_keeper() {
            let _ = keeper.await;
        }
        self.inner.store.leave(&self.inner.member).await?;
        Ok(self.stats())
    }

    fn take_keeper(&self) -> Option<JoinHandle<()>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(keeper) = self.take_keeper() {
            keeper.abort();
        }
        self.inner.store.abandon(self.inner.member.worker);
    }
}
