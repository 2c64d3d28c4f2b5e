//! SQS and SNS, by fauxqs, read back by boto3.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Trial;
use sendoff::outbox::Claimed;
use sendoff::testkit::{Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{Secret, Sns, SnsConfig, Sqs, SqsConfig, Template};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::broker::{self, Broker, free_port, program};
use crate::trial;

const NODE: &str = "SENDOFF_TEST_NODE";
const PACKAGES: &str = "SENDOFF_TEST_FAUXQS";
const PYTHON: &str = "SENDOFF_TEST_PYTHON";
const BOTO3: &str = "SENDOFF_TEST_BOTO3";
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/aws/server.mjs");
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/aws/reader.py");

/// As the sink names it, and the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    service: &'static str,
    name: &'static str,
}

pub(crate) const SQS: Kind = Kind { service: "sqs", name: "suite" };
pub(crate) const SQS_FIFO: Kind = Kind { service: "sqs", name: "suite.fifo" };
pub(crate) const SNS: Kind = Kind { service: "sns", name: "suite" };
pub(crate) const SNS_FIFO: Kind = Kind { service: "sns", name: "suite.fifo" };

pub(crate) fn is_missing() -> bool {
    broker::is_missing("fauxqs", &[NODE, PACKAGES, PYTHON, BOTO3])
}

/// A server of its own, with a queue, and a topic that leads to it if that is what events go to.
pub(crate) struct Aws {
    broker: Broker,
    port: u16,
    kind: Kind,
    /// What was taken from the queue.
    taken: Mutex<Vec<Message>>,
    _directory: TempDir,
}

/// A message, as the reader shows it.
#[derive(Debug, Clone, Deserialize)]
struct Message {
    body: String,
    attributes: BTreeMap<String, String>,
    group: Option<String>,
    deduplication: Option<String>,
}

impl Aws {
    pub(crate) async fn start(kind: Kind) -> Self {
        let aws = Self::start_empty(kind).await;
        aws.make(kind.name, &json!({}));
        aws
    }

    async fn start_empty(kind: Kind) -> Self {
        loop {
            let directory = tempfile::tempdir().unwrap();
            let port = free_port();
            let path = directory.path().to_owned();
            let broker = Broker::new(move || server(&path, port));
            let aws = Self { broker, port, kind, taken: Mutex::default(), _directory: directory };
            aws.broker.start();
            if aws.until_ready().await {
                return aws;
            }
        }
    }

    async fn until_ready(&self) -> bool {
        self.broker.until(|| TcpStream::connect(self.address()).is_ok()).await
    }

    fn make(&self, name: &str, settings: &Value) {
        self.python(&[self.kind.service, name, &settings.to_string()]);
    }

    fn python(&self, arguments: &[&str]) -> String {
        let output = Command::new(program(PYTHON))
            .args([READER, &self.port.to_string()])
            .args(arguments)
            .env("PYTHONPATH", program(BOTO3))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that has come to the queue so far.
    fn messages(&self) -> Vec<Message> {
        let lines = self.python(&["read", self.kind.name]);
        let mut taken = self.taken.lock().unwrap();
        taken.extend(lines.lines().map(|line| serde_json::from_str::<Message>(line).unwrap()));
        taken.clone()
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("{}:{}", self.kind.service, self.target(self.kind.name))
    }

    /// What the program finds the server by.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address())),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "writer".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "s3cret".to_owned()),
        ]
    }

    /// The queue's URL, or the topic's ARN.
    fn target(&self, name: &str) -> String {
        match self.kind.service {
            "sqs" => format!("http://127.0.0.1:{}/000000000000/{name}", self.port),
            _ => format!("arn:aws:sns:us-east-1:000000000000:{name}"),
        }
    }

    fn open(
        &self,
        target: Template,
        max_bytes: usize,
        address: SocketAddr,
        timeout: Duration,
    ) -> Arc<dyn Sink> {
        let endpoint_url = Some(format!("http://{address}"));
        let (region, access_key_id) = (Some("us-east-1".to_owned()), Some("writer".to_owned()));
        let secret_access_key = Some(Secret::Plain("s3cret".to_owned()));
        match self.kind.service {
            "sqs" => Arc::new(
                Sqs::new(SqsConfig {
                    queue_url: target,
                    endpoint_url,
                    region,
                    access_key_id,
                    secret_access_key,
                    max_bytes,
                    timeout,
                    ..SqsConfig::new("")
                })
                .unwrap(),
            ),
            _ => Arc::new(
                Sns::new(SnsConfig {
                    topic_arn: target,
                    endpoint_url,
                    region,
                    access_key_id,
                    secret_access_key,
                    max_bytes,
                    timeout,
                    ..SnsConfig::new("")
                })
                .unwrap(),
            ),
        }
    }

    /// For cases in which the server is always there, however busy the machine is.
    fn patient_sink(&self, target: Template, max_bytes: usize) -> Arc<dyn Sink> {
        self.open(target, max_bytes, self.address(), Duration::from_secs(30))
    }

    fn sink_to(&self, name: &str) -> Arc<dyn Sink> {
        self.patient_sink(Template::fixed(self.target(name)), 262_144)
    }
}

fn server(directory: &Path, port: u16) -> Command {
    let mut command = Command::new(program(NODE));
    command.args([SERVER, &program(PACKAGES), &port.to_string()]).arg(directory);
    command
}

impl SinkHarness for Aws {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        self.open(Template::fixed(self.target(self.kind.name)), 262_144, address, Duration::from_secs(1))
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    async fn received(&self) -> Vec<Received> {
        self.messages().iter().map(received).collect()
    }

    async fn kill(&self) {
        self.broker.kill();
    }

    async fn restart(&self) {
        self.broker.start();
        assert!(self.until_ready().await, "it ended when it was started again");
    }

    async fn freeze(&self, frozen: bool) {
        self.broker.hold(frozen);
    }
}

/// The event in a message.
fn received(message: &Message) -> Received {
    let mut body: BTreeMap<String, Value> = serde_json::from_str(&message.body).unwrap();
    let payload = match (body.remove("data_base64"), body.remove("data")) {
        (Some(data), None) => STANDARD.decode(data.as_str().unwrap()).unwrap(),
        (None, Some(data)) => data.to_string().into_bytes(),
        other => panic!("one of the two: {other:?}"),
    };
    let others = body.remove("sendoffheaders").map(|text| text.as_str().unwrap().to_owned());
    let mut headers: BTreeMap<String, String> =
        body.into_iter().map(|(name, value)| (name, value.as_str().unwrap().to_owned())).collect();
    headers.extend(
        others.iter().flat_map(|text| serde_json::from_str::<BTreeMap<String, String>>(text).unwrap()),
    );
    let (id, key) = (headers["id"].clone(), headers.get("partitionkey").cloned());
    assert_eq!((&message.attributes["ce-id"], &message.attributes["ce-type"]), (&id, &headers["type"]));
    assert_eq!(message.attributes.get("traceparent"), headers.get("traceparent"));
    if let Some(group) = &message.group {
        assert_eq!(message.deduplication.as_ref(), Some(&id));
        let fits = key.as_deref().is_some_and(|key| key.chars().all(|letter| letter.is_ascii_graphic()));
        match &key {
            Some(key) if fits => assert_eq!(group, key),
            Some(_) => assert!(group.starts_with("sha256:"), "{group}"),
            None => assert_eq!(group, &id),
        }
    }
    // Another name that ends so, for the suite.
    headers.remove("datacontenttype");
    Received { id, key, payload, headers }
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($kind:ident $case:ident),* $(,)?) => {
            vec![$({
                let name = format!("{}::{}", stringify!($kind).to_lowercase(), stringify!($case));
                trial(name, is_missing(), || $case($kind))
            }),*]
        };
    }
    cases![
        SQS a_target_that_is_not_there_is_named,
        SNS a_target_that_is_not_there_is_named,
        SQS a_target_of_one_event_is_the_events,
        SNS a_target_of_one_event_is_the_events,
        SQS what_is_too_large_is_rejected_alone,
        SQS_FIFO what_is_too_large_is_rejected_alone,
        SQS a_request_that_is_too_large_is_taken_apart,
        SQS_FIFO every_key_has_a_group_of_its_own,
        SNS_FIFO every_key_has_a_group_of_its_own,
        SQS headers_of_any_name_arrive,
        SNS headers_of_any_name_arrive,
        SQS a_sink_that_was_closed_is_opened_again,
        SNS a_sink_that_was_closed_is_opened_again,
    ]
}

fn is_down(delivery: &Delivery, text: &str) -> bool {
    matches!(delivery, Delivery::Down { error } if error.contains(text))
}

fn is_rejected(delivery: &Delivery, text: &str) -> bool {
    matches!(delivery, Delivery::Reject { error } if error.contains(text))
}

async fn a_target_that_is_not_there_is_named(kind: Kind) {
    let aws = Aws::start_empty(kind).await;
    let sink = aws.sink_to(kind.name);
    let target = aws.target(kind.name);
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains(&target) && error.contains("create it"), "{error}");
    assert!(error.contains(&aws.port.to_string()) && !error.contains("s3cret"), "{error}");
    let events: Vec<_> = (0..25).map(|number| claimed(number, None, "x")).collect();
    let deliveries = sink.publish(&events).await;
    assert!(deliveries.iter().all(|delivery| is_down(delivery, &target)), "{deliveries:?}");
    aws.make(kind.name, &json!({}));
    assert_eq!(sink.check().await, Ok(()));
    assert_eq!(sink.publish(&events).await, vec![Delivery::Delivered; 25]);
}

fn routed(number: i64, route: &str) -> Claimed {
    let mut event = claimed(number, Some(&number.to_string()), "1");
    event.event.headers.insert("route".to_owned(), route.to_owned());
    event
}

async fn a_target_of_one_event_is_the_events(kind: Kind) {
    let aws = Aws::start(kind).await;
    let template = aws.target("{header:route}").parse().unwrap();
    let sink = aws.patient_sink(template, 262_144);
    assert_eq!(sink.check().await, Ok(()));
    let routes = [kind.name, "nowhere", kind.name, kind.name];
    let events: Vec<_> = (0..).zip(routes).map(|(number, route)| routed(number, route)).collect();
    let deliveries = sink.publish(&events).await;
    assert!(
        matches!(&deliveries[1], Delivery::Retry { error, .. } if error.contains("nowhere")),
        "{deliveries:?}"
    );
    for index in [0, 2, 3] {
        assert_eq!(deliveries[index], Delivery::Delivered);
    }
    assert_eq!(aws.messages().len(), 3);
}

/// For the sink, and for the queue.
async fn what_is_too_large_is_rejected_alone(kind: Kind) {
    let aws = Aws::start_empty(kind).await;
    aws.make(kind.name, &json!({ "MaximumMessageSize": "4096" }));
    let sink = aws.sink_to(kind.name);
    let mut events: Vec<_> = (0..8).map(|number| claimed(number, None, "x")).collect();
    events[2].event.payload = vec![0; 262_144];
    events[5].event.payload = vec![0; 4_096];
    let deliveries = sink.publish(&events).await;
    for (index, delivery) in deliveries.iter().enumerate() {
        let is_right = match index {
            2 => is_rejected(delivery, "`max_bytes` is 262144"),
            5 => is_rejected(delivery, "4096 bytes"),
            _ => *delivery == Delivery::Delivered,
        };
        assert!(is_right, "event {index}: {delivery:?}");
    }
    assert_eq!(aws.messages().len(), 6);
}

/// The sink is told that more may be sent than the server takes.
async fn a_request_that_is_too_large_is_taken_apart(kind: Kind) {
    let aws = Aws::start(kind).await;
    let sink = aws.patient_sink(Template::fixed(aws.target(kind.name)), 8_000_000);
    let mut events: Vec<_> = (0..5).map(|number| claimed(number, None, vec![0; 300_000])).collect();
    events[3].event.payload = vec![0; 900_000];
    let deliveries = sink.publish(&events).await;
    for (index, delivery) in deliveries.iter().enumerate() {
        let is_right =
            if index == 3 { is_rejected(delivery, "TooLong") } else { *delivery == Delivery::Delivered };
        assert!(is_right, "event {index}: {delivery:?}");
    }
    assert_eq!(aws.messages().len(), 4);
}

async fn every_key_has_a_group_of_its_own(kind: Kind) {
    let aws = Aws::start(kind).await;
    let long = "x".repeat(129);
    let keys = ["plain", "two words", "Zürich", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", &long, "a\u{1}b", ""];
    let mut events: Vec<_> = (0..).zip(keys).map(|(number, key)| claimed(number, Some(key), "1")).collect();
    events.extend([claimed(7, None, "1"), claimed(8, None, "1")]);
    let sink = aws.sink_to(kind.name);
    assert_eq!(sink.publish(&events).await, vec![Delivery::Delivered; 9]);
    assert_eq!(
        sink.publish(&events).await,
        vec![Delivery::Delivered; 9],
        "the second time it is dropped there"
    );
    let messages = aws.messages();
    let groups: BTreeSet<_> = messages.iter().map(|message| message.group.clone().unwrap()).collect();
    assert_eq!((groups.len(), messages.len()), (9, 9), "{groups:?}");
    assert!(groups.iter().all(|group| group.len() <= 128), "{groups:?}");
    let arrived: BTreeSet<_> = messages
        .iter()
        .filter_map(|message| json_of(message)["partitionkey"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(arrived, keys.map(str::to_owned).into());
}

fn json_of(message: &Message) -> Value {
    serde_json::from_str(&message.body).unwrap()
}

/// And more of them than there may be attributes.
async fn headers_of_any_name_arrive(kind: Kind) {
    let aws = Aws::start(kind).await;
    let mut event = claimed(1, None, r#"{"text":"a☃b"}"#);
    event.event.content_type = Some("application/json".to_owned());
    event.event.headers = (0..30).map(|number| (format!("X-Header {number}"), number.to_string())).collect();
    event.event.headers.insert("empty".to_owned(), String::new());
    event.event.headers.insert("control".to_owned(), "a\u{1}\u{FFFE}b".to_owned());
    assert_eq!(aws.sink_to(kind.name).publish(std::slice::from_ref(&event)).await, [Delivery::Delivered]);
    let arrived = aws.received().await.remove(0);
    for (name, value) in &event.event.headers {
        assert_eq!(arrived.headers.get(name), Some(value), "{name}");
    }
    assert_eq!(arrived.payload, event.event.payload);
}

async fn a_sink_that_was_closed_is_opened_again(kind: Kind) {
    let aws = Aws::start(kind).await;
    let sink = aws.sink_to(kind.name);
    assert_eq!(sink.publish(&[claimed(1, None, "1")]).await, [Delivery::Delivered]);
    sink.close().await.unwrap();
    assert_eq!(sink.publish(&[claimed(2, None, "2")]).await, [Delivery::Delivered]);
    assert_eq!(aws.messages().len(), 2);
}
