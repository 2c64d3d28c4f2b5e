//! The cases of the store suite, by what they are about, and what they have in common.

pub(super) mod apart;
pub(super) mod cancel;
pub(super) mod crash;
pub(super) mod dead;
pub(super) mod delayed;
pub(super) mod enqueue;
pub(super) mod exclusive;
pub(super) mod explain;
pub(super) mod fence;
pub(super) mod inspect;
pub(super) mod lanes;
pub(super) mod order;
pub(super) mod overlap;
pub(super) mod parked;
pub(super) mod race;
pub(super) mod ranges;
pub(super) mod redrive;
pub(super) mod settle;
pub(super) mod share;
pub(super) mod texts;
pub(super) mod walk;
pub(super) mod wrapped;

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{HostTransaction as _, StoreHarness};
use crate::event::{DEFAULT_TARGET, Event, EventId, NewEvent};
use crate::outbox::{
    Cause, Change, Failure, Fetch, Fetched, Flush, LANES, Lane, LaneFetch, LaneSet, Leased, Member, Outcome,
    Scope, Selection, Settled, Settlement, Store, Summary, Token, Worker, WorkerConfig, WorkerId,
};

/// Only a broken promise takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A lease that no case outlives.
const LONG: Duration = Duration::from_secs(30);

/// A lease in which a worker ticks twice a second, and that it keeps on a busy machine.
const LEASE: Duration = Duration::from_secs(3);

/// What is left of a lease that a case lets pass.
const LAPSE: Duration = Duration::from_millis(20);

/// A wait for what a case does not wait for.
const HOUR: Duration = Duration::from_secs(3_600);

/// Waits a little, again and again, and panics with what was promised when that took too long.
struct Patience {
    began: Instant,
    promise: &'static str,
}

impl Patience {
    fn new(promise: &'static str) -> Self {
        Self { began: Instant::now(), promise }
    }

    async fn wait(&self) {
        assert!(self.began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {}", self.promise);
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
}

/// Until it is so; panics with the promise if that takes too long.
async fn until<F, Answer>(promise: &'static str, is_so: F)
where
    F: Fn() -> Answer,
    Answer: Future<Output = bool>,
{
    let patience = Patience::new(promise);
    while !is_so().await {
        patience.wait().await;
    }
}

/// An event of a key.
fn event(key: &str, text: &str) -> NewEvent {
    NewEvent::new("things.happened").key(key).payload(text)
}

/// An event without a key.
fn loose(text: &str) -> NewEvent {
    NewEvent::new("things.happened").payload(text)
}

/// So many events of a key, numbered from 1: `a1`, `a2`, ...
fn numbered(key: &str, count: usize) -> Vec<NewEvent> {
    (1..=count).map(|number| event(key, &format!("{key}{number}"))).collect()
}

/// What [`numbered`] events say.
fn names(key: &str, numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("{key}{number}")).collect()
}

/// Writes events in a transaction of their own.
async fn enqueue<H: StoreHarness>(harness: &H, events: &[NewEvent]) -> Vec<EventId> {
    let mut transaction = harness.begin().await;
    let ids = transaction.enqueue(events).await.expect("events within the limits are taken");
    transaction.commit().await.expect("the host's transaction commits");
    ids
}

/// An event's payload, which the cases tell them apart by.
fn text(event: &Event) -> String {
    String::from_utf8(event.payload.clone()).expect("payloads survive")
}

fn texts<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<String> {
    events.into_iter().map(text).collect()
}

/// The payloads, sorted: for events that may come in any order.
fn sorted<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<String> {
    let mut texts = texts(events);
    texts.sort();
    texts
}

/// The payloads of each key, in the order they came.
fn by_key<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeMap<String, Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events {
        keys.entry(event.key.clone().unwrap_or_default()).or_default().push(text(event));
    }
    keys
}

fn failure() -> Failure {
    Failure::new(Cause::Transient, "the sink said no")
}

fn key_of(key: &str) -> Selection {
    Selection::Key { target: DEFAULT_TARGET.to_owned(), key: key.to_owned() }
}

/// An owner of lanes without an engine: it does with a store what the case says, and nothing by itself.
struct Owner {
    store: Arc<dyn Store>,
    member: Member,
    leased: Vec<Leased>,
}

impl Owner {
    async fn join(store: Arc<dyn Store>, lease: Duration) -> Self {
        Self::join_target(store, lease, DEFAULT_TARGET).await
    }

    async fn join_target(store: Arc<dyn Store>, lease: Duration, target: &str) -> Self {
        let member = Member {
            worker: WorkerId::generate(),
            name: "owner".to_owned(),
            target: target.to_owned(),
            lease,
            scope: Scope::default(),
        };
        store.join(&member).await.unwrap();
        Self { store, member, leased: Vec::new() }
    }

    /// One that only looks, and is not registered: no worker shares its lanes with it.
    fn watching(store: Arc<dyn Store>) -> Self {
        let target = DEFAULT_TARGET.to_owned();
        let (worker, name) = (WorkerId::generate(), "watcher".to_owned());
        let member = Member { worker, name, target, lease: LONG, scope: Scope::default() };
        Self { store, member, leased: Vec::new() }
    }

    /// One that has every lane.
    async fn of_all<H: StoreHarness>(harness: &H, lease: Duration) -> Self {
        let mut owner = Self::join(harness.store(), lease).await;
        assert_eq!(owner.take(LANES).await.len(), usize::from(LANES), "free lanes are taken at once");
        owner
    }

    /// What it got now; added to what it has.
    async fn take(&mut self, most: u16) -> Vec<Leased> {
        let got = self.store.take(&self.member, LaneSet::ALL, most).await.unwrap();
        assert!(got.len() <= usize::from(most), "{} lanes were given for {most}", got.len());
        let lanes: HashSet<Lane> = got.iter().map(|leased| leased.token.lane).collect();
        assert_eq!(lanes.len(), got.len(), "a lane was given twice in one answer");
        self.leased.retain(|leased| !lanes.contains(&leased.token.lane));
        self.leased.extend(&got);
        got
    }

    fn tokens(&self) -> Vec<Token> {
        self.leased.iter().map(|leased| leased.token).collect()
    }

    fn leased(&self, lane: Lane) -> Leased {
        *self.leased.iter().find(|leased| leased.token.lane == lane).expect("it has that lane")
    }

    fn want(&self, limit: u32) -> Fetch {
        let lanes = (0..LANES).map(|lane| LaneFetch { lane, above: 0, limit });
        Fetch {
            target: self.member.target.clone(),
            lanes: lanes.collect(),
            limit,
            bytes_per_lane: 64 * 1024 * 1024,
        }
    }

    /// Every event of the event table, lowest position first.
    async fn hot(&self) -> Vec<Fetched> {
        let mut rows = self.store.fetch(&self.want(10_000)).await.unwrap().events;
        rows.sort_by_key(|row| row.event.position);
        rows
    }

    /// What is parked and due, with what waits behind it.
    async fn due(&self) -> Vec<Fetched> {
        self.store.fetch_parked(&self.want(10_000)).await.unwrap().events
    }

    async fn settle(&self, changes: &[(&Fetched, Change)]) -> Settled {
        let settlements: Vec<Settlement> =
            changes.iter().map(|(row, change)| settlement(row, change)).collect();
        let flush = Flush {
            target: self.member.target.clone(),
            tokens: self.tokens(),
            settlements,
            calm: Vec::new(),
        };
        self.store.settle(&flush).await.unwrap()
    }

    async fn publish(&self, rows: &[Fetched]) -> Settled {
        let changes: Vec<(&Fetched, Change)> = rows.iter().map(|row| (row, Change::Publish)).collect();
        self.settle(&changes).await
    }

    async fn leave(self) {
        self.store.leave(&self.member).await.unwrap();
    }

    /// Its leases end without it, as those of one that was lost.
    ///
    /// However slow the machine is, it has done until then what the case wants of it under a long lease.
    async fn lapse<H: StoreHarness>(&self, harness: &H) {
        let member = Member { lease: LAPSE, ..self.member.clone() };
        let kept = self.store.renew(&member, &self.tokens()).await.unwrap();
        assert_eq!(kept.len(), self.leased.len(), "it had its lanes until then");
        harness.pass(LAPSE * 2).await;
    }
}

/// Lost with what it had in hand, and its leases have ended.
async fn lose<H: StoreHarness>(harness: &H, worker: Worker) {
    let (id, kept) = (worker.id(), worker.lanes());
    drop(worker);
    let mut owner = Owner::watching(harness.store());
    owner.member.worker = id;
    for info in harness.inspect().lanes(DEFAULT_TARGET).await.unwrap() {
        if kept.contains(&info.lane) {
            let token = Token { lane: info.lane, epoch: info.epoch, worker: id };
            owner.leased.push(Leased { token, crashes: info.crashes, named: None, floor: info.floor });
        }
    }
    owner.lapse(harness).await;
}

fn settlement(row: &Fetched, change: &Change) -> Settlement {
    Settlement {
        lane: row.event.lane,
        position: row.event.position,
        place: row.place,
        key: row.event.key.as_deref().map(Into::into),
        change: change.clone(),
    }
}

fn events(rows: &[Fetched]) -> impl Iterator<Item = &Event> {
    rows.iter().map(|row| &row.event)
}

/// So many keys that share a lane.
async fn lane_mates<H: StoreHarness>(harness: &H, count: usize) -> Vec<String> {
    let probes: Vec<NewEvent> =
        (0..=(count - 1) * usize::from(LANES)).map(|number| event(&format!("key-{number}"), "")).collect();
    enqueue(harness, &probes).await;
    let owner = Owner::of_all(harness, LONG).await;
    let rows = owner.hot().await;
    assert_eq!(rows.len(), probes.len());
    assert_eq!(owner.publish(&rows).await, Settled::default());
    owner.leave().await;
    let mut lanes: BTreeMap<Lane, Vec<String>> = BTreeMap::new();
    for row in rows {
        lanes.entry(row.event.lane).or_default().extend(row.event.key);
    }
    let mut mates = lanes.into_values().find(|keys| keys.len() >= count).expect("more keys than lanes");
    mates.truncate(count);
    mates
}

/// A worker with the default configuration, but for what `change` changes.
async fn start(store: Arc<dyn Store>, change: impl FnOnce(&mut WorkerConfig) + Send) -> Worker {
    let mut config = WorkerConfig::default();
    change(&mut config);
    Worker::start(store, config).await.unwrap()
}

/// A worker with the default configuration.
async fn worker<H: StoreHarness>(harness: &H) -> Worker {
    start(harness.store(), |_| ()).await
}

async fn stop(worker: Worker) {
    worker.stop(Duration::ZERO).await.unwrap();
}

/// Claims until so many are in hand; panics if they are more, or do not come.
async fn claim(worker: &Worker, count: usize) -> Vec<crate::outbox::Claimed> {
    let patience = Patience::new("events that are due are handed out");
    let mut claimed = Vec::new();
    loop {
        claimed.extend(worker.claim(10_000).await.unwrap());
        if claimed.len() >= count {
            let handed: Vec<String> = texts(claimed.iter().map(|claimed| &claimed.event));
            assert_eq!(handed.len(), count, "more was handed out than there should be: {handed:?}");
            return claimed;
        }
        patience.wait().await;
    }
}

/// Nothing more is handed out now.
async fn nothing_more(worker: &Worker) {
    for _ in 0..3 {
        let more = worker.claim(10_000).await.unwrap();
        let texts = texts(more.iter().map(|claimed| &claimed.event));
        assert!(texts.is_empty(), "these should have waited: {texts:?}");
    }
}

async fn settle(worker: &Worker, claimed: &[crate::outbox::Claimed], outcome: &Outcome) -> Summary {
    let outcomes: Vec<_> = claimed.iter().map(|claimed| (claimed.receipt(), outcome.clone())).collect();
    worker.settle(&outcomes).await.unwrap()
}

/// Claims and publishes until so many events came, and answers with them in their order.
async fn deliver(worker: &Worker, count: usize) -> Vec<Event> {
    let patience = Patience::new("every committed event that may be delivered is");
    let mut delivered: Vec<Event> = Vec::new();
    while delivered.len() < count {
        let claimed = worker.claim(10_000).await.unwrap();
        if claimed.is_empty() {
            patience.wait().await;
            continue;
        }
        let summary = settle(worker, &claimed, &Outcome::Published).await;
        assert_eq!(summary, Summary { applied: claimed.len(), stale: 0, missing: 0 });
        delivered.extend(claimed.into_iter().map(|claimed| claimed.event));
    }
    assert_eq!(delivered.len(), count, "more came than was written: {:?}", texts(&delivered));
    delivered
}

/// Settles the first of what is in hand with `outcome` and gives the rest back.
async fn fail_first(worker: &Worker, claimed: &[crate::outbox::Claimed], outcome: Outcome) {
    let mut outcomes = vec![(claimed[0].receipt(), outcome)];
    outcomes.extend(claimed[1..].iter().map(|claimed| (claimed.receipt(), Outcome::Release)));
    let summary = worker.settle(&outcomes).await.unwrap();
    assert_eq!(summary, Summary { applied: claimed.len(), stale: 0, missing: 0 });
}
