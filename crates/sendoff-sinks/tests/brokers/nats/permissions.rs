//! Users who are let in, and may not do all that a sink needs. A server says so beside its answers, and answers nothing.

use sendoff::testkit::{SinkHarness, claimed};
use sendoff::{Delivery, Sink as _};
use sendoff_sinks::NatsConfig;
use serde_json::json;

use super::Nats;
use super::users::{is_down, until};

/// What a sink needs.
const ASK: &str = "$JS.API.STREAM.INFO.suite";
const MAKE: &str = "$JS.API.STREAM.CREATE.suite";
const INBOX: &str = "_INBOX.>";

/// A server with a user who may do this and no more, and a reader.
fn configuration(publish: &[&str], subscribe: &[&str]) -> String {
    let reader = json!({ "user": "reader", "password": "reader" });
    let permissions = json!({ "publish": { "allow": publish }, "subscribe": { "allow": subscribe } });
    let user = json!({ "user": "narrow", "password": "narrow", "permissions": permissions });
    format!("authorization: {}\n", json!({ "users": [reader, user] }))
}

async fn start(publish: &[&str], subscribe: &[&str]) -> Nats {
    let reader = json!({ "user": "reader", "pass": "reader" });
    Nats::start_configured(&configuration(publish, subscribe), &[], reader).await
}

fn sink(nats: &Nats) -> sendoff_sinks::Nats {
    let config = NatsConfig { subject: "{topic}".parse().unwrap(), ..nats.config() };
    let url = format!("nats://narrow:narrow@{}", nats.address());
    sendoff_sinks::Nats::new(NatsConfig { url, ..config }).unwrap()
}

/// Others go on meanwhile, and it is no outage.
pub(super) async fn a_subject_that_is_forbidden_is_said() {
    let nats = start(&["suite.events", ASK, MAKE], &[INBOX]).await;
    let sink = sink(&nats);
    sink.check().await.unwrap();
    let mut events = [claimed(1, None, "x"), claimed(2, None, "y")];
    events[0].event.topic = "suite.secret".to_owned();
    events[1].event.topic = "suite.events".to_owned();
    let deliveries = sink.publish(&events).await;
    let Delivery::Retry { error, .. } = &deliveries[0] else { panic!("{deliveries:?}") };
    assert_eq!(error, "its user may not publish to `suite.secret`: let it, in its permissions");
    assert_eq!(deliveries[1], Delivery::Delivered);
    assert_eq!(nats.received().await.len(), 1);
}

pub(super) async fn a_stream_that_must_not_be_asked_for_is_said() {
    let nats = start(&["suite.>"], &[INBOX]).await;
    let sink = sink(&nats);
    let error = sink.check().await.unwrap_err().to_string();
    let deliveries = sink.publish(&[claimed(1, None, "x")]).await;
    let Delivery::Down { error: down } = &deliveries[0] else { panic!("{deliveries:?}") };
    for said in [&error, down] {
        assert!(said.contains(&nats.address().to_string()), "{said}");
        assert!(said.contains("its user may not publish to `$JS.API.STREAM."), "{said}");
    }
}

/// It is no server that is away, and what is allowed later is heard of.
pub(super) async fn answers_that_must_not_be_heard_are_said_until_they_may_be() {
    let nats = start(&["suite.>", ASK, MAKE], &["elsewhere"]).await;
    let sink = sink(&nats);
    let error = sink.check().await.unwrap_err().to_string();
    let deliveries = sink.publish(&[claimed(1, None, "x")]).await;
    let Delivery::Down { error: down } = &deliveries[0] else { panic!("{deliveries:?}") };
    for said in [&error, down] {
        assert!(said.contains("its user may not subscribe to `_INBOX."), "{said}");
        assert!(said.contains("let it subscribe to `_INBOX.>`"), "{said}");
    }
    nats.configure(&configuration(&["suite.>", ASK, MAKE], &[INBOX]));
    nats.reload();
    until_delivered(&sink).await;
    // And taken away from one that is connected.
    nats.configure(&configuration(&["suite.>", ASK, MAKE], &["elsewhere"]));
    nats.reload();
    until(&sink, |delivery| is_down(delivery, "its user may not subscribe to `_INBOX.")).await;
    nats.configure(&configuration(&["suite.>", ASK, MAKE], &[INBOX]));
    nats.reload();
    until_delivered(&sink).await;
}

async fn until_delivered(sink: &sendoff_sinks::Nats) {
    until(sink, |delivery| *delivery == Delivery::Delivered).await;
}
