//! Keeps the leases of what is in flight, and looks for rows whose workers were lost.

use std::sync::Arc;

use tokio::time::Instant;

use super::backing::Backing;
use super::state::Held;
use super::worker::Inner;
use crate::claim::{Claimable as _, Key};
use crate::error::StoreError;

/// Until the worker stops.
pub(super) async fn run<B: Backing>(inner: Arc<Inner<B>>) {
    let pause = inner.config.lease / 3;
    loop {
        tokio::time::sleep(pause).await;
        if let Err(error) = renew(&inner).await {
            tracing::warn!(%error, "leases could not be renewed; trying again");
        }
        if let Err(error) = inner.backing.sweep().await {
            tracing::debug!(%error, "what is no longer needed could not be swept");
        }
        if let Err(error) = look_for_suspects(&inner).await {
            tracing::debug!(%error, "rows of lost workers could not be looked for");
        }
    }
}

async fn renew<B: Backing>(inner: &Inner<B>) -> Result<(), StoreError> {
    let held = inner.state().held();
    for Held { grant, rows } in held {
        let keys: Vec<Key> = rows.iter().map(|(_, key)| key.clone()).collect();
        let before = Instant::now();
        let still = inner.backing.renew(&grant, inner.config.lease, &keys).await?;
        let deadline = inner.deadline_from(before);
        let mut state = inner.state();
        let mut lost = 0;
        for (number, key) in rows {
            let Some(row) = state.flying.get_mut(&number) else { continue };
            if still.contains(&key.to_bytes()) {
                row.deadline = deadline;
            } else if !row.is_settling {
                row.is_lost = true;
                lost += 1;
            }
        }
        drop(state);
        if lost > 0 {
            tracing::warn!(rows = lost, "rows have gone to another worker, which took this one for lost");
        }
    }
    Ok(())
}

async fn look_for_suspects<B: Backing>(inner: &Inner<B>) -> Result<(), StoreError> {
    let (claims, mapping) = (inner.backing.claims(), inner.backing.mapping());
    for spec in mapping.suspect(&inner.grant(), inner.config.lease)? {
        if !claims.find(&spec).await?.is_empty() {
            inner.state().has_suspects = true;
        }
    }
    Ok(())
}
