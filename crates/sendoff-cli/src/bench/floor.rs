//! The store's own statements in a loop, with nothing else: what the relay is compared with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sendoff::DEFAULT_TARGET;
use sendoff::outbox::{
    Change, Fetch, Flush, LANES, LaneFetch, LaneSet, Member, Scope, Settlement, Store, Token, WorkerId,
};
use tokio::task::JoinSet;

/// Events a second of fetch and settle alone.
pub(crate) async fn drain(store: &Arc<dyn Store>, events: u64, workers: u16, batch: u32) -> Result<f64> {
    let mut members = Vec::new();
    for number in 0..workers {
        let member = Member {
            worker: WorkerId::generate(),
            name: format!("floor-{number}"),
            target: DEFAULT_TARGET.to_owned(),
            lease: Duration::from_secs(600),
            scope: Scope::default(),
        };
        store.join(&member).await?;
        members.push(member);
    }
    let mut leased = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let share = LANES / workers + u16::from(number < usize::from(LANES % workers));
        let lanes = store.take(member, LaneSet::ALL, share).await?;
        ensure!(lanes.len() == usize::from(share), "the lanes could not be shared out");
        leased.push(lanes.iter().map(|lane| lane.token).collect::<Vec<Token>>());
    }
    let left = Arc::new(AtomicU64::new(events));
    let started = Instant::now();
    let mut loops = JoinSet::new();
    for tokens in leased {
        loops.spawn(run(Arc::clone(store), tokens, batch, Arc::clone(&left)));
    }
    while let Some(ended) = loops.join_next().await {
        ended??;
    }
    let seconds = started.elapsed().as_secs_f64();
    for member in &members {
        store.leave(member).await?;
    }
    #[allow(clippy::cast_precision_loss)]
    let rate = events as f64 / seconds;
    Ok(rate)
}

/// Reads on from where it was: nothing is written meanwhile, so nothing can turn up behind.
async fn run(store: Arc<dyn Store>, tokens: Vec<Token>, batch: u32, left: Arc<AtomicU64>) -> Result<()> {
    let share = batch.div_ceil(u32::try_from(tokens.len()).unwrap_or(u32::MAX).max(1));
    let mut lanes: Vec<LaneFetch> =
        tokens.iter().map(|token| LaneFetch { lane: token.lane, above: 0, limit: share }).collect();
    while left.load(Ordering::Relaxed) > 0 {
        let fetch = Fetch {
            target: DEFAULT_TARGET.to_owned(),
            lanes: lanes.clone(),
            limit: batch,
            bytes_per_lane: u64::MAX >> 1,
        };
        let page = store.fetch(&fetch).await?;
        if page.events.is_empty() {
            return Ok(());
        }
        for row in &page.events {
            if let Some(lane) = lanes.iter_mut().find(|lane| lane.lane == row.event.lane) {
                lane.above = row.event.position;
            }
        }
        lanes.rotate_left(1);
        let settlements: Vec<Settlement> = page
            .events
            .iter()
            .map(|row| Settlement {
                lane: row.event.lane,
                position: row.event.position,
                place: row.place,
                key: row.event.key.as_deref().map(Into::into),
                change: Change::Publish,
            })
            .collect();
        let count = settlements.len() as u64;
        let flush = Flush {
            target: DEFAULT_TARGET.to_owned(),
            tokens: tokens.clone(),
            settlements,
            calm: Vec::new(),
        };
        let settled = store.settle(&flush).await?;
        ensure!(settled.stale.is_empty() && settled.missing.is_empty(), "{settled:?}");
        left.fetch_sub(count, Ordering::Relaxed);
    }
    Ok(())
}
