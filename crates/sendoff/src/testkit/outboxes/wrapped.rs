//! A store that lets a case look between the steps of a worker.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::error::{StoreError, StoreErrorKind};
use crate::outbox::{
    Census, Fetch, Fetched, Flush, HorizonProbe, Lane, LaneFloor, LaneSet, Leased, Member, Page, ParkedFetch,
    Settled, Store, Token,
};

/// A store whose answers to `fetch` can be held back, and whose settlements can be made to fail.
pub(super) struct Wrapped {
    store: Arc<dyn Store>,
    /// While it is on, each fetch has been read and waits for a permit to answer.
    pub(super) holds_fetches: Mutex<bool>,
    pub(super) answers: Semaphore,
    /// A fetch has been read and waits.
    pub(super) has_read: Semaphore,
    pub(super) faults: Mutex<Faults>,
}

/// What goes wrong next.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// So many settlements are not written.
    pub(super) settle_before: u32,
    /// So many settlements are written, and the answer is lost.
    pub(super) settle_after: u32,
    pub(super) fetch: u32,
    pub(super) name: u32,
    pub(super) renew: u32,
    /// So many times lanes are given back, and the answer is lost.
    pub(super) give_after: u32,
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wrapped").field(&self.store).finish()
    }
}

impl Wrapped {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            holds_fetches: Mutex::new(false),
            answers: Semaphore::new(0),
            has_read: Semaphore::new(0),
            faults: Mutex::default(),
        })
    }

    fn strikes(&self, fault: impl FnOnce(&mut Faults) -> &mut u32) -> Result<(), StoreError> {
        let mut faults = self.faults.lock().unwrap();
        let left = fault(&mut faults);
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        Err(StoreError::new(StoreErrorKind::Unavailable, "suite", "store", "broken off on purpose"))
    }
}

#[async_trait]
impl Store for Wrapped {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        self.store.join(member).await
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        self.store.census(member).await
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        self.store.take(member, lanes, most).await
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        self.strikes(|faults| &mut faults.renew)?;
        self.store.renew(member, tokens).await
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        let given = self.store.give(member, tokens).await;
        self.strikes(|faults| &mut faults.give_after)?;
        given
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        self.store.leave(member).await
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        self.strikes(|faults| &mut faults.fetch)?;
        let rows = self.store.fetch(want).await;
        let holds = *self.holds_fetches.lock().unwrap();
        if holds {
            self.has_read.add_permits(1);
            self.answers.acquire().await.unwrap().forget();
        }
        rows
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        self.store.fetch_parked(want).await
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        self.store.find(member, lane, position).await
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        self.strikes(|faults| &mut faults.name)?;
        self.store.name(member, token, position).await
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        self.strikes(|faults| &mut faults.settle_before)?;
        let settled = self.store.settle(flush).await;
        self.strikes(|faults| &mut faults.settle_after)?;
        settled
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        self.store.newest().await
    }

    async fn horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        self.store.horizon(probe).await
    }

    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        self.store.keep_floors(member, lanes).await
    }
}
