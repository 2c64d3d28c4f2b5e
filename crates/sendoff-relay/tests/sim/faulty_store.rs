//! The store as one incarnation meets it: every call takes its time, and may fail before or after its effect.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::outbox::{
    Census, Fetch, Fetched, Flush, HorizonProbe, Lane, LaneFloor, LaneSet, Leased, Member, Page, ParkedFetch,
    Settled, Store, Token, WorkerId,
};
use sendoff::{StoreError, StoreErrorKind};
use tokio::time::Instant;

use crate::history::FaultKind;
use crate::incarnation::Incarnation;
use crate::world::World;

/// The store as one incarnation meets it.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
    pub(crate) inner: Arc<dyn Store>,
}

fn broken(detail: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "call", "store", detail)
}

impl FaultyStore {
    /// One call: on its way, its effect, and on its way back.
    async fn call<T>(&self, effect: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let world = &self.world;
        world.pause(world.plan.store_delay).await;
        world.pass(&self.incarnation).await;
        if self.incarnation.is_cut_off() {
            tokio::time::sleep(world.millis(1..=20)).await;
            return Err(broken("cut off"));
        }
        if world.strikes(world.plan.rates.store_error) {
            world.fault(FaultKind::StoreError, Some(&self.incarnation), Instant::now());
            return Err(broken("before its effect"));
        }
        let result = effect.await;
        world.pause(world.plan.store_delay).await;
        world.pass(&self.incarnation).await;
        if world.strikes(world.plan.rates.store_reply_lost) {
            world.fault(FaultKind::StoreReplyLost, Some(&self.incarnation), Instant::now());
            return Err(broken("after its effect"));
        }
        result
    }

    fn known(&self, worker: WorkerId) -> WorkerId {
        self.incarnation.known_as(worker, || self.world.next_worker())
    }

    fn member(&self, member: &Member) -> Member {
        Member { worker: self.known(member.worker), ..member.clone() }
    }

    fn token(&self, token: Token) -> Token {
        Token { worker: self.known(token.worker), ..token }
    }

    fn tokens(&self, tokens: &[Token]) -> Vec<Token> {
        tokens.iter().map(|token| self.token(*token)).collect()
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        let member = self.member(member);
        self.call(self.inner.join(&member)).await
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        let member = self.member(member);
        let mut census = self.call(self.inner.census(&member)).await?;
        for peer in &mut census.workers {
            peer.worker = self.incarnation.calls_itself(peer.worker);
        }
        Ok(census)
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        let known = self.member(member);
        let mut leased = self.call(self.inner.take(&known, lanes, most)).await?;
        for lane in &mut leased {
            lane.token.worker = member.worker;
        }
        Ok(leased)
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        let (member, tokens) = (self.member(member), self.tokens(tokens));
        self.call(self.inner.renew(&member, &tokens)).await
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        let (member, tokens) = (self.member(member), self.tokens(tokens));
        self.call(self.inner.give(&member, &tokens)).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        let member = self.member(member);
        self.call(self.inner.leave(&member)).await
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        self.call(self.inner.fetch(want)).await
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        self.call(self.inner.fetch_parked(want)).await
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        let member = self.member(member);
        self.call(self.inner.find(&member, lane, position)).await
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        let (member, token) = (self.member(member), self.token(token));
        self.call(self.inner.name(&member, token, position)).await
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let flush = Flush { tokens: self.tokens(&flush.tokens), ..flush.clone() };
        self.call(self.inner.settle(&flush)).await
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        self.call(self.inner.newest()).await
    }

    async fn horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        self.call(self.inner.horizon(probe)).await
    }

    async fn note_sink(&self, member: &Member, down: Option<&str>) -> Result<(), StoreError> {
        let member = self.member(member);
        self.call(self.inner.note_sink(&member, down)).await
    }

    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        let member = self.member(member);
        let lanes: Vec<LaneFloor> =
            lanes.iter().map(|lane| LaneFloor { token: self.token(lane.token), ..*lane }).collect();
        self.call(self.inner.keep_floors(&member, &lanes)).await
    }
}
