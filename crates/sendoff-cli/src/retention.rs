//! What is over is kept for a while, and then deleted, a batch at a time.

use std::sync::Arc;
use std::time::Duration;

use sendoff::StoreError;
use sendoff::outbox::{Inspect, Purge};

use crate::config::{RetentionConfig, Span};

/// So many are deleted at a time, each time in a transaction of its own.
const BATCH: u32 = 1_000;

/// It is looked so often, and oftener where less is kept.
const EVERY_MAX: Duration = Duration::from_secs(60);
const EVERY_MIN: Duration = Duration::from_secs(1);

/// Deletes what is older than it should be, again and again.
pub(crate) async fn sweep(inspect: Arc<dyn Inspect>, retention: RetentionConfig) {
    let times = [retention.published, retention.dead].into_iter().flatten().map(Duration::from);
    let Some(shortest) = times.min() else { return };
    loop {
        if let Err(error) = once(&*inspect, &retention).await {
            tracing::warn!(%error, "what is over could not be deleted; trying again");
        }
        tokio::time::sleep((shortest / 10).clamp(EVERY_MIN, EVERY_MAX)).await;
    }
}

async fn once(inspect: &dyn Inspect, retention: &RetentionConfig) -> Result<(), StoreError> {
    for counts in inspect.counts().await?.targets {
        let target = || counts.target.clone();
        let published = |span: Span| Purge::Published { target: target(), older_than: span.into() };
        let dead = |span: Span| Purge::Dead { target: target(), older_than: span.into() };
        let purges = [retention.published.map(published), retention.dead.map(dead)];
        for purge in purges.into_iter().flatten() {
            while inspect.purge(&purge, BATCH).await? >= u64::from(BATCH) {}
        }
    }
    Ok(())
}
