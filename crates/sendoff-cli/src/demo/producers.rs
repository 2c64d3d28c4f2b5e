//! The demo's host application: transactions that commit and roll back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use sendoff::NewEvent;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::journal::Payload;
use super::verdict::Written;
use crate::site::Site;

const PRODUCERS: usize = 4;
const KEYS: usize = 200;
/// One transaction of so many is rolled back.
const ROLLBACK_ONE_OF: u8 = 4;

/// What the producers share.
#[derive(Debug)]
pub(crate) struct Producers {
    site: Site,
    wanted: u64,
    pub(crate) committed: AtomicU64,
    pub(crate) rolled_back: AtomicU64,
    /// The number of each key's last committed event. Locked for the length of a transaction: a host serialises what belongs to one aggregate.
    keys: Vec<Mutex<u64>>,
    written: Mutex<Written>,
}

impl Producers {
    pub(crate) fn new(site: Site, wanted: u64) -> Self {
        Self {
            site,
            wanted,
            committed: AtomicU64::new(0),
            rolled_back: AtomicU64::new(0),
            keys: (0..KEYS).map(|_| Mutex::new(0)).collect(),
            written: Mutex::default(),
        }
    }

    /// Writes until enough is committed.
    pub(crate) async fn run(self: &Arc<Self>) -> Result<()> {
        let mut producers = JoinSet::new();
        for _ in 0..PRODUCERS {
            let shared = Arc::clone(self);
            producers.spawn(async move {
                while shared.committed.load(Ordering::Relaxed) < shared.wanted {
                    shared.transaction().await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(ended) = producers.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// One transaction: a few events of one key.
    async fn transaction(&self) -> Result<()> {
        let index = fastrand::usize(..KEYS);
        let mut number = self.keys[index].lock().await;
        let count = fastrand::u64(1..=5);
        let events = (1..=count).map(|step| {
            let event = NewEvent::new("demo.order").key(format!("order-{index}"));
            event.json(&Payload { number: *number + step })
        });
        let events = events.collect::<Result<Vec<_>, _>>()?;
        let commit = fastrand::u8(..ROLLBACK_ONE_OF) != 0;
        let ids = self.site.write(&self.site.outbox()?, events, commit).await?;
        let ids = ids.into_iter().map(|id| id.0);
        let mut written = self.written.lock().await;
        if commit {
            *number += count;
            written.committed.extend(ids);
            self.committed.fetch_add(count, Ordering::Relaxed);
        } else {
            written.rolled_back.extend(ids);
            self.rolled_back.fetch_add(count, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) async fn written(&self) -> Written {
        std::mem::take(&mut *self.written.lock().await)
    }
}
