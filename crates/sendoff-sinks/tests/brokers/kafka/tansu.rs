//! tansu: a broker that shares no code with our client, read back by confluent-kafka.
//!
//! It takes a producer only by the epoch that it has given out itself. A client of Kafka raises its epoch by itself when a record has failed, and is refused from then on: as fenced, or as unknown
//! if the broker was started again. So here it shows whether the sink makes a producer anew. What it cannot show is that a batch which was still on its way is fenced off by the next
//! epoch: it takes that one, and not the epoch.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Sink;
use sendoff::testkit::{Received, SinkHarness};
use sendoff_sinks::KafkaConfig;
use serde::Deserialize;

use super::{PARTITIONS, TOPIC, gate};
use crate::broker::{Broker, free_port, program};

const SERVER: &str = "SENDOFF_TEST_TANSU";
const PYTHON: &str = "SENDOFF_TEST_TANSU_PYTHON";
const PACKAGES: &str = "SENDOFF_TEST_CONFLUENT_KAFKA";
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/kafka/reader.py");

/// It comes on request only, since it takes long to build: otherwise there are no such cases.
pub(crate) fn is_asked_for() -> bool {
    let required = std::env::var("SENDOFF_TEST_REQUIRE").unwrap_or_default();
    std::env::var_os(SERVER).is_some() || required.split(',').any(|name| name == "tansu")
}

/// A broker of its own.
pub(crate) struct Tansu {
    broker: Broker,
    port: u16,
    /// It keeps its records in memory, and its producers: what was there before it was killed.
    before: Mutex<Vec<Received>>,
}

#[derive(Deserialize)]
struct Record {
    key: Option<String>,
    payload: String,
    headers: BTreeMap<String, String>,
}

impl Tansu {
    pub(crate) async fn start() -> Self {
        loop {
            let port = free_port();
            let tansu = Self { broker: Broker::new(move || server(port)), port, before: Mutex::default() };
            tansu.broker.start();
            if tansu.until_ready().await {
                return tansu;
            }
        }
    }

    async fn until_ready(&self) -> bool {
        self.broker.until(|| TcpStream::connect(self.address()).is_ok() && self.make_topic()).await
    }

    fn make_topic(&self) -> bool {
        let broker = format!("tcp://{}", self.address());
        let made = Command::new(program(SERVER))
            .args(["topic", "create", "--broker", &broker, "--partitions", &PARTITIONS.to_string(), TOPIC])
            .output();
        made.unwrap().status.success()
    }

    fn records(&self) -> Vec<Received> {
        let output = Command::new(program(PYTHON))
            .args([READER, &self.address().to_string(), TOPIC])
            .env("PYTHONPATH", program(PACKAGES))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| received(serde_json::from_str(line).unwrap())).collect()
    }
}

fn received(record: Record) -> Received {
    Received {
        id: record.headers["ce_id"].clone(),
        key: record.key,
        payload: STANDARD.decode(record.payload).unwrap(),
        headers: record.headers,
    }
}

fn server(port: u16) -> Command {
    let url = format!("tcp://127.0.0.1:{port}");
    let mut command = Command::new(program(SERVER));
    command
        .args(["broker", "--listener-url", &url, "--advertised-listener-url", &url])
        .args(["--storage-engine", "memory://tansu/"]);
    command
}

impl SinkHarness for Tansu {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        let brokers = if address == self.address() { address } else { gate::open(address, self.address()) };
        let timeout = Duration::from_secs(1);
        let config = KafkaConfig { timeout, ..KafkaConfig::new(brokers.to_string()) };
        Arc::new(sendoff_sinks::Kafka::new(config).unwrap())
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    async fn received(&self) -> Vec<Received> {
        let mut received = self.before.lock().unwrap().clone();
        received.extend(self.records());
        received
    }

    /// What is acknowledged between the reading and the end is lost with it, if somebody publishes then.
    async fn kill(&self) {
        let records = self.records();
        self.before.lock().unwrap().extend(records);
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
