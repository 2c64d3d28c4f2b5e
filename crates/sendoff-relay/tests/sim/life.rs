//! One seed, from its first relay to the last record.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use sendoff::outbox::{EventState, Inspect as _, ListQuery, Store};
use sendoff::stores::memory::MemoryOutbox;
use sendoff::{DEFAULT_TARGET, StoreError};
use sendoff_relay::Relay;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::faulty_store::FaultyStore;
use crate::history::{FaultKind, Record, What};
use crate::incarnation::Incarnation;
use crate::mutant::{self, Mutant};
use crate::plan::Plan;
use crate::producers::{KeyLocks, produce};
use crate::recording_store::RecordingStore;
use crate::sink::SimSink;
use crate::world::World;

/// A relay that is to run: when one incarnation ends, the next begins.
#[derive(Debug, Default)]
struct Slot {
    now: Mutex<Option<Running>>,
}

/// An incarnation, and how it is asked to stop, if it was not yet.
#[derive(Debug)]
struct Running {
    incarnation: Arc<Incarnation>,
    stop: Option<oneshot::Sender<()>>,
}

impl Slot {
    fn now(&self) -> MutexGuard<'_, Option<Running>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<Incarnation>> {
        self.now().as_ref().map(|running| Arc::clone(&running.incarnation))
    }

    fn set(&self, running: Option<Running>) {
        *self.now() = running;
    }

    /// Asks the incarnation to stop as it should.
    fn stop(&self) {
        if let Some(stop) = self.now().as_mut().and_then(|running| running.stop.take()) {
            let _ = stop.send(());
        }
    }
}

/// Runs one seed.
pub(crate) fn live(seed: u64, mutant: Option<Mutant>) -> Result<(Plan, Vec<Record>), StoreError> {
    // The relay's own jitter.
    fastrand::seed(seed);
    let mut rng = Rng::with_seed(seed);
    let plan = Plan::new(&mut rng);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let Ok(runtime) = runtime else { unreachable!("a runtime without I/O needs nothing from the system") };
    let history = runtime.block_on(async {
        let world = Arc::new(World::new(plan.clone(), mutant, MemoryOutbox::new()?, rng));
        run(&world).await?;
        Ok::<_, StoreError>(world.history())
    })?;
    Ok((plan, history))
}

async fn run(world: &Arc<World>) -> Result<(), StoreError> {
    let slots: Vec<Arc<Slot>> = (0..world.plan.relays).map(|_| Arc::default()).collect();
    let mut relays = JoinSet::new();
    for (relay, slot) in (0..).zip(&slots) {
        relays.spawn(keep_running(Arc::clone(world), Arc::clone(slot), relay));
    }
    let locks: Arc<KeyLocks> = Arc::new((0..world.plan.keys).map(|_| tokio::sync::Mutex::new(())).collect());
    let mut producers = JoinSet::new();
    for _ in 0..world.plan.producers {
        producers.spawn(produce(Arc::clone(world), Arc::clone(&locks)));
    }
    torment(world, &slots).await;
    world.end_faults();
    while producers.join_next().await.is_some() {}
    drain(world).await;
    world.close();
    for slot in &slots {
        slot.stop();
    }
    let ended = async { while relays.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_secs(30), ended).await.is_err() {
        for (relay, _) in (0..).zip(&slots).filter(|(_, slot)| slot.current().is_some()) {
            world.note(What::Hung { relay });
        }
    }
    // What is still on its way to the broker arrives.
    tokio::time::sleep(world.plan.lease * 3).await;
    note_end(world).await
}

/// Starts a relay, and another whenever it ends.
async fn keep_running(world: Arc<World>, slot: Arc<Slot>, relay: u32) {
    tokio::time::sleep(world.millis(0..=100)).await;
    while !world.is_closing() {
        let incarnation = world.next_incarnation();
        world.note(What::Start { incarnation: incarnation.number, relay });
        let (stop, stopped) = oneshot::channel();
        let sink = SimSink { world: Arc::clone(&world), incarnation: Arc::clone(&incarnation) };
        let store = store(&world, &incarnation);
        let running = Relay::new(store).target(world.plan.config(relay), Arc::new(sink));
        let task = tokio::spawn(running.run(async move {
            let _ = stopped.await;
        }));
        incarnation.runs_as(task.abort_handle());
        slot.set(Some(Running { incarnation: Arc::clone(&incarnation), stop: Some(stop) }));
        let _ = task.await;
        slot.set(None);
        world.note(What::Stop { incarnation: incarnation.number });
        let pause = world.millis(0..=400);
        tokio::time::sleep(pause).await;
    }
}

/// The layers between an incarnation and the outbox.
fn store(world: &Arc<World>, incarnation: &Arc<Incarnation>) -> Arc<dyn Store> {
    let recording = RecordingStore {
        world: Arc::clone(world),
        incarnation: incarnation.number,
        inner: mutant::below(world.mutant, &world.outbox),
    };
    let inner = mutant::above(world.mutant, Arc::new(recording), &world.outbox);
    Arc::new(FaultyStore { world: Arc::clone(world), incarnation: Arc::clone(incarnation), inner })
}

/// Does something to one of the relays now and then, until the time is up.
async fn torment(world: &World, slots: &[Arc<Slot>]) {
    let until = Instant::now() + world.plan.chaos;
    loop {
        let pause = world.millis(20..=300);
        if Instant::now() + pause >= until {
            tokio::time::sleep_until(until).await;
            return;
        }
        tokio::time::sleep(pause).await;
        let slot = &slots[world.index(slots.len())];
        if let Some(incarnation) = slot.current() {
            strike(world, slot, &incarnation);
        }
    }
}

fn strike(world: &World, slot: &Slot, incarnation: &Incarnation) {
    let weights = world.plan.weights;
    let kinds = [
        (weights.crash, Some(FaultKind::Crash)),
        (weights.drop, Some(FaultKind::Drop)),
        (weights.freeze, Some(FaultKind::Freeze)),
        (weights.outage, Some(FaultKind::Outage)),
        (weights.sink_down, Some(FaultKind::SinkDown)),
        (weights.stop, None),
    ];
    let sum: u32 = kinds.iter().map(|(weight, _)| weight).sum();
    if sum == 0 {
        return;
    }
    let mut chosen = world.number(0..=u64::from(sum - 1));
    let kind = kinds.iter().find(|(weight, _)| {
        let is_chosen = chosen < u64::from(*weight);
        chosen = chosen.saturating_sub(u64::from(*weight));
        is_chosen
    });
    let lease = u64::try_from(world.plan.lease.as_millis()).unwrap_or(1_000);
    let now = Instant::now();
    match kind.and_then(|(_, kind)| *kind) {
        Some(FaultKind::Crash) => {
            world.fault(FaultKind::Crash, Some(incarnation), now);
            incarnation.kill();
        }
        Some(FaultKind::Drop) => {
            world.fault(FaultKind::Drop, Some(incarnation), now);
            incarnation.drop_future();
        }
        Some(FaultKind::Freeze) => world.freeze(incarnation),
        Some(FaultKind::Outage) => {
            let until = now + world.millis(lease / 4..=lease * 2);
            world.fault(FaultKind::Outage, Some(incarnation), until);
            incarnation.cut_off(until);
        }
        Some(_) => world.sink_goes_down(now + world.millis(20..=600)),
        None => slot.stop(),
    }
}

/// Waits until nothing is left to be delivered, or for as long as that may take.
async fn drain(world: &World) {
    let began = world.now();
    let until = Instant::now() + world.plan.drained_within();
    while !world.is_drained() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let after = world.is_drained().then(|| world.now() - began);
    world.note(What::Drained { after });
}

/// Looks at what the outbox has in the end.
async fn note_end(world: &World) -> Result<(), StoreError> {
    for listed in world.outbox.list(&query(EventState::Dead)).await? {
        let attempts = listed.event.attempts;
        let Some(failure) = listed.failure else { continue };
        world.note(What::Dead {
            position: listed.event.position,
            cause: failure.cause,
            failures: attempts.failures,
            crashes: attempts.crashes,
        });
    }
    let open = [EventState::Unprocessed, EventState::Processing, EventState::Failed, EventState::Abandoned];
    for state in open {
        for listed in world.outbox.list(&query(state)).await? {
            world.note(What::Left { position: listed.event.position });
        }
    }
    Ok(())
}

fn query(state: EventState) -> ListQuery {
    ListQuery { target: DEFAULT_TARGET.to_owned(), state, after: 0, limit: u32::MAX }
}
