//! A store without its fence, for `--without-fence`: whether a demo that passes means anything.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::StoreError;
use sendoff::outbox::{
    Census, Fetch, Fetched, Flush, HorizonProbe, Inspect, Lane, LaneFloor, LaneSet, Leased, Member, Page,
    ParkedFetch, Settled, Store, Token, WorkerId,
};

/// Settles under the token that is good now, whoever asks. All else is as it was.
#[derive(Debug)]
pub(crate) struct Unfenced {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inspect: Arc<dyn Inspect>,
}

#[async_trait]
impl Store for Unfenced {
    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let lanes = self.inspect.lanes(&flush.target).await?;
        // A flush is of one worker.
        let mut by_owner: BTreeMap<WorkerId, Flush> = BTreeMap::new();
        for token in &flush.tokens {
            let lane = lanes.iter().find(|lane| lane.lane == token.lane);
            let worker = lane.and_then(|lane| lane.owner).unwrap_or(token.worker);
            let part = by_owner.entry(worker).or_insert_with(|| Flush {
                target: flush.target.clone(),
                tokens: Vec::new(),
                settlements: Vec::new(),
                calm: Vec::new(),
            });
            part.tokens.push(Token {
                worker,
                lane: token.lane,
                epoch: lane.map_or(token.epoch, |lane| lane.epoch),
            });
            part.settlements.extend(flush.settlements.iter().filter(|row| row.lane == token.lane).cloned());
            part.calm.extend(flush.calm.iter().filter(|lane| **lane == token.lane));
        }
        let mut settled = Settled::default();
        for part in by_owner.values() {
            let of_owner = self.store.settle(part).await?;
            settled.stale.extend(of_owner.stale);
            settled.missing.extend(of_owner.missing);
        }
        Ok(settled)
    }

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
        self.store.renew(member, tokens).await
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        self.store.give(member, tokens).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        self.store.leave(member).await
    }

    fn abandon(&self, worker: WorkerId) {
        self.store.abandon(worker);
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        self.store.fetch(want).await
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        self.store.fetch_parked(want).await
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        self.store.find(member, lane, position).await
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        self.store.name(member, token, position).await
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
