//! What people are told of a sink that can be reached and takes nothing, by virtual time.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::outbox::{
    Claimed, Engine, Lane, Outcome, Receipt, Source, Stats, Store, Summary, Token, WorkerConfig, WorkerId,
};
use sendoff::stores::memory::MemoryOutbox;
use sendoff::{Delivery, NewEvent, Sink, SinkError, StoreError};
use sendoff_relay::{Relay, TargetConfig};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// An answer to a claim is on its way for longer than the sink takes to refuse an event.
const ON_ITS_WAY: Duration = Duration::from_millis(20);
const REFUSED_WITHIN: Duration = Duration::from_millis(5);

type Notes = Arc<Mutex<Vec<Option<String>>>>;

/// An outbox far away.
#[derive(Debug)]
struct Far {
    store: Arc<dyn Store>,
    notes: Notes,
}

#[async_trait]
impl Source for Far {
    async fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError> {
        let engine = self.store.start(config).await?;
        Ok(Box::new(FarEngine { engine, notes: Arc::clone(&self.notes) }))
    }
}

#[derive(Debug)]
struct FarEngine {
    engine: Box<dyn Engine>,
    notes: Notes,
}

#[async_trait]
impl Engine for FarEngine {
    fn id(&self) -> WorkerId {
        self.engine.id()
    }

    fn lanes(&self) -> Vec<Lane> {
        self.engine.lanes()
    }

    fn deadline(&self, token: Token) -> Option<Instant> {
        self.engine.deadline(token)
    }

    fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        let claimed = self.engine.claim(limit).await;
        tokio::time::sleep(ON_ITS_WAY).await;
        claimed
    }

    fn delivered(&self, receipts: &[Receipt]) {
        self.engine.delivered(receipts);
    }

    async fn settle(&self, outcomes: &[(Receipt, Outcome)]) -> Result<Summary, StoreError> {
        self.engine.settle(outcomes).await
    }

    async fn note_sink(&self, down: Option<&str>) -> Result<(), StoreError> {
        self.notes.lock().unwrap().push(down.map(str::to_owned));
        self.engine.note_sink(down).await
    }

    async fn stop(&self, grace: Duration) -> Result<Stats, StoreError> {
        self.engine.stop(grace).await
    }
}

/// There, and takes nothing.
#[derive(Debug)]
struct Refuses;

#[async_trait]
impl Sink for Refuses {
    async fn publish(&self, _: &[Claimed]) -> Vec<Delivery> {
        tokio::time::sleep(REFUSED_WITHIN).await;
        vec![Delivery::down("404 Not Found")]
    }

    async fn check(&self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Notes are taken of a relay while nothing can be delivered for a minute.
async fn a_minute_of_refusal(outbox: &MemoryOutbox, notes: &Notes) {
    let store: Arc<dyn Store> = Arc::new(outbox.clone());
    let config = TargetConfig { target: "default".to_owned(), ..TargetConfig::default() };
    let far = Far { store, notes: Arc::clone(notes) };
    let relay = Relay::of(Arc::new(far)).target(config, Arc::new(Refuses));
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
    tokio::time::sleep(Duration::from_mins(1)).await;
    stop.send(()).unwrap();
    ended.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_down_is_not_said_to_be_there_before_it_has_taken_something() {
    let outbox = MemoryOutbox::new().unwrap();
    let mut transaction = outbox.begin();
    transaction.enqueue(&[NewEvent::new("t")]).unwrap();
    transaction.commit().unwrap();
    let notes = Notes::default();
    a_minute_of_refusal(&outbox, &notes).await;
    let notes = notes.lock().unwrap();
    let down = notes.iter().position(Option::is_some).expect("it is noted");
    assert_eq!(notes[down..], [Some("404 Not Found".to_owned())], "{notes:?}");
}
