//! A webhook's receiver in Python, which knows nothing of the sink's client.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Trial;
use sendoff::testkit::{Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{HttpConfig, Secret};
use serde_json::Value;
use tempfile::TempDir;

use crate::broker::{self, Broker, free_port, program};
use crate::certificates::{Authority, Pair};
use crate::trial;

const PYTHON: &str = "SENDOFF_TEST_PYTHON";

/// The receiver, which a file of its own is made of for each.
const SCRIPT: &str = include_str!("http_receiver.py");

/// Longer than any case.
const WINDOW: Duration = Duration::from_secs(600);

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(crate) fn is_missing() -> bool {
    broker::is_missing("python", &[PYTHON])
}

/// A process of its own, which keeps what it has acknowledged.
pub(crate) struct Receiver {
    broker: Broker,
    port: u16,
    directory: TempDir,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::start_with(&["--dedupe"]).await
    }

    async fn start_with(options: &[&str]) -> Self {
        loop {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("receiver.py"), SCRIPT).unwrap();
            let port = free_port();
            let path = directory.path().to_owned();
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            let broker = Broker::new(move || receiver(&path, port, &options));
            let receiver = Self { broker, port, directory };
            receiver.broker.start();
            if receiver.until_ready().await {
                return receiver;
            }
        }
    }

    async fn until_ready(&self) -> bool {
        let ready = self.directory.path().join("ready");
        self.broker.until(|| ready.exists()).await
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks", self.address())
    }

    fn config(&self, path: &str) -> HttpConfig {
        config_at(self.address(), path)
    }

    fn sink_of(&self, path: &str) -> sendoff_sinks::Http {
        sendoff_sinks::Http::new(self.config(path)).unwrap()
    }

    /// Each request as it was written down.
    fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.path().join("received")).unwrap_or_default();
        // The last one may still be being written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn receiver(directory: &Path, port: u16, options: &[String]) -> Command {
    let _ = std::fs::remove_file(directory.join("ready"));
    let mut command = Command::new(program(PYTHON));
    command
        .arg(directory.join("receiver.py"))
        .args(["--port", &port.to_string()])
        .arg("--file")
        .arg(directory.join("received"))
        .arg("--ready")
        .arg(directory.join("ready"))
        .args(options);
    command
}

fn config_at(address: SocketAddr, path: &str) -> HttpConfig {
    HttpConfig {
        timeout: Duration::from_secs(1),
        allow_private: true,
        ..HttpConfig::new(format!("http://{address}{path}"))
    }
}

impl SinkHarness for Receiver {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        let config = HttpConfig { dedupe: Some(WINDOW), ..config_at(address, "/hooks/{topic}") };
        Arc::new(sendoff_sinks::Http::new(config).unwrap())
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    async fn received(&self) -> Vec<Received> {
        self.requests().iter().map(received).collect()
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

fn received(request: &Value) -> Received {
    let headers: BTreeMap<String, String> = serde_json::from_value(request["headers"].clone()).unwrap();
    assert_eq!(headers["idempotency-key"], headers["ce-id"]);
    assert_eq!(request["path"], "/hooks/suite.happened");
    Received {
        id: headers["ce-id"].clone(),
        key: headers.get("ce-partitionkey").map(|key| decoded(key)),
        payload: body(request),
        headers,
    }
}

fn body(request: &Value) -> Vec<u8> {
    STANDARD.decode(request["body"].as_str().unwrap()).unwrap()
}

/// With %XX undone.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&tail[..2]).unwrap(), 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {
            vec![$(trial(format!("http::{}", stringify!($case)), is_missing(), $case)),*]
        };
    }
    cases![
        a_status_is_the_receivers_answer,
        a_redirect_is_not_followed,
        an_event_that_is_too_large_is_rejected_alone,
        a_batch_is_taken_whole_and_its_culprit_rejected_alone,
        a_signature_is_one_that_others_can_check,
        wrong_credentials_are_said_and_not_shown,
        what_a_receiver_repeats_of_a_secret_is_not_shown,
        a_private_address_is_refused,
        a_certificate_is_trusted_only_if_it_is_known,
        who_asks_can_be_known_by_a_certificate,
        credentials_that_change_are_read_again,
        a_receiver_that_hangs_on_one_path_is_not_down,
        a_connection_that_is_lost_once_costs_nothing,
        an_event_that_ends_its_connection_is_the_events,
        a_wrong_name_is_down,
    ]
}

async fn publish(sink: &sendoff_sinks::Http) -> Delivery {
    sink.publish(&[claimed(1, None, "x")]).await.remove(0)
}

async fn a_status_is_the_receivers_answer() {
    let receiver = Receiver::start_with(&[]).await;
    for status in [200, 201, 202, 299] {
        assert_eq!(publish(&receiver.sink_of(&format!("/status/{status}"))).await, Delivery::Delivered);
    }
    for status in [408, 425, 429, 500, 502, 503, 504, 599] {
        for (path, wait) in [(format!("/status/{status}"), None), (format!("/status/{status}/7"), Some(7))] {
            let delivery = publish(&receiver.sink_of(&path)).await;
            let Delivery::Retry { error, after } = &delivery else { panic!("{status}: {delivery:?}") };
            assert_eq!(*after, wait.map(Duration::from_secs));
            assert!(error.contains(&format!("{} answered {status}", receiver.address())), "{error}");
            assert!(error.contains(": no xxx") && error.len() < 300, "{error}");
        }
    }
    for status in [400, 413, 415, 422, 409] {
        let delivery = publish(&receiver.sink_of(&format!("/status/{status}"))).await;
        assert!(
            matches!(&delivery, Delivery::Reject { error } if error.contains(&status.to_string())),
            "{delivery:?}"
        );
    }
    for (status, hint) in [(401, "credentials"), (403, "credentials"), (404, "path"), (410, "path")] {
        let sink = receiver.sink_of(&format!("/status/{status}"));
        let delivery = publish(&sink).await;
        assert!(matches!(&delivery, Delivery::Down { error } if error.contains(hint)), "{delivery:?}");
        assert!(sink.check().await.is_ok(), "it answers");
    }
}

async fn a_redirect_is_not_followed() {
    let receiver = Receiver::start_with(&[]).await;
    let delivery = publish(&receiver.sink_of("/redirect")).await;
    let Delivery::Down { error } = &delivery else { panic!("{delivery:?}") };
    assert!(error.contains("leads to 127.0.0.1;") && !error.contains("s3cret"), "{error}");
    assert!(receiver.requests().is_empty(), "it was followed");
}

async fn an_event_that_is_too_large_is_rejected_alone() {
    let receiver = Receiver::start_with(&["--max-body", "1000"]).await;
    let events = [claimed(1, None, "x"), claimed(2, None, vec![0; 200_000]), claimed(3, None, "y")];
    let deliveries = receiver.sink_of("/hooks").publish(&events).await;
    assert!(
        matches!(&deliveries[1], Delivery::Reject { error } if error.contains("413") && error.contains("that is too much")),
        "{deliveries:?}"
    );
    assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
    assert_eq!(receiver.requests().len(), 2);
}

async fn a_batch_is_taken_whole_and_its_culprit_rejected_alone() {
    let receiver = Receiver::start_with(&["--secret", SECRET]).await;
    let config =
        HttpConfig { batch: true, secrets: vec![SECRET.parse().unwrap()], ..receiver.config("/hooks") };
    let sink = sendoff_sinks::Http::new(config).unwrap();
    let mut events: Vec<_> = (1..=100).map(|number| claimed(number, Some("Zürich"), "x")).collect();
    events[7].event.headers.insert("x-y".to_owned(), "no attribute has such a name".to_owned());
    let deliveries = sink.publish(&events).await;
    assert!(
        matches!(&deliveries[7], Delivery::Reject { error } if error.contains("`x-y`")),
        "{:?}",
        deliveries[7]
    );
    assert_eq!(deliveries.iter().filter(|delivery| **delivery == Delivery::Delivered).count(), 99);
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    let content_type = requests[0]["headers"]["content-type"].as_str().unwrap();
    assert!(content_type.starts_with("application/cloudevents-batch+json"), "{content_type}");
    let batch: Vec<Value> = serde_json::from_slice(&body(&requests[0])).unwrap();
    let position = |event: &Value| event["sendoffposition"].as_str().unwrap().parse::<u32>().unwrap();
    let positions: Vec<u32> = batch.iter().map(position).collect();
    assert_eq!(positions, (1..=100).filter(|number| *number != 8).collect::<Vec<u32>>());
    assert_eq!((&batch[0]["partitionkey"], &batch[0]["data_base64"]), (&"Zürich".into(), &"eA==".into()));
    let mut events: Vec<_> = (1..=20).map(|number| claimed(number, None, "1")).collect();
    events[3].event.payload = b"\"refuse me\"".to_vec();
    events[3].event.content_type = Some("application/json".to_owned());
    let deliveries = sink.publish(&events).await;
    for (index, delivery) in deliveries.iter().enumerate() {
        assert_eq!(*delivery == Delivery::Delivered, index != 3, "{delivery:?}");
    }
    assert!(matches!(&deliveries[3], Delivery::Reject { .. }), "{deliveries:?}");
    assert_eq!(receiver.requests().len(), 20, "one batch, and 19 of one event each");
}

async fn a_signature_is_one_that_others_can_check() {
    let receiver = Receiver::start_with(&["--secret", SECRET]).await;
    let old = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let cases: [(&[&str], bool); 4] =
        [(&[SECRET], true), (&[old, SECRET], true), (&[old], false), (&[], false)];
    for (secrets, is_right) in cases {
        let secrets = secrets.iter().map(|secret| secret.parse().unwrap()).collect();
        let config = HttpConfig { secrets, ..receiver.config("/hooks") };
        let delivery = publish(&sendoff_sinks::Http::new(config).unwrap()).await;
        assert_eq!(delivery == Delivery::Delivered, is_right, "{delivery:?}");
        if !is_right {
            assert!(
                matches!(&delivery, Delivery::Down { error } if error.contains("signing secrets")),
                "{delivery:?}"
            );
        }
    }
    assert_eq!(receiver.requests().len(), 2);
}

async fn wrong_credentials_are_said_and_not_shown() {
    let receiver = Receiver::start_with(&["--authorization", "Bearer r1ght"]).await;
    for (value, is_right) in [("Bearer wr0ng", false), ("Bearer r1ght", true)] {
        let headers = vec![("Authorization".to_owned(), value.to_owned())];
        let config = HttpConfig { headers, ..receiver.config("/hooks") };
        let sink = sendoff_sinks::Http::new(config).unwrap();
        let (checked, delivery) = (sink.check().await, publish(&sink).await);
        assert_eq!((checked.is_ok(), delivery == Delivery::Delivered), (is_right, is_right), "{delivery:?}");
        if let (Err(error), Delivery::Down { error: down }) = (checked, delivery) {
            for error in [error.to_string(), down] {
                assert!(error.contains(&receiver.address().to_string()), "{error}");
                assert!(error.contains("credentials") && !error.contains("wr0ng"), "{error}");
            }
        }
    }
    let url = format!("http://user:wr0ng@{}/hooks", receiver.address());
    let sink = sendoff_sinks::Http::new(HttpConfig { url, ..receiver.config("") }).unwrap();
    let delivery = publish(&sink).await;
    assert!(matches!(&delivery, Delivery::Down { error } if !error.contains("wr0ng")), "{delivery:?}");
}

async fn what_a_receiver_repeats_of_a_secret_is_not_shown() {
    let receiver = Receiver::start_with(&[]).await;
    let headers = vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())];
    let config = HttpConfig { headers, ..receiver.config("/echo") };
    let delivery = publish(&sendoff_sinks::Http::new(config).unwrap()).await;
    assert!(
        matches!(&delivery, Delivery::Reject { error } if error.contains("***") && !error.contains("s3cret")),
        "{delivery:?}"
    );
}

async fn a_private_address_is_refused() {
    let receiver = Receiver::start_with(&[]).await;
    let error =
        sendoff_sinks::Http::new(HttpConfig::new(format!("http://{}/", receiver.address()))).unwrap_err();
    assert!(error.to_string().contains("`allow_private`"), "{error}");
    let url = format!("http://localhost:{}/hooks", receiver.port);
    let sink = sendoff_sinks::Http::new(HttpConfig::new(&url)).unwrap();
    let delivery = publish(&sink).await;
    assert!(
        matches!(&delivery, Delivery::Down { error } if error.contains("`allow_private`")),
        "{delivery:?}"
    );
    assert!(sink.check().await.unwrap_err().to_string().contains("`allow_private`"));
    assert!(receiver.requests().is_empty());
    let config = HttpConfig { allow_private: true, ..HttpConfig::new(url) };
    assert_eq!(publish(&sendoff_sinks::Http::new(config).unwrap()).await, Delivery::Delivered);
}

async fn a_certificate_is_trusted_only_if_it_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let (file, key) = broker::certificate(directory.path());
    let options = ["--certificate", file.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let receiver = Receiver::start_with(&options).await;
    let config =
        || HttpConfig { url: format!("https://{}/hooks", receiver.address()), ..receiver.config("") };
    let sink = sendoff_sinks::Http::new(config()).unwrap();
    let delivery = publish(&sink).await;
    assert!(matches!(&delivery, Delivery::Down { error } if error.contains("`ca_file`")), "{delivery:?}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("certificate") && error.contains(&receiver.address().to_string()), "{error}");
    assert!(receiver.requests().is_empty());
    let sink = sendoff_sinks::Http::new(HttpConfig { ca_file: Some(file.clone()), ..config() }).unwrap();
    assert!(sink.check().await.is_ok());
    assert_eq!(publish(&sink).await, Delivery::Delivered);
    let url = format!("https://localhost:{}/hooks", receiver.port);
    let sink = sendoff_sinks::Http::new(HttpConfig { url, ca_file: Some(file), ..config() }).unwrap();
    assert!(matches!(publish(&sink).await, Delivery::Down { .. }), "it is for another name");
}

async fn who_asks_can_be_known_by_a_certificate() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (own, file) = (authority.sign("receiver"), authority.file());
    let options = [
        "--certificate",
        own.certificate.to_str().unwrap(),
        "--key",
        own.key.to_str().unwrap(),
        "--client-authority",
        file.to_str().unwrap(),
    ];
    let receiver = Receiver::start_with(&options).await;
    let sink = |client: Option<Pair>| {
        let (client_cert_file, client_key_file) = client.map(|pair| (pair.certificate, pair.key)).unzip();
        let url = format!("https://{}/hooks", receiver.address());
        let ca_file = Some(file.clone());
        let config = HttpConfig { url, ca_file, client_cert_file, client_key_file, ..receiver.config("") };
        sendoff_sinks::Http::new(config).unwrap()
    };
    for client in [None, Some(other.sign("client"))] {
        let sink = sink(client);
        let (error, delivery) = (sink.check().await.unwrap_err().to_string(), publish(&sink).await);
        let Delivery::Down { error: down } = &delivery else { panic!("{delivery:?}") };
        // This receiver does not say why: it closes the connection.
        for error in [&error, down] {
            assert!(error.contains(&receiver.address().to_string()), "{error}");
        }
    }
    let sink = sink(Some(authority.sign("client")));
    sink.check().await.unwrap();
    assert_eq!(publish(&sink).await, Delivery::Delivered);
}

/// A receiver that takes what is new, and a sink that begins with what is old.
async fn credentials_that_change_are_read_again() {
    let receiver = Receiver::start_with(&["--authorization", "Bearer n3w", "--secret", SECRET]).await;
    let directory = tempfile::tempdir().unwrap();
    let [token, signing] = ["token", "signing"].map(|name| directory.path().join(name));
    std::fs::write(&token, "Bearer 0ld\n").unwrap();
    std::fs::write(&signing, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n").unwrap();
    let config = HttpConfig {
        authorization: Some(Secret::File(token.clone())),
        secrets: vec![Secret::File(signing.clone()).into()],
        ..receiver.config("/hooks")
    };
    let sink = sendoff_sinks::Http::new(config).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("`authorization`") && !error.contains("0ld"), "{error}");
    std::fs::write(&token, "Bearer n3w\n").unwrap();
    sink.check().await.unwrap();
    let delivery = publish(&sink).await;
    assert!(
        matches!(&delivery, Delivery::Down { error } if error.contains("signing secrets")),
        "{delivery:?}"
    );
    std::fs::write(&signing, format!("{SECRET}\n")).unwrap();
    assert_eq!(publish(&sink).await, Delivery::Delivered);
}

async fn a_receiver_that_hangs_on_one_path_is_not_down() {
    let receiver = Receiver::start_with(&[]).await;
    let sink = receiver.sink_of("/slow");
    let began = Instant::now();
    let events: Vec<_> = (0..64).map(|number| claimed(number, None, "x")).collect();
    let deliveries = sink.publish(&events).await;
    assert!(began.elapsed() < Duration::from_secs(4), "a call has an end: {:?}", began.elapsed());
    assert!(
        matches!(&deliveries[0], Delivery::Retry { error, .. } if error.contains("did not answer in time")),
        "{deliveries:?}"
    );
    assert_eq!(deliveries[63], Delivery::Untried, "it was not begun");
}

async fn a_connection_that_is_lost_once_costs_nothing() {
    let receiver = Receiver::start_with(&[]).await;
    assert_eq!(publish(&receiver.sink_of("/drop-once")).await, Delivery::Delivered);
    assert_eq!(receiver.requests().len(), 1);
}

async fn an_event_that_ends_its_connection_is_the_events() {
    let receiver = Receiver::start_with(&[]).await;
    let events = [claimed(1, None, "x"), claimed(2, None, "drop"), claimed(3, None, "y")];
    let deliveries = receiver.sink_of("/hooks").publish(&events).await;
    assert!(
        matches!(&deliveries[1], Delivery::Retry { error, .. } if error.contains("the connection was lost")),
        "{deliveries:?}"
    );
    assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
}

async fn a_wrong_name_is_down() {
    let sink = sendoff_sinks::Http::new(HttpConfig::new("http://nowhere.invalid/")).unwrap();
    let delivery = publish(&sink).await;
    assert!(
        matches!(&delivery, Delivery::Down { error } if error.contains("is its name right?")),
        "{delivery:?}"
    );
}
