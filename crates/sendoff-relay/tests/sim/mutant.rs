//! Bugs put in on purpose. A simulation that does not find them finds nothing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sendoff::StoreError;
use sendoff::outbox::{
    Census, Change, Fetch, Fetched, Flush, Hold, HorizonProbe, Inspect as _, Lane, LaneFloor, LaneSet,
    Leased, Member, Page, ParkedFetch, Settled, Store, Token, WorkerConfig,
};
use sendoff::stores::memory::MemoryOutbox;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Whatever the token: a settlement is written.
    SettleWithoutEpochCheck,
    /// A worker does not hear that a lane has gone to another.
    LaneKeptAfterLeaseLoss,
    /// Events are handed out though an earlier one of their key waits for its retry.
    RetryDoesNotHoldItsKey,
    /// A lane is read from where the last reading ended.
    PagingPastTheFloor,
    /// A lane that was taken over looks as if it had been given back.
    CrashesNotCounted,
    /// An event that has killed often enough is tried once more, and once more.
    CapNotAppliedOnTakeover,
    /// A worker goes on when its lease has ended: it takes it for twice as long as it is.
    DeadlineIgnored,
    /// A floor passes what open transactions will still commit.
    FloorPassesOpenTransactions,
    /// What failed is written down as published.
    FailureSettledAsPublished,
    /// A lane is leased again under the epoch that it had.
    EpochNotRaised,
}

impl Mutant {
    pub(crate) const ALL: [Self; 10] = [
        Self::SettleWithoutEpochCheck,
        Self::LaneKeptAfterLeaseLoss,
        Self::RetryDoesNotHoldItsKey,
        Self::PagingPastTheFloor,
        Self::CrashesNotCounted,
        Self::CapNotAppliedOnTakeover,
        Self::DeadlineIgnored,
        Self::FloorPassesOpenTransactions,
        Self::FailureSettledAsPublished,
        Self::EpochNotRaised,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SettleWithoutEpochCheck => "settle_without_epoch_check",
            Self::LaneKeptAfterLeaseLoss => "lane_kept_after_lease_loss",
            Self::RetryDoesNotHoldItsKey => "retry_does_not_hold_its_key",
            Self::PagingPastTheFloor => "paging_past_the_floor",
            Self::CrashesNotCounted => "crashes_not_counted",
            Self::CapNotAppliedOnTakeover => "cap_not_applied_on_takeover",
            Self::DeadlineIgnored => "deadline_ignored",
            Self::FloorPassesOpenTransactions => "floor_passes_open_transactions",
            Self::FailureSettledAsPublished => "failure_settled_as_published",
            Self::EpochNotRaised => "epoch_not_raised",
        }
    }

    /// The letters that may find it: another one finds something else.
    pub(crate) fn letters(self) -> &'static [char] {
        match self {
            Self::SettleWithoutEpochCheck => &['f'],
            Self::LaneKeptAfterLeaseLoss | Self::RetryDoesNotHoldItsKey | Self::DeadlineIgnored => &['d'],
            Self::PagingPastTheFloor | Self::FloorPassesOpenTransactions => &['a', 'l'],
            Self::CrashesNotCounted | Self::CapNotAppliedOnTakeover => &['g'],
            Self::FailureSettledAsPublished => &['a', 'g'],
            Self::EpochNotRaised => &['c'],
        }
    }

    /// A bug of the store is under what is written down; a bug of the worker is above it.
    fn is_of_store(self) -> bool {
        matches!(self, Self::SettleWithoutEpochCheck | Self::EpochNotRaised)
    }
}

/// A store, or a worker's view of one, with a bug.
#[derive(Debug)]
struct Mutated {
    mutant: Mutant,
    inner: Arc<dyn Store>,
    outbox: MemoryOutbox,
    /// How far each lane was read.
    read_to: Mutex<HashMap<Lane, i64>>,
}

/// The store as it is written down: with the bug, if it is one of stores.
pub(crate) fn below(mutant: Option<Mutant>, outbox: &MemoryOutbox) -> Arc<dyn Store> {
    mutate(mutant.filter(|mutant| mutant.is_of_store()), Arc::new(outbox.clone()), outbox)
}

/// The store as a worker sees it: with the bug, if it is one of workers.
pub(crate) fn above(mutant: Option<Mutant>, inner: Arc<dyn Store>, outbox: &MemoryOutbox) -> Arc<dyn Store> {
    mutate(mutant.filter(|mutant| !mutant.is_of_store()), inner, outbox)
}

fn mutate(mutant: Option<Mutant>, inner: Arc<dyn Store>, outbox: &MemoryOutbox) -> Arc<dyn Store> {
    match mutant {
        None => inner,
        Some(mutant) => {
            Arc::new(Mutated { mutant, inner, outbox: outbox.clone(), read_to: Mutex::default() })
        }
    }
}

impl Mutated {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    fn member(&self, member: &Member) -> Member {
        let lease = if self.is(Mutant::DeadlineIgnored) { member.lease / 2 } else { member.lease };
        Member { lease, ..member.clone() }
    }

    fn rows<'a>(&self, rows: impl Iterator<Item = &'a mut Fetched>) {
        let most = WorkerConfig::default().crashes_max - 1;
        for row in rows {
            if self.is(Mutant::RetryDoesNotHoldItsKey) && matches!(row.hold, Hold::Held | Hold::Draining) {
                row.hold = Hold::Free;
            }
            if self.is(Mutant::CapNotAppliedOnTakeover) {
                row.event.attempts.crashes = row.event.attempts.crashes.min(most);
            }
        }
    }

    fn past_the_floor(&self, want: &Fetch) -> Fetch {
        let mut want = want.clone();
        let read_to = self.read_to.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in &mut want.lanes {
            lane.above = lane.above.max(read_to.get(&lane.lane).copied().unwrap_or_default());
        }
        want
    }

    fn note_read(&self, page: &Page) {
        let mut read_to = self.read_to.lock().unwrap_or_else(PoisonError::into_inner);
        for row in &page.events {
            let to = read_to.entry(row.event.lane).or_default();
            *to = row.event.position.max(*to);
        }
    }

    /// The tokens that are good now, for the same lanes.
    async fn current(&self, flush: &Flush) -> Result<Vec<Token>, StoreError> {
        let lanes = self.outbox.lanes(&flush.target).await?;
        let current = flush.tokens.iter().map(|token| {
            let lane = lanes.iter().find(|lane| lane.lane == token.lane);
            let worker = lane.and_then(|lane| lane.owner).unwrap_or(token.worker);
            Token { worker, lane: token.lane, epoch: lane.map_or(token.epoch, |lane| lane.epoch) }
        });
        Ok(current.collect())
    }
}

#[async_trait]
impl Store for Mutated {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        self.inner.join(&self.member(member)).await
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        self.inner.census(member).await
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        let mut leased = self.inner.take(&self.member(member), lanes, most).await?;
        for lane in &mut leased {
            if self.is(Mutant::CrashesNotCounted) {
                (lane.crashes, lane.named) = (0, None);
            }
            if self.is(Mutant::EpochNotRaised) {
                lane.token.epoch = 1;
            }
        }
        Ok(leased)
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        let kept = self.inner.renew(&self.member(member), tokens).await?;
        let all = || tokens.iter().map(|token| token.lane).collect();
        Ok(if self.is(Mutant::LaneKeptAfterLeaseLoss) { all() } else { kept })
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        self.inner.give(member, tokens).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        self.inner.leave(member).await
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        if !self.is(Mutant::PagingPastTheFloor) {
            let mut page = self.inner.fetch(want).await?;
            self.rows(page.events.iter_mut());
            return Ok(page);
        }
        let page = self.inner.fetch(&self.past_the_floor(want)).await?;
        self.note_read(&page);
        Ok(page)
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        let mut parked = self.inner.fetch_parked(want).await?;
        self.rows(parked.events.iter_mut());
        Ok(parked)
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        let mut found = self.inner.find(member, lane, position).await?;
        self.rows(found.iter_mut());
        Ok(found)
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        self.inner.name(member, token, position).await
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let mut flush = flush.clone();
        if self.is(Mutant::SettleWithoutEpochCheck) {
            flush.tokens = self.current(&flush).await?;
        }
        if self.is(Mutant::FailureSettledAsPublished) {
            for row in &mut flush.settlements {
                if matches!(&row.change, Change::Park { failure: Some(_), .. }) {
                    row.change = Change::Publish;
                }
            }
        }
        self.inner.settle(&flush).await
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        self.inner.newest().await
    }

    async fn horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        if self.is(Mutant::FloorPassesOpenTransactions) {
            return self.inner.newest().await;
        }
        self.inner.horizon(probe).await
    }

    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        self.inner.keep_floors(member, lanes).await
    }
}
