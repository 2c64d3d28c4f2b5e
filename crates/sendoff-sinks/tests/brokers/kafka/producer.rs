//! When the brokers do not take the producer, whatever the record.

use sendoff::testkit::claimed;
use sendoff::{Delivery, Sink as _};

use super::{Kafka, assert_delivered, numbered, sink};

/// The client calls a state fatal in which it could not go on without a gap or a second delivery.
pub(super) async fn a_producer_that_cannot_go_on_is_replaced() {
    let kafka = Kafka::start().await;
    let sink = sink(kafka.config());
    assert_delivered(&sink.publish(&numbered(1, 1)).await);
    kafka.tell("fail out_of_order");
    let delivery = sink.publish(&[claimed(2, Some("key-0"), "1")]).await.remove(0);
    assert!(matches!(&delivery, Delivery::Down { error } if error.contains("sequence")), "{delivery:?}");
    assert!(sink.check().await.is_ok());
    assert_delivered(&sink.publish(&[claimed(2, Some("key-0"), "1")]).await);
    assert!(sink.close().await.is_ok());
    assert_delivered(&sink.publish(&[claimed(3, Some("key-0"), "2")]).await);
}

/// Kafka may forget one whose last record it has deleted, and takes its next epoch then.
pub(super) async fn a_producer_that_is_not_known_goes_on_with_its_next_epoch() {
    let kafka = Kafka::start().await;
    let sink = sink(kafka.config());
    for event in numbered(3, 1) {
        assert_delivered(&sink.publish(&[event]).await);
        kafka.tell("fail unknown_producer");
    }
}

/// As those do that have lost their memory, or that want to be asked before each epoch: the next epoch would be refused as well, and so would every one after it.
pub(super) async fn a_producer_that_the_brokers_refuse_is_replaced() {
    for answers in ["unknown_producer unknown_producer", "fenced"] {
        let kafka = Kafka::start().await;
        let sink = sink(kafka.config());
        let events = numbered(2, 1);
        assert_delivered(&sink.publish(&events[..1]).await);
        kafka.tell(&format!("fail {answers}"));
        let delivery = sink.publish(&events[1..]).await.remove(0);
        let is_said = matches!(&delivery, Delivery::Down { error } if error.contains("a new one is made"));
        assert!(is_said, "{answers}: {delivery:?}");
        assert_delivered(&sink.publish(&events[1..]).await);
        assert_eq!(kafka.until_records(2).await.len(), 2, "{answers}: each once");
    }
}

/// The client goes on with its next epoch.
pub(super) async fn an_epoch_that_is_refused_is_not_held_against_the_event() {
    let kafka = Kafka::start().await;
    let sink = sink(kafka.config());
    let events = numbered(2, 1);
    assert_delivered(&sink.publish(&events[..1]).await);
    kafka.tell("fail old_epoch");
    let delivery = sink.publish(&events[1..]).await.remove(0);
    assert!(matches!(delivery, Delivery::Down { .. }), "{delivery:?}");
    assert_delivered(&sink.publish(&events[1..]).await);
}
