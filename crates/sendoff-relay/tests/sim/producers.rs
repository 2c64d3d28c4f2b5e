//! The hosts: transactions that commit in another order than they took their positions, or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use sendoff::claim::Timestamp;
use sendoff::stores::memory::MemoryTransaction;
use sendoff::{NewEvent, StoreError};
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

use crate::history::{Nature, What};
use crate::world::World;

/// One lock for each key: a host serialises what it writes of one key, so that the order of positions is the order of commits.
pub(crate) type KeyLocks = Vec<Mutex<()>>;

/// Writes its share of the transactions.
pub(crate) async fn produce(world: Arc<World>, locks: Arc<KeyLocks>) {
    let span = u64::try_from(world.plan.chaos.as_millis()).unwrap_or(1_000);
    let transactions = world.plan.transactions / world.plan.producers;
    for _ in 0..transactions.max(1) {
        let pause = world.millis(0..=span * 2 / u64::from(transactions.max(1)));
        tokio::time::sleep(pause).await;
        if let Err(error) = transaction(&world, &locks).await {
            panic!("an event could not be written: {error}");
        }
    }
}

async fn transaction(world: &World, locks: &KeyLocks) -> Result<(), StoreError> {
    let tx = world.next_transaction();
    let count = world.number(1..=4);
    let keys: Vec<Option<usize>> = (0..count)
        .map(|_| (!world.chance(world.plan.keyless)).then(|| world.index(world.plan.keys as usize)))
        .collect();
    // In order, or two hosts could wait for each other.
    let sorted: BTreeSet<usize> = keys.iter().flatten().copied().collect();
    let mut held: Vec<MutexGuard<'_, ()>> = Vec::new();
    for key in sorted {
        held.push(locks[key].lock().await);
    }
    let mut open = world.outbox.begin();
    let mut positions = Vec::new();
    for key in keys {
        positions.push(write(world, &mut open, tx, key)?);
        world.pause(3).await;
    }
    if world.chance(world.plan.held_open) {
        let pause = world.millis(50..=900);
        tokio::time::sleep(pause).await;
    } else {
        world.pause(20).await;
    }
    if world.chance(world.plan.rollback) {
        drop(open);
        world.note(What::Rollback { tx });
        return Ok(());
    }
    open.commit()?;
    world.committed(&positions);
    world.note(What::Commit { tx });
    Ok(())
}

fn write(
    world: &World,
    open: &mut MemoryTransaction,
    tx: u32,
    key: Option<usize>,
) -> Result<i64, StoreError> {
    let position = world.next_position();
    let nature = world.choose_nature(position);
    let is_delayed = nature == Nature::Plain && world.chance(world.plan.delayed);
    let id = Uuid::from_u128(u128::from(position.unsigned_abs()));
    let mut event = NewEvent::new("sim").event_id(id).payload(position.to_string());
    let key = key.and_then(|key| u32::try_from(key).ok());
    if let Some(key) = key {
        event = event.key(format!("key-{key}"));
    }
    if is_delayed {
        let wait = i64::try_from(world.number(1_000..=600_000)).unwrap_or_default();
        event = event.deliver_at(Timestamp::from_micros(world.outbox.now().as_micros() + wait));
    }
    world.note(What::Enqueue { tx, position, key, nature, is_delayed });
    open.enqueue(&[event])?;
    Ok(position)
}
