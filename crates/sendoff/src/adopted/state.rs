//! What one worker has in hand.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::leases::Grant;
use crate::claim::Key;
use crate::outbox::Stats;

/// A row that was handed out.
#[derive(Debug, Clone)]
pub(super) struct Flying {
    pub(super) key: Key,
    pub(super) grant: Arc<Grant>,
    pub(super) deadline: Instant,
    pub(super) attempts: u32,
    pub(super) attempts_max: u32,
    /// Another has it.
    pub(super) is_lost: bool,
    /// What became of it is being written.
    pub(super) is_settling: bool,
    /// Nothing else is handed out while it is in flight.
    pub(super) is_alone: bool,
}

/// Rows that are held under one grant, with the numbers of their receipts.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) grant: Arc<Grant>,
    pub(super) rows: Vec<(i64, Key)>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// By the number that stands in a receipt.
    pub(super) flying: HashMap<i64, Flying>,
    by_key: HashMap<Vec<u8>, i64>,
    last: i64,
    pub(super) stats: Stats,
    /// What the last settlement found to be another's.
    pub(super) stale: HashSet<i64>,
    pub(super) is_stopping: bool,
    /// There are rows whose workers were lost: they are tried one at a time.
    pub(super) has_suspects: bool,
    /// When the status words other than pending are looked at again.
    pub(super) others_at: Option<Instant>,
    /// The usual size of a payload, lately.
    pub(super) bytes_each: u64,
}

impl State {
    /// Takes note of a row; the number for its receipt. One that was in flight here before is lost: its lease had ended.
    pub(super) fn add(&mut self, row: Flying) -> i64 {
        self.last += 1;
        if let Some(before) = self.by_key.insert(row.key.to_bytes(), self.last)
            && let Some(before) = self.flying.get_mut(&before)
        {
            before.is_lost = true;
        }
        self.flying.insert(self.last, row);
        self.stats.claimed += 1;
        self.last
    }

    pub(super) fn remove(&mut self, number: i64) -> Option<Flying> {
        let row = self.flying.remove(&number)?;
        let key = row.key.to_bytes();
        if self.by_key.get(&key) == Some(&number) {
            self.by_key.remove(&key);
        }
        Some(row)
    }

    pub(super) fn has_one_alone(&self) -> bool {
        self.flying.values().any(|row| row.is_alone)
    }

    /// What is to be renewed, by the grant it is held under.
    pub(super) fn held(&self) -> Vec<Held> {
        let mut held: HashMap<uuid::Uuid, Held> = HashMap::new();
        for (number, row) in self.flying.iter().filter(|(_, row)| !row.is_lost && !row.is_settling) {
            let new = || Held { grant: Arc::clone(&row.grant), rows: Vec::new() };
            held.entry(row.grant.token).or_insert_with(new).rows.push((*number, row.key.clone()));
        }
        held.into_values().collect()
    }

    /// So many may be claimed so that no more than these bytes are read at a time.
    pub(super) fn fitting(&self, bytes: u64) -> usize {
        usize::try_from(bytes / self.bytes_each.max(1)).unwrap_or(usize::MAX).max(1)
    }

    /// Takes note of how large payloads are: a large one at once, small ones little by little.
    pub(super) fn saw_payloads(&mut self, sizes: impl Iterator<Item = usize>) {
        for size in sizes {
            let size = size as u64;
            self.bytes_each = size.max(self.bytes_each - self.bytes_each / 64);
        }
    }
}
