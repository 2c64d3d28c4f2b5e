//! The cases of the sink suite, by what they are about, and what they have in common.

pub(super) mod arrive;
pub(super) mod fail;

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use super::{Received, SinkHarness};
use crate::event::{Attempts, Event, EventId, Headers};
use crate::outbox::{Claimed, Token, WorkerId};
use crate::sink::{Delivery, Sink};

/// Only a broken promise takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A broker is used again so soon after its return.
const RECOVERY: Duration = Duration::from_secs(5);

/// An event as a worker hands it out, of the topic `suite.happened`.
pub fn claimed(position: i64, key: Option<&str>, payload: impl Into<Vec<u8>>) -> Claimed {
    let event = Event {
        event_id: EventId::generate(),
        position,
        standing: crate::event::Standing::Lane,
        target: "suite".to_owned(),
        lane: 3,
        topic: "suite.happened".to_owned(),
        key: key.map(str::to_owned),
        payload: payload.into(),
        content_type: Some("application/octet-stream".to_owned()),
        headers: Headers::new(),
        created_at: std::time::SystemTime::now().into(),
        attempts: Attempts::default(),
    };
    let token = Token { worker: WorkerId::generate(), lane: 3, epoch: 7 };
    Claimed { event, token, deadline: tokio::time::Instant::now() + Duration::from_secs(3_600) }
}

/// So many events of so many keys, in turn; each payload is the number of its event.
fn numbered(count: usize, keys: usize) -> Vec<Claimed> {
    (0..count)
        .map(|number| {
            let position = i64::try_from(number).unwrap() + 1;
            claimed(position, Some(&format!("key-{}", number % keys)), number.to_string())
        })
        .collect()
}

/// Publishes as a relay does: no more at a time than the sink takes, and a key's next event after the one before was delivered. Panics if one is not.
async fn deliver(sink: &dyn Sink, events: &[Claimed]) {
    let capabilities = sink.capabilities();
    let mut rest: Vec<Claimed> = events.to_vec();
    while !rest.is_empty() {
        let mut keys = HashSet::new();
        let (mut bytes, mut call, mut later) = (0, Vec::new(), Vec::new());
        for event in rest {
            let is_free = event.event.key.as_ref().is_none_or(|key| keys.insert(key.clone()));
            let fits = call.is_empty() || bytes + event.event.payload.len() <= capabilities.bytes;
            if (is_free || capabilities.keeps_order) && fits && call.len() < capabilities.events {
                bytes += event.event.payload.len();
                call.push(event);
            } else {
                later.push(event);
            }
        }
        let deliveries = sink.publish(&call).await;
        assert_eq!(deliveries, vec![Delivery::Delivered; call.len()], "a broker that is there takes events");
        rest = later;
    }
}

/// Publishes one event until the broker has it, and says so within the time.
async fn deliver_within(sink: &dyn Sink, event: &Claimed, limit: Duration) {
    let began = Instant::now();
    // Each answer that differs from the one before, and when it was first given.
    let mut answers: Vec<(Duration, String)> = Vec::new();
    loop {
        let answer = match sink.check().await {
            Err(error) => format!("the check: {error}"),
            Ok(()) => {
                let deliveries = sink.publish(std::slice::from_ref(event)).await;
                if deliveries == [Delivery::Delivered] {
                    return;
                }
                assert!(!matches!(deliveries[..], [Delivery::Reject { .. }]), "{deliveries:?}");
                format!("the publishing: {deliveries:?}")
            }
        };
        if answers.last().is_none_or(|(_, last)| *last != answer) {
            answers.push((began.elapsed(), answer));
        }
        assert!(
            began.elapsed() < limit,
            "not delivered within {limit:?} of the broker's return; {}",
            said(&answers, began.elapsed())
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The last answer and for how long it was given, then those before.
fn said(answers: &[(Duration, String)], now: Duration) -> String {
    let Some(((since, last), before)) = answers.split_last() else {
        return "nothing was answered".to_owned();
    };
    let before: Vec<String> =
        before.iter().map(|(at, answer)| format!("\n  from {at:.1?} on, {answer}")).collect();
    format!("the last answer, from {since:.1?} to {now:.1?}, was of {last}{}", before.concat())
}

/// What has arrived, once there are so many.
async fn until_received<H: SinkHarness>(harness: &H, count: usize) -> Vec<Received> {
    let began = Instant::now();
    loop {
        let received = harness.received().await;
        if received.len() >= count {
            return received;
        }
        assert!(began.elapsed() < PATIENCE, "only {} of {count} events arrived", received.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The numbers of [`numbered`] events by their keys, as they came.
fn by_key(received: &[Received]) -> BTreeMap<String, Vec<usize>> {
    let mut keys: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for one in received {
        let number = std::str::from_utf8(&one.payload).unwrap().parse().unwrap();
        keys.entry(one.key.clone().unwrap_or_default()).or_default().push(number);
    }
    keys
}
