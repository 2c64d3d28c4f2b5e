//! NATS JetStream, read back over its plain protocol.

mod permissions;
mod users;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Trial;
use nix::sys::signal::Signal;
use sendoff::testkit::{Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{NatsConfig, NatsStream};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::permissions::{
    a_stream_that_must_not_be_asked_for_is_said, a_subject_that_is_forbidden_is_said,
    answers_that_must_not_be_heard_are_said_until_they_may_be,
};
use self::users::{
    a_user_is_known_by_its_nkey, a_user_of_an_operator_is_known_by_its_credentials,
    credentials_that_are_none_are_said, credentials_that_are_revoked_are_read_again,
    credentials_that_expire_are_said_and_read_again,
};
use crate::broker::{self, Broker, free_port, program};
use crate::trial;

const SERVER: &str = "SENDOFF_TEST_NATS";
const STREAM: &str = "suite";
/// The configuration of a server that has one.
const FILE: &str = "nats.conf";

pub(crate) fn is_missing() -> bool {
    broker::is_missing("nats", &[SERVER])
}

/// A server of its own, with one stream.
pub(crate) struct Nats {
    broker: Broker,
    port: u16,
    directory: TempDir,
    /// What the reader says of itself.
    reader: Value,
}

impl Nats {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(options: &'static [&'static str]) -> Self {
        Self::start_configured("", options, json!({})).await
    }

    async fn start_configured(text: &str, options: &'static [&'static str], reader: Value) -> Self {
        loop {
            let directory = tempfile::tempdir().unwrap();
            let port = free_port();
            let path = directory.path().to_owned();
            let broker = Broker::new(move || {
                let mut command = Command::new(program(SERVER));
                command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(options);
                let file = path.join(FILE);
                match file.exists() {
                    true => command.arg("-c").arg(file),
                    false => command.args(["-js", "-sd"]).arg(&path),
                };
                command
            });
            let nats = Self { broker, port, directory, reader: reader.clone() };
            if !text.is_empty() {
                nats.configure(text);
            }
            nats.broker.start();
            if nats.until_ready().await {
                return nats;
            }
        }
    }

    /// For when it is started the next time, or reads it again.
    fn configure(&self, text: &str) {
        let directory = self.directory.path();
        // It does not go together with a command line that says so, and that is forgotten when it reads this again.
        let streams = json!({ "store_dir": directory });
        std::fs::write(directory.join(FILE), format!("{text}jetstream: {streams}\n")).unwrap();
    }

    /// It reads its configuration again.
    fn reload(&self) {
        self.broker.signal(Signal::SIGHUP);
    }

    async fn until_ready(&self) -> bool {
        self.broker.until(|| Plain::connect(self.port, &self.reader).is_some()).await
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("nats://{}/{STREAM}?create={}", self.address(), crate::serve::TOPIC)
    }

    fn config(&self) -> NatsConfig {
        self.config_at(self.address())
    }

    fn config_at(&self, address: SocketAddr) -> NatsConfig {
        NatsConfig {
            stream: NatsStream { name: STREAM.to_owned(), create_for: vec!["suite.>".to_owned()] },
            timeout: Duration::from_secs(1),
            ..NatsConfig::new(format!("nats://{address}"), STREAM)
        }
    }
}

impl SinkHarness for Nats {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        Arc::new(sendoff_sinks::Nats::new(self.config_at(address)).unwrap())
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    async fn received(&self) -> Vec<Received> {
        let mut plain = Plain::connect(self.port, &self.reader).expect("it runs");
        let info = plain.ask(&[(format!("$JS.API.STREAM.INFO.{STREAM}"), json!({}))]).remove(0);
        let state = &info["state"];
        let numbers = state["first_seq"].as_u64().unwrap_or(1)..=state["last_seq"].as_u64().unwrap_or(0);
        let asked: Vec<_> = numbers
            .map(|number| (format!("$JS.API.STREAM.MSG.GET.{STREAM}"), json!({ "seq": number })))
            .collect();
        plain.ask(&asked).iter().map(received).collect()
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

/// A stored message, as the server shows it.
fn received(answer: &Value) -> Received {
    let message = &answer["message"];
    let bytes = |name: &str| STANDARD.decode(message[name].as_str().unwrap_or_default()).unwrap();
    let text = String::from_utf8(bytes("hdrs")).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<String, String> =
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(headers["Nats-Msg-Id"], headers["ce-id"]);
    Received {
        id: headers["ce-id"].clone(),
        key: headers.get("ce-partitionkey").map(|key| decoded(key)),
        payload: bytes("data"),
        headers,
    }
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

/// The protocol as it is written down, without any client's code.
struct Plain {
    reader: BufReader<TcpStream>,
}

impl Plain {
    fn connect(port: u16, login: &Value) -> Option<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut plain = Self { reader: BufReader::new(stream) };
        plain.line()?.strip_prefix("INFO ")?;
        let mut hello = login.clone();
        hello["verbose"] = json!(false);
        plain.write(format!("CONNECT {hello}\r\nSUB answers 1\r\nPING\r\n").as_bytes());
        // A server that wants a password is there as well.
        let answer = plain.line()?;
        (answer == "PONG" || answer.starts_with("-ERR 'Authorization")).then_some(plain)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end().to_owned())
    }

    /// Answers come in the order of what was asked; a few hundred at a time, so that neither side waits for the other to read.
    fn ask(&mut self, requests: &[(String, Value)]) -> Vec<Value> {
        let mut answers = Vec::with_capacity(requests.len());
        for some in requests.chunks(200) {
            for (subject, body) in some {
                let body = body.to_string();
                self.write(format!("PUB {subject} answers {}\r\n{body}\r\n", body.len()).as_bytes());
            }
            for _ in some {
                answers.push(self.answer());
            }
        }
        answers
    }

    fn answer(&mut self) -> Value {
        loop {
            let line = self.line().expect("an answer");
            if line == "PING" {
                self.write(b"PONG\r\n");
            }
            let Some(head) = line.strip_prefix("MSG ") else { continue };
            let length: usize = head.rsplit(' ').next().unwrap().parse().unwrap();
            let mut body = vec![0; length + 2];
            self.reader.read_exact(&mut body).unwrap();
            return serde_json::from_slice(&body[..length]).unwrap();
        }
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {
            vec![$(trial(format!("nats::{}", stringify!($case)), is_missing(), $case)),*]
        };
    }
    cases![
        a_stream_that_is_not_there_is_named,
        a_subject_of_no_stream_is_the_events,
        a_payload_that_is_too_large_is_rejected_alone,
        a_wrong_password_is_said_and_not_shown,
        many_calls_at_once_do_not_wait_for_each_other,
        a_user_is_known_by_its_nkey,
        a_user_of_an_operator_is_known_by_its_credentials,
        credentials_that_are_revoked_are_read_again,
        credentials_that_expire_are_said_and_read_again,
        credentials_that_are_none_are_said,
        a_subject_that_is_forbidden_is_said,
        a_stream_that_must_not_be_asked_for_is_said,
        answers_that_must_not_be_heard_are_said_until_they_may_be,
    ]
}

async fn a_stream_that_is_not_there_is_named() {
    let nats = Nats::start().await;
    let sink = sendoff_sinks::Nats::new(NatsConfig::new(nats.config().url, "orders")).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("there is no stream `orders`") && error.contains("create it"), "{error}");
    let deliveries = sink.publish(&[claimed(1, None, "x")]).await;
    assert!(matches!(&deliveries[0], Delivery::Down { error } if error.contains("orders")), "{deliveries:?}");
}

async fn a_subject_of_no_stream_is_the_events() {
    let nats = Nats::start().await;
    let config = NatsConfig { subject: "elsewhere.{topic}".parse().unwrap(), ..nats.config() };
    let deliveries = sendoff_sinks::Nats::new(config).unwrap().publish(&[claimed(1, None, "x")]).await;
    assert!(
        matches!(&deliveries[0], Delivery::Retry { error, .. } if error.contains("no stream has its subject")),
        "{deliveries:?}"
    );
}

/// A server takes a megabyte, if nobody has told it otherwise.
async fn a_payload_that_is_too_large_is_rejected_alone() {
    let nats = Nats::start().await;
    let sink = nats.sink();
    let events = [claimed(1, None, "x"), claimed(2, None, vec![0; 2_000_000]), claimed(3, None, "y")];
    let deliveries = sink.publish(&events).await;
    assert!(
        matches!(&deliveries[1], Delivery::Reject { error } if error.contains("max_payload")),
        "{deliveries:?}"
    );
    assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
    assert_eq!(nats.received().await.len(), 2);
}

async fn a_wrong_password_is_said_and_not_shown() {
    let nats = Nats::start_with(&["--user", "user", "--pass", "r:ght"]).await;
    for (user, is_right) in [("", false), ("user:wr0ng@", false), ("user:r%3Aght@", true)] {
        let url = format!("nats://{user}127.0.0.1:{}", nats.port);
        let sink = sendoff_sinks::Nats::new(NatsConfig { url, ..nats.config() }).unwrap();
        let checked = sink.check().await;
        assert_eq!(checked.is_ok(), is_right, "{checked:?}");
        if let Err(error) = checked {
            let error = error.to_string();
            assert!(error.contains("user and password") && !error.contains("wr0ng"), "{error}");
        }
        let deliveries = sink.publish(&[claimed(1, None, "x")]).await;
        assert_eq!(deliveries[0] == Delivery::Delivered, is_right, "{deliveries:?}");
    }
}

/// More than the client lets be on their way: none of them may hold what another one needs.
async fn many_calls_at_once_do_not_wait_for_each_other() {
    let nats = Nats::start().await;
    let sink = nats.sink();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let sink = Arc::clone(&sink);
            tokio::spawn(async move {
                let events: Vec<_> = (0..500).map(|number| claimed(number, None, "x")).collect();
                sink.publish(&events).await
            })
        })
        .collect();
    for call in calls {
        let deliveries =
            tokio::time::timeout(Duration::from_secs(60), call).await.expect("no call is stuck").unwrap();
        assert!(
            deliveries.iter().all(|delivery| *delivery == Delivery::Delivered),
            "{:?}",
            deliveries.first()
        );
    }
}
