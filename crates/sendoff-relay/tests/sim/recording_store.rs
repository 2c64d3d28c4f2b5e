//! Writes down what the store was asked and what it did, at the moment of the effect.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::StoreError;
use sendoff::outbox::{
    Census, Change, Fetch, Fetched, Flush, HorizonProbe, Lane, LaneFloor, LaneSet, Leased, Member, Page,
    ParkedFetch, Settled, Settlement, Store, Token,
};

use crate::history::{Effect, IncarnationNo, Micros, Proof, Settling, What};
use crate::incarnation::worker_number;
use crate::world::World;

/// A store whose effects are written down. Its calls never wait, so that an effect and its record are one.
#[derive(Debug)]
pub(crate) struct RecordingStore {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: IncarnationNo,
    pub(crate) inner: Arc<dyn Store>,
}

pub(crate) fn proof(token: Token) -> Proof {
    Proof { worker: worker_number(token.worker), lane: token.lane, epoch: token.epoch }
}

fn micros(member: &Member) -> Micros {
    Micros::try_from(member.lease.as_micros()).unwrap_or(Micros::MAX)
}

fn settling(change: &Change) -> Settling {
    match change {
        Change::Publish => Settling::Published,
        Change::Park { attempts, .. } => {
            Settling::Parked { failures: attempts.failures, crashes: attempts.crashes }
        }
        Change::Bury { attempts, failure, .. } => {
            Settling::Buried { cause: failure.cause, failures: attempts.failures, crashes: attempts.crashes }
        }
    }
}

impl RecordingStore {
    fn note_settled(&self, flush: &Flush, settled: &Settled) {
        let mut settlements: Vec<&Settlement> = flush.settlements.iter().collect();
        // Keys that have nothing to do with each other come in any order.
        settlements.sort_by_key(|settlement| settlement.position);
        for settlement in settlements {
            let Some(token) = flush.tokens.iter().find(|token| token.lane == settlement.lane) else {
                continue;
            };
            let effect = if settled.stale.contains(&settlement.lane) {
                Effect::Stale
            } else if settled.missing.contains(&settlement.position) {
                Effect::Missing
            } else {
                Effect::Applied
            };
            self.world.note(What::Settle {
                incarnation: self.incarnation,
                proof: proof(*token),
                position: settlement.position,
                settling: settling(&settlement.change),
                effect,
            });
        }
    }
}

#[async_trait]
impl Store for RecordingStore {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        self.inner.join(member).await
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        self.inner.census(member).await
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        let leased = self.inner.take(member, lanes, most).await?;
        for Leased { token, crashes, named, .. } in &leased {
            let (incarnation, proof) = (self.incarnation, proof(*token));
            let (crashes, named) = (*crashes, *named);
            self.world.note(What::Take { incarnation, proof, lease: micros(member), crashes, named });
        }
        Ok(leased)
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        let kept = self.inner.renew(member, tokens).await?;
        for token in tokens {
            let (proof, lease) = (proof(*token), micros(member));
            self.world.note(What::Renew { proof, kept: kept.contains(&token.lane), lease });
        }
        Ok(kept)
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        self.inner.give(member, tokens).await?;
        for token in tokens {
            self.world.note(What::Give { proof: proof(*token) });
        }
        Ok(())
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        self.inner.leave(member).await?;
        self.world.note(What::Leave { worker: worker_number(member.worker) });
        Ok(())
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        self.inner.fetch(want).await
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        self.inner.fetch_parked(want).await
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        self.inner.find(member, lane, position).await
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        let is_named = self.inner.name(member, token, position).await?;
        if is_named {
            self.world.note(What::Name { proof: proof(token), position });
        }
        Ok(is_named)
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let settled = self.inner.settle(flush).await?;
        self.note_settled(flush, &settled);
        Ok(settled)
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        self.inner.newest().await
    }

    async fn horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        self.inner.horizon(probe).await
    }

    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        self.inner.keep_floors(member, lanes).await
    }
}
