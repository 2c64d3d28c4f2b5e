//! A relay over a host's own table, in memory.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::adopted::{Adopted, Mapping, RowState, Words};
use sendoff::claim::{Record, Table, Value, now};
use sendoff::outbox::Claimed;
use sendoff::stores::memory::{MemoryDatabase, MemoryTable};
use sendoff::{Delivery, Sink};
use sendoff_relay::{Relay, RetryPolicy, TargetConfig};

/// Fails every event once, rejects one, and counts what it takes.
#[derive(Debug, Default)]
struct Moody {
    tries: Mutex<HashMap<String, usize>>,
    taken: Mutex<HashMap<String, usize>>,
}

#[async_trait]
impl Sink for Moody {
    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let (mut tries, mut taken) = (self.tries.lock().unwrap(), self.taken.lock().unwrap());
        let answer = |claimed: &Claimed| {
            let text = String::from_utf8(claimed.event.payload.clone()).unwrap();
            let tried = tries.entry(text.clone()).or_insert(0);
            *tried += 1;
            if text == "bad" {
                return Delivery::Reject { error: "never".to_owned() };
            }
            if *tried == 1 {
                return Delivery::retry("not at first");
            }
            *taken.entry(text).or_insert(0) += 1;
            Delivery::Delivered
        };
        events.iter().map(answer).collect()
    }
}

fn mapping() -> Mapping {
    let words = Words {
        pending: 0.into(),
        processing: Some(1.into()),
        published: 2.into(),
        failed: None,
        dead: 3.into(),
    };
    Mapping::new("outbox", "id")
        .unwrap()
        .topic("orders")
        .unwrap()
        .key("key")
        .order_by("id")
        .position("id")
        .claims("status", words, "owner", "lease", "tries")
        .token("token")
        .due("due")
        .error("error")
        .ordered_by_key()
}

async fn adopted(count: i64) -> (Adopted, MemoryTable<Record>) {
    let columns =
        ["id", "key", "payload", "status", "owner", "token", "lease", "tries", "due", "error", "at"];
    let table = Table::new("outbox", ["id"]).unwrap();
    let table: MemoryTable<Record> = MemoryDatabase::new().create(table, &columns).unwrap();
    let row = |id: i64| {
        let payload = if id == 7 { "bad".to_owned() } else { format!("p{id}") };
        vec![
            ("id", Value::Int(id)),
            ("key", Value::Text(format!("k{}", id % 5))),
            ("payload", Value::Text(payload)),
            ("status", Value::Int(0)),
            ("tries", Value::Int(0)),
            ("at", now()),
        ]
    };
    table.insert(&(1..=count).map(row).collect::<Vec<_>>()).unwrap();
    (Adopted::over(table.clone(), mapping()).await.unwrap(), table)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_drains_a_hosts_own_table() {
    let (adopted, table) = adopted(60).await;
    let sink = Arc::new(Moody::default());
    let retry = RetryPolicy { base: Duration::from_millis(2), cap: Duration::from_millis(4), attempts: 5 };
    let config = TargetConfig { workers: 3, batch: 8, retry, ..TargetConfig::default() };
    let relay = Relay::of(Arc::new(adopted.clone())).target(config, Arc::clone(&sink) as Arc<dyn Sink>);
    let handle = relay.handle();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
    let began = std::time::Instant::now();
    while !adopted.list(RowState::Unprocessed, 1).await.unwrap().is_empty()
        || !adopted.list(RowState::Processing, 1).await.unwrap().is_empty()
        || !adopted.list(RowState::Failed, 1).await.unwrap().is_empty()
    {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", handle.figures());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    let taken = sink.taken.lock().unwrap();
    assert_eq!(taken.len(), 59);
    assert!(taken.values().all(|times| *times == 1), "each once");
    let of = |status: i64| {
        table.rows().iter().filter(|row| row.get("status") == Some(&Value::Int(status))).count()
    };
    assert_eq!((of(2), of(3)), (59, 1));
    let figures = &handle.figures()["default"];
    assert_eq!((figures.published, figures.stale), (59, 0));
}
