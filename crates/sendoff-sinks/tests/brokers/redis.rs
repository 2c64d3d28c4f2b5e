//! Redis, read back by its own client.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::testkit::{Received, SinkHarness};
use sendoff::{Delivery, Sink};
use sendoff_sinks::RedisConfig;
use tempfile::TempDir;

use crate::broker::{self, Broker, free_port, program};
use crate::trial;

/// Longer than any case.
pub(crate) const WINDOW: Duration = Duration::from_secs(600);

const SERVER: &str = "SENDOFF_TEST_REDIS";
const CLIENT: &str = "SENDOFF_TEST_REDIS_CLI";

/// The stream of the suite's events: their topic.
const STREAM: &str = "suite.happened";

pub(crate) fn is_missing() -> bool {
    broker::is_missing("redis", &[SERVER, CLIENT])
}

/// A server of its own, which keeps what it has acknowledged.
pub(crate) struct Redis {
    broker: Broker,
    port: u16,
    dedupe: Option<Duration>,
    _directory: TempDir,
}

impl Redis {
    pub(crate) async fn start(dedupe: Option<Duration>) -> Self {
        Self::start_with(dedupe, &[]).await
    }

    async fn start_with(dedupe: Option<Duration>, options: &'static [&'static str]) -> Self {
        loop {
            let directory = tempfile::tempdir().unwrap();
            let port = free_port();
            let path = directory.path().to_owned();
            let broker = Broker::new(move || server(&path, port, options));
            let redis = Self { broker, port, dedupe, _directory: directory };
            redis.broker.start();
            if redis.until_ready().await {
                return redis;
            }
        }
    }

    async fn until_ready(&self) -> bool {
        let is_there = |answer: String| answer.contains("PONG") || answer.contains("NOAUTH");
        self.broker.until(|| self.cli(&["PING"]).is_ok_and(is_there)).await
    }

    fn cli(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(program(CLIENT))
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "--csv"])
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(text) }
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}/0", self.address())
    }

    fn config(&self) -> RedisConfig {
        self.config_at(self.address())
    }

    fn config_at(&self, address: SocketAddr) -> RedisConfig {
        RedisConfig {
            dedupe: self.dedupe,
            timeout: Duration::from_secs(1),
            ..RedisConfig::new(format!("redis://{address}/0"))
        }
    }
}

fn server(directory: &Path, port: u16, options: &[&str]) -> Command {
    let mut command = Command::new(program(SERVER));
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
        .args(["--appendonly", "yes", "--appendfsync", "always"])
        .arg("--dir")
        .arg(directory)
        .args(options);
    command
}

impl SinkHarness for Redis {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        Arc::new(sendoff_sinks::Redis::new(self.config_at(address)).unwrap())
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    async fn received(&self) -> Vec<Received> {
        entries(&self.cli(&["XRANGE", STREAM, "-", "+"]).unwrap())
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

/// What `redis-cli --csv XRANGE` prints: an entry's id, then its fields, of which `payload` is the last.
fn entries(csv: &str) -> Vec<Received> {
    let mut texts = quoted(csv.as_bytes()).into_iter();
    let mut received = Vec::new();
    while texts.next().is_some() {
        let (mut fields, mut payload) = (BTreeMap::new(), None);
        while payload.is_none() {
            let name = String::from_utf8(texts.next().expect("a field")).unwrap();
            let value = texts.next().expect("its value");
            if name == "payload" {
                payload = Some(value);
            } else {
                fields.insert(name, String::from_utf8(value).unwrap());
            }
        }
        received.push(Received {
            id: fields["ce-id"].clone(),
            key: fields.get("ce-partitionkey").cloned(),
            payload: payload.unwrap_or_default(),
            headers: fields,
        });
    }
    received
}

/// The texts between quotation marks, with their escapes undone.
fn quoted(csv: &[u8]) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let mut bytes = csv.iter().copied();
    while bytes.by_ref().any(|byte| byte == b'"') {
        let mut text = Vec::new();
        loop {
            match bytes.next().expect("a closing mark") {
                b'"' => break,
                b'\\' => text.push(match bytes.next().unwrap() {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    b'x' => {
                        let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                        u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                    }
                    other => other,
                }),
                byte => text.push(byte),
            }
        }
        texts.push(text);
    }
    texts
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {
            vec![$(trial(format!("redis::{}", stringify!($case)), is_missing(), $case)),*]
        };
    }
    cases![
        a_stream_is_cut_to_its_length,
        a_wrong_password_is_said_and_not_shown,
        a_key_that_is_no_stream_is_the_events
    ]
}

async fn publish(sink: &dyn Sink, count: i64) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for number in 0..count {
        deliveries.extend(sink.publish(&[sendoff::testkit::claimed(number, None, "x")]).await);
    }
    deliveries
}

async fn a_stream_is_cut_to_its_length() {
    let redis = Redis::start(None).await;
    let config = RedisConfig { max_length: Some(100), ..redis.config() };
    publish(&sendoff_sinks::Redis::new(config).unwrap(), 1_000).await;
    let length = redis.cli(&["XLEN", STREAM]).unwrap().trim().parse::<u32>().unwrap();
    // About: it is cut by whole nodes, of a hundred entries at most.
    assert!((100..300).contains(&length), "{length}");
}

async fn a_wrong_password_is_said_and_not_shown() {
    let redis = Redis::start_with(None, &["--requirepass", "right"]).await;
    for (user, hint) in [("", "give it user and password"), (":wr0ng@", "user or password are wrong")] {
        let url = format!("redis://{user}127.0.0.1:{}/0", redis.port);
        let sink = sendoff_sinks::Redis::new(RedisConfig { url, ..redis.config() }).unwrap();
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(hint) && error.contains(&redis.port.to_string()), "{error}");
        assert!(!error.contains("wr0ng"), "{error}");
        let delivery = publish(&sink, 1).await.remove(0);
        assert!(matches!(&delivery, Delivery::Down { error } if !error.contains("wr0ng")), "{delivery:?}");
    }
    let url = format!("redis://:right@127.0.0.1:{}/0", redis.port);
    let sink = sendoff_sinks::Redis::new(RedisConfig { url, ..redis.config() }).unwrap();
    assert_eq!(publish(&sink, 1).await, [Delivery::Delivered]);
}

async fn a_key_that_is_no_stream_is_the_events() {
    for dedupe in [None, Some(WINDOW)] {
        let redis = Redis::start(dedupe).await;
        redis.cli(&["SET", STREAM, "a text"]).unwrap();
        let (sink, event) = (redis.sink(), sendoff::testkit::claimed(1, None, "x"));
        let delivery = sink.publish(std::slice::from_ref(&event)).await.remove(0);
        let is_retry = matches!(&delivery, Delivery::Retry { error, .. } if error.contains("WRONGTYPE"));
        assert!(is_retry, "{delivery:?}");
        redis.cli(&["DEL", STREAM]).unwrap();
        assert_eq!(sink.publish(&[event]).await, [Delivery::Delivered]);
        assert_eq!(redis.received().await.len(), 1, "it was taken for one that had been added");
    }
}
