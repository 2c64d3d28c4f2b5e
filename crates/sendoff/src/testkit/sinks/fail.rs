//! What goes wrong.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{PATIENCE, RECOVERY, by_key, claimed, deliver, deliver_within, numbered, until_received};
use crate::outbox::Claimed;
use crate::sink::{Delivery, Sink};
use crate::testkit::{FaultProxy, Received, SinkHarness};

/// One in the midst of a call that no broker may be given.
pub(crate) async fn an_event_that_cannot_be_sent_is_rejected_and_the_others_are_delivered<H: SinkHarness>(
    harness: Arc<H>,
) {
    let sink = harness.sink();
    let mut events = numbered(5, 5);
    // As a host may write it in plain SQL.
    events[2].event.headers.insert("evil".to_owned(), "a\r\nce-id: another".to_owned());
    let deliveries = sink.publish(&events).await;
    for (index, delivery) in deliveries.iter().enumerate() {
        match delivery {
            Delivery::Reject { error } if index == 2 => {
                assert!(error.contains("evil") && error.contains("line break"), "{error}");
            }
            other => assert_eq!((other, index == 2), (&Delivery::Delivered, false), "event {index}"),
        }
    }
    let received = until_received(&*harness, 4).await;
    assert_eq!(received.len(), 4);
}

/// Not one of these is the event's fault.
fn assert_down(deliveries: &[Delivery]) {
    assert!(
        deliveries.iter().all(|delivery| matches!(delivery, Delivery::Down { .. } | Delivery::Untried)),
        "a broker that is not there spends an attempt: {deliveries:?}"
    );
    assert!(matches!(deliveries.first(), Some(Delivery::Down { .. })), "{deliveries:?}");
}

pub(crate) async fn a_broker_that_is_gone_is_down_and_comes_back<H: SinkHarness>(harness: Arc<H>) {
    let sink = harness.sink();
    deliver(&*sink, &numbered(10, 5)).await;
    harness.kill().await;
    assert_down(&sink.publish(&[claimed(11, Some("key-0"), "10")]).await);
    let error = sink.check().await.expect_err("it is gone").to_string();
    assert!(!error.is_empty());
    harness.restart().await;
    deliver_within(&*sink, &claimed(11, Some("key-0"), "10"), RECOVERY).await;
    let received = until_received(&*harness, 1).await;
    let last = by_key(&received).remove("key-0").unwrap();
    assert!(last.is_sorted() && last.last() == Some(&10), "{last:?}");
}

pub(crate) async fn a_broker_that_does_not_answer_is_down_and_comes_back<H: SinkHarness>(harness: Arc<H>) {
    let sink = harness.sink();
    deliver(&*sink, &numbered(10, 5)).await;
    harness.freeze(true).await;
    let began = Instant::now();
    // A relay would give up on it by then.
    let answered =
        tokio::time::timeout(Duration::from_secs(20), sink.publish(&[claimed(11, None, "10")])).await;
    let deliveries = answered.unwrap_or_else(|_| panic!("no answer in {:?}", began.elapsed()));
    assert_down(&deliveries);
    assert!(sink.check().await.is_err(), "it does not answer");
    harness.freeze(false).await;
    deliver_within(&*sink, &claimed(12, None, "11"), RECOVERY).await;
}

/// While events are on their way.
pub(crate) async fn a_broker_that_is_restarted_is_used_again<H: SinkHarness>(harness: Arc<H>) {
    let sink = harness.sink();
    let events = numbered(2_000, 20);
    let publishing = tokio::spawn(keep_publishing(Arc::clone(&sink), events.clone()));
    tokio::time::sleep(Duration::from_millis(30)).await;
    harness.kill().await;
    harness.restart().await;
    publishing.await.expect("every event is delivered in the end");
    // What was acknowledged before may be lost with a broker that keeps nothing; what came after it must be in order.
    assert_ordered(&harness.received().await);
}

/// Each event when it came first.
fn assert_ordered(received: &[Received]) {
    for (key, numbers) in by_key(received) {
        let mut first_time = numbers.clone();
        let mut seen = HashSet::new();
        first_time.retain(|number| seen.insert(*number));
        assert!(first_time.is_sorted(), "out of order: {key}: {numbers:?}");
    }
}

/// Again and again, while events are on their way.
pub(crate) async fn a_line_that_is_cut_loses_nothing<H: SinkHarness>(harness: Arc<H>) {
    let proxy = FaultProxy::start(harness.address()).await.unwrap();
    let sink = harness.sink_at(proxy.address());
    let events = numbered(2_000, 20);
    let mut publishing = tokio::spawn(keep_publishing(sink, events.clone()));
    let mut pauses = [5, 30, 80, 130, 300].into_iter();
    loop {
        // After the last cut it is left alone.
        let pause = Duration::from_millis(pauses.next().unwrap_or(60_000));
        match tokio::time::timeout(pause, &mut publishing).await {
            Ok(ended) => break ended.expect("every event is delivered in the end"),
            Err(_) => proxy.cut(),
        }
    }
    let received = until_received(&*harness, events.len()).await;
    let ids: HashSet<&String> = received.iter().map(|one| &one.id).collect();
    assert_eq!(ids.len(), events.len(), "what was acknowledged is there");
    assert_ordered(&received);
}

/// Packets vanish, and nobody says so.
pub(crate) async fn a_black_hole_is_down_and_comes_back<H: SinkHarness>(harness: Arc<H>) {
    let proxy = FaultProxy::start(harness.address()).await.unwrap();
    let sink = harness.sink_at(proxy.address());
    deliver(&*sink, &numbered(10, 5)).await;
    proxy.hold(true);
    let event = claimed(11, Some("key-0"), "10");
    let answered = tokio::time::timeout(PATIENCE, sink.publish(std::slice::from_ref(&event))).await;
    assert_down(&answered.expect("it gives up by itself"));
    assert!(sink.check().await.is_err(), "it does not answer");
    proxy.hold(false);
    deliver_within(&*sink, &event, RECOVERY).await;
    assert_ordered(&until_received(&*harness, 11).await);
}

/// Slow is not down: no attempt is spent, and nothing is sent twice.
pub(crate) async fn a_slow_line_is_no_failure<H: SinkHarness>(harness: Arc<H>) {
    let proxy = FaultProxy::start(harness.address()).await.unwrap();
    let sink = harness.sink_at(proxy.address());
    proxy.slow(Duration::from_millis(20));
    deliver(&*sink, &numbered(200, 50)).await;
    let received = until_received(&*harness, 200).await;
    assert_eq!(received.len(), 200, "each once");
    assert_ordered(&received);
}

/// As a relay would: a wave of distinct keys at a time, and again what was not delivered.
async fn keep_publishing(sink: Arc<dyn Sink>, events: Vec<Claimed>) {
    let began = Instant::now();
    for wave in events.chunks(20) {
        let mut left: Vec<Claimed> = wave.to_vec();
        while !left.is_empty() {
            let deliveries = sink.publish(&left).await;
            let mut again = Vec::new();
            for (index, event) in left.into_iter().enumerate() {
                if deliveries.get(index) != Some(&Delivery::Delivered) {
                    assert!(
                        !matches!(deliveries.get(index), Some(Delivery::Reject { .. })),
                        "{deliveries:?}"
                    );
                    again.push(event);
                }
            }
            left = again;
            assert!(began.elapsed() < PATIENCE, "{} of a wave are left", left.len());
            if !left.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

pub(crate) async fn a_call_that_is_dropped_leaves_the_sink_usable<H: SinkHarness>(harness: Arc<H>) {
    let sink = harness.sink();
    for pause in [0, 1, 2, 5] {
        let wave = numbered(100, 100);
        let call = sink.publish(&wave);
        let _ = tokio::time::timeout(Duration::from_millis(pause), call).await;
        deliver_within(&*sink, &claimed(1, Some("after"), "1"), RECOVERY).await;
    }
}
