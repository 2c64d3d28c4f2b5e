//! RabbitMQ, read back by a client in Python.

mod node;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Trial;
use sendoff::outbox::Claimed;
use sendoff::testkit::{Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::RabbitMqConfig;
use serde_json::{Value, json};

use self::node::Node;
use crate::broker::{self, program};
use crate::trial;

const SERVER: &str = "SENDOFF_TEST_RABBITMQ";
const PYTHON: &str = "SENDOFF_TEST_PYTHON";
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/rabbitmq/reader.py");

pub(crate) fn is_missing() -> bool {
    broker::is_missing("rabbitmq", &[SERVER, PYTHON])
}

/// An exchange and a queue of its own, on a node that nobody else uses meanwhile.
pub(crate) struct RabbitMq {
    node: Node,
    /// Of the exchange, and of the queue.
    name: String,
}

impl RabbitMq {
    pub(crate) async fn start() -> Self {
        Self::start_with("#", &json!({})).await
    }

    /// The queue gets what the pattern is about.
    async fn start_with(pattern: &str, settings: &Value) -> Self {
        let node = Node::take().await;
        let name = format!("suite-{}", sendoff::EventId::generate());
        let rabbitmq = Self { node, name };
        rabbitmq.declare(&rabbitmq.name, pattern, settings);
        rabbitmq
    }

    fn declare(&self, name: &str, pattern: &str, settings: &Value) {
        self.python(&["declare", name, name, pattern, &settings.to_string()]);
    }

    fn python(&self, arguments: &[&str]) -> String {
        let output = Command::new(program(PYTHON))
            .args([READER, &self.node.port().to_string()])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn messages(&self) -> Vec<Value> {
        let lines = self.python(&["read", &self.name]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("amqp://guest:guest@{}/%2f?exchange={}", self.address(), self.name)
    }

    fn config(&self) -> RabbitMqConfig {
        self.config_at(self.address())
    }

    fn config_at(&self, address: SocketAddr) -> RabbitMqConfig {
        RabbitMqConfig {
            timeout: Duration::from_secs(1),
            ..RabbitMqConfig::new(format!("amqp://guest:guest@{address}"), &self.name)
        }
    }
}

fn open(config: RabbitMqConfig) -> Arc<dyn Sink> {
    Arc::new(sendoff_sinks::RabbitMq::new(config).unwrap())
}

impl SinkHarness for RabbitMq {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        open(self.config_at(address))
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.node.port()).into()
    }

    async fn received(&self) -> Vec<Received> {
        self.messages().iter().map(received).collect()
    }

    async fn kill(&self) {
        self.node.kill();
    }

    async fn restart(&self) {
        self.node.restart().await;
    }

    async fn freeze(&self, frozen: bool) {
        self.node.hold(frozen);
    }
}

/// A node that encrypts, with the one user `guest`, and an exchange and a queue.
pub(crate) struct Secure {
    rabbitmq: RabbitMq,
    /// Where it encrypts.
    pub(crate) port: u16,
}

impl Secure {
    /// `tls`: how it does, as its configuration has it.
    pub(crate) async fn start(tls: &str, password: &str) -> Self {
        let node = Node::alone(tls).await;
        let port = node.secure_port();
        let rabbitmq = RabbitMq { node, name: "secure".to_owned() };
        rabbitmq.declare(&rabbitmq.name, "#", &json!({}));
        rabbitmq.node.control(&["change_password", "guest", password]);
        Self { rabbitmq, port }
    }

    pub(crate) fn exchange(&self) -> &str {
        &self.rabbitmq.name
    }

    /// Nobody stays connected.
    pub(crate) fn change_password(&self, password: &str) {
        self.rabbitmq.node.control(&["change_password", "guest", password]);
        self.rabbitmq.node.control(&["close_all_connections", "the password is another one"]);
    }
}

/// A message, as the reader shows it.
fn received(message: &Value) -> Received {
    let headers: BTreeMap<String, String> = serde_json::from_value(message["headers"].clone()).unwrap();
    assert_eq!(message["id"], headers["cloudEvents:id"]);
    assert_eq!((&message["persistent"], &message["type"]), (&json!(true), &json!("suite.happened")));
    Received {
        id: headers["cloudEvents:id"].clone(),
        key: headers.get("cloudEvents:partitionkey").cloned(),
        payload: STANDARD.decode(message["payload"].as_str().unwrap()).unwrap(),
        headers,
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {
            vec![$(trial(format!("rabbitmq::{}", stringify!($case)), is_missing(), $case)),*]
        };
    }
    cases![
        a_message_has_its_properties,
        what_no_queue_gets_is_rejected_alone,
        an_exchange_that_is_not_there_is_named,
        an_exchange_of_one_event_is_the_events,
        an_exchange_that_may_not_be_written_to_is_named,
        a_wrong_password_is_said_and_not_shown,
        what_is_too_large_is_rejected_alone,
        a_queue_that_is_full_is_tried_again,
        a_server_that_blocks_publishers_is_down_and_comes_back,
    ]
}

fn is_down(delivery: &Delivery, text: &str) -> bool {
    matches!(delivery, Delivery::Down { error } if error.contains(text))
}

fn is_rejected(delivery: &Delivery, text: &str) -> bool {
    matches!(delivery, Delivery::Reject { error } if error.contains(text))
}

fn routed(number: i64, route: &str, payload: &str) -> Claimed {
    let mut event = claimed(number, Some(&number.to_string()), payload);
    event.event.headers.insert("route".to_owned(), route.to_owned());
    event
}

async fn a_message_has_its_properties() {
    let rabbitmq = RabbitMq::start().await;
    let event = claimed(1, None, "x");
    let sink = rabbitmq.sink();
    assert_eq!(sink.publish(std::slice::from_ref(&event)).await, [Delivery::Delivered]);
    sink.close().await.unwrap();
    let message = rabbitmq.messages().remove(0);
    assert_eq!(message["content_type"], "application/octet-stream");
    assert_eq!(message["timestamp"], event.event.created_at.as_micros() / 1_000_000);
    assert_eq!(
        (&message["exchange"], &message["routing_key"]),
        (&json!(rabbitmq.name), &json!("suite.happened"))
    );
    assert_eq!(sink.publish(&[claimed(2, None, "y")]).await, [Delivery::Delivered], "it is opened again");
}

/// In many calls at the same time: none may be told what became of another one's message.
async fn what_no_queue_gets_is_rejected_alone() {
    let rabbitmq = Arc::new(RabbitMq::start_with("in.#", &json!({})).await);
    let sink = open(RabbitMqConfig { routing_key: "{header:route}".parse().unwrap(), ..rabbitmq.config() });
    let calls: Vec<_> = (0..10)
        .map(|call| {
            let (sink, name) = (Arc::clone(&sink), rabbitmq.name.clone());
            let is_lost = move |number: i64| (number + call) % 7 == 0;
            let route = move |number| if is_lost(number) { "out.there" } else { "in.here" };
            let events: Vec<_> = (0..200).map(|number| routed(number, route(number), "1")).collect();
            tokio::spawn(async move {
                for (number, delivery) in (0..).zip(sink.publish(&events).await) {
                    let lost = is_rejected(&delivery, &name) && is_rejected(&delivery, "out.there");
                    let is_right = if is_lost(number) { lost } else { delivery == Delivery::Delivered };
                    assert!(is_right, "event {number}: {delivery:?}");
                }
                let taken = events.iter().filter(|event| event.event.headers["route"] == "in.here");
                taken.map(|event| event.event.event_id.to_string()).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut expected = BTreeSet::new();
    for call in calls {
        expected.extend(call.await.unwrap());
    }
    let arrived: BTreeSet<String> = rabbitmq.received().await.into_iter().map(|one| one.id).collect();
    assert!(arrived == expected, "{} arrived of {}", arrived.len(), expected.len());
}

async fn an_exchange_that_is_not_there_is_named() {
    let rabbitmq = RabbitMq::start().await;
    let name = format!("{}-later", rabbitmq.name);
    let sink = open(RabbitMqConfig {
        exchange: sendoff_sinks::Template::fixed(&name),
        timeout: Duration::from_secs(5),
        ..rabbitmq.config()
    });
    let named = format!("there is no exchange `{name}`");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains(&named) && error.contains("declare it"), "{error}");
    let events = [claimed(1, None, "x"), claimed(2, None, "y")];
    let deliveries = sink.publish(&events).await;
    assert!(deliveries.iter().all(|delivery| is_down(delivery, &named)), "{deliveries:?}");
    rabbitmq.declare(&name, "#", &json!({}));
    assert_eq!(sink.check().await, Ok(()));
    assert_eq!(sink.publish(&events).await, [Delivery::Delivered, Delivery::Delivered]);
}

async fn an_exchange_of_one_event_is_the_events() {
    let rabbitmq = RabbitMq::start().await;
    let sink = open(RabbitMqConfig { exchange: "{header:route}".parse().unwrap(), ..rabbitmq.config() });
    let routes = [&rabbitmq.name, "nowhere", &rabbitmq.name, "", &rabbitmq.name];
    let events: Vec<_> = (0..).zip(routes).map(|(number, route)| routed(number, route, "1")).collect();
    let deliveries = sink.publish(&events).await;
    assert!(
        matches!(&deliveries[1], Delivery::Retry { error, .. } if error.contains("nowhere")),
        "{deliveries:?}"
    );
    assert!(is_rejected(&deliveries[3], "there is no queue `suite.happened`"), "{deliveries:?}");
    for index in [0, 2, 4] {
        assert_eq!(deliveries[index], Delivery::Delivered);
    }
    let ids: BTreeSet<_> = rabbitmq.received().await.into_iter().map(|one| one.id).collect();
    assert_eq!(ids.len(), 3, "each of the others arrived");
}

async fn an_exchange_that_may_not_be_written_to_is_named() {
    let rabbitmq = RabbitMq::start_with("#", &json!({ "internal": true })).await;
    let deliveries = rabbitmq.sink().publish(&[claimed(1, None, "x"), claimed(2, None, "y")]).await;
    let is_right = |delivery| is_down(delivery, "ACCESS_REFUSED") && is_down(delivery, &rabbitmq.name);
    assert!(deliveries.iter().all(is_right), "{deliveries:?}");
}

async fn a_wrong_password_is_said_and_not_shown() {
    let rabbitmq = RabbitMq::start().await;
    let address = rabbitmq.address();
    for (url, hint) in [
        (format!("amqp://guest:wr0ng@{address}"), "are user and password right?"),
        (format!("amqp://wr0ng:wr0ng@{address}"), "are user and password right?"),
        (format!("amqp://guest:guest@{address}/elsewhere"), "virtual host in its URL"),
    ] {
        let sink = open(RabbitMqConfig { url, timeout: Duration::from_secs(5), ..rabbitmq.config() });
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(hint) && error.contains(&address.to_string()), "{error}");
        let deliveries = sink.publish(&[claimed(1, None, "x")]).await;
        assert!(is_down(&deliveries[0], hint), "{deliveries:?}");
        assert!(!format!("{error}{deliveries:?}").contains("wr0ng"), "{error} {deliveries:?}");
    }
}

/// Too large for the sink, for the server, and for a frame.
async fn what_is_too_large_is_rejected_alone() {
    let rabbitmq = RabbitMq::start().await;
    let sink = open(RabbitMqConfig { max_payload: 2_000_000, ..rabbitmq.config() });
    let mut events: Vec<_> = (0..9).map(|number| claimed(number, None, "x")).collect();
    events[2].event.payload = vec![0; 2_000_001];
    events[4].event.payload = vec![0; 1_000_001];
    events[6].event.headers.insert("long".to_owned(), "x".repeat(140_000));
    let deliveries = sink.publish(&events).await;
    for (index, delivery) in deliveries.iter().enumerate() {
        let is_right = match index {
            2 => is_rejected(delivery, "max_payload"),
            4 => is_rejected(delivery, "max_message_size"),
            6 => is_rejected(delivery, "frame_max"),
            _ => *delivery == Delivery::Delivered,
        };
        assert!(is_right, "event {index}: {delivery:?}");
    }
    let ids: BTreeSet<_> = rabbitmq.received().await.into_iter().map(|one| one.id).collect();
    assert_eq!(ids.len(), 6);
    // As much as a frame takes, to the byte.
    let mut event = claimed(1, None, "x");
    event.event.headers.insert("long".to_owned(), "x".repeat(100_000));
    while sink.publish(std::slice::from_ref(&event)).await == [Delivery::Delivered] {
        let step = if event.event.headers["long"].len() < 130_000 { 10_000 } else { 37 };
        event.event.headers.entry("long".to_owned()).and_modify(|text| text.push_str(&"x".repeat(step)));
        assert!(event.event.headers["long"].len() < 140_000, "it ends");
    }
    assert!(is_rejected(&sink.publish(&[event]).await[0], "frame_max"));
}

async fn a_queue_that_is_full_is_tried_again() {
    let settings = json!({ "x-max-length": 1, "x-overflow": "reject-publish" });
    let rabbitmq = RabbitMq::start_with("#", &settings).await;
    let sink = rabbitmq.sink();
    assert_eq!(sink.publish(&[claimed(1, None, "1")]).await, [Delivery::Delivered]);
    let began = Instant::now();
    // The queue is full a moment after it has said that it has the message.
    loop {
        let deliveries = sink.publish(&[claimed(2, None, "2")]).await;
        if matches!(&deliveries[0], Delivery::Retry { error, .. } if error.contains("nack")) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{deliveries:?}");
    }
}

async fn a_server_that_blocks_publishers_is_down_and_comes_back() {
    let rabbitmq = RabbitMq::start().await;
    let sink = rabbitmq.sink();
    assert_eq!(sink.publish(&[claimed(1, None, "1")]).await, [Delivery::Delivered]);
    rabbitmq.node.control(&["set_vm_memory_high_watermark", "0"]);
    let event = claimed(2, None, "2");
    let began = Instant::now();
    let deliveries = sink.publish(std::slice::from_ref(&event)).await;
    assert!(is_down(&deliveries[0], "blocks publishers"), "{deliveries:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("blocks publishers"), "{error}");
    rabbitmq.node.control(&["set_vm_memory_high_watermark", "0.4"]);
    let began = Instant::now();
    while sink.check().await.is_err()
        || sink.publish(std::slice::from_ref(&event)).await != [Delivery::Delivered]
    {
        assert!(began.elapsed() < Duration::from_secs(5), "not delivered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
