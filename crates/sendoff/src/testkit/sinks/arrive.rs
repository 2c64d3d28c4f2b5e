//! What arrives.

use std::collections::HashSet;
use std::sync::Arc;

use super::{by_key, claimed, deliver, numbered, until_received};
use crate::testkit::SinkHarness;

/// Bytes of every value, a key and a header that are not ASCII.
pub(crate) async fn everything_about_an_event_arrives<H: SinkHarness>(harness: Arc<H>) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut event = claimed(42, Some("Zürich \"7\" %41 ☃"), every_byte.clone());
    event.event.headers.insert("tenant".to_owned(), "acme".to_owned());
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    event.event.headers.insert("traceparent".to_owned(), traceparent.to_owned());
    let mut plain = claimed(43, None, Vec::new());
    plain.event.content_type = None;
    deliver(&*harness.sink(), &[event.clone(), plain.clone()]).await;
    let received = until_received(&*harness, 2).await;
    let found = |id: String| received.iter().find(|one| one.id == id).expect("its id arrives").clone();
    let full = found(event.event.event_id.to_string());
    assert_eq!((full.key, full.payload), (event.event.key, every_byte));
    let header = |name: &str| {
        let at = full.headers.iter().find(|(known, _)| known.to_lowercase().ends_with(name));
        at.unwrap_or_else(|| panic!("no header {name} in {:?}", full.headers)).1.clone()
    };
    assert_eq!((header("tenant"), header("traceparent")), ("acme".to_owned(), traceparent.to_owned()));
    assert_eq!((header("specversion"), header("type")), ("1.0".to_owned(), "suite.happened".to_owned()));
    assert_eq!((header("source"), header("sendoffposition")), ("/sendoff/suite".to_owned(), "42".to_owned()));
    assert_eq!(header("sendoffepoch"), "7");
    let empty = found(plain.event.event_id.to_string());
    assert_eq!((empty.key, empty.payload), (None, Vec::new()));
}

pub(crate) async fn ten_thousand_events_arrive_in_the_order_of_their_keys<H: SinkHarness>(harness: Arc<H>) {
    let events = numbered(10_000, 100);
    deliver(&*harness.sink(), &events).await;
    let received = until_received(&*harness, 10_000).await;
    assert_eq!(received.len(), 10_000, "each once");
    let ids: HashSet<&String> = received.iter().map(|one| &one.id).collect();
    assert_eq!(ids.len(), 10_000);
    for (key, numbers) in by_key(&received) {
        assert!(numbers.len() == 100 && numbers.is_sorted(), "out of order: {key}: {numbers:?}");
    }
}

pub(crate) async fn nothing_is_sent_for_nothing<H: SinkHarness>(harness: Arc<H>) {
    assert_eq!(harness.sink().publish(&[]).await, []);
    deliver(&*harness.sink(), &numbered(1, 1)).await;
    assert_eq!(until_received(&*harness, 1).await.len(), 1);
}

/// By the broker, if it says that it can; by the consumer otherwise.
pub(crate) async fn what_is_sent_again_is_told_by_its_id<H: SinkHarness>(harness: Arc<H>) {
    let events = numbered(1_000, 1_000);
    let sink = harness.sink();
    deliver(&*sink, &events).await;
    deliver(&*sink, &events).await;
    let count = if sink.capabilities().dedupes_for.is_some() { 1_000 } else { 2_000 };
    let received = until_received(&*harness, count).await;
    assert_eq!(received.len(), count);
    let ids: HashSet<&String> = received.iter().map(|one| &one.id).collect();
    assert_eq!(ids.len(), 1_000);
}
