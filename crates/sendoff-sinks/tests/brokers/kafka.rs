//! Kafka, read back by kcat.

mod cluster;
mod doorkeeper;
mod gate;
mod producer;
mod tansu;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::outbox::Claimed;
use sendoff::testkit::{FaultProxy, Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{
    KafkaCompression, KafkaConfig, KafkaMechanism, KafkaSasl, KafkaSecurity, KafkaTls, Secret, Template,
};
use tempfile::TempDir;

pub(crate) use self::cluster::run_if_asked;
pub(crate) use self::tansu::{Tansu, is_asked_for as tansu_is_asked_for};
use crate::broker::{self, Broker, program};
use crate::trial;

const READER: &str = "SENDOFF_TEST_KCAT";

/// The topic of the suite's events.
const TOPIC: &str = "suite.happened";

const PARTITIONS: usize = 4;

/// Only a broken promise takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn is_missing() -> bool {
    broker::is_missing("kafka", &[READER])
}

/// A cluster of its own.
pub(crate) struct Kafka {
    broker: Broker,
    socket: PathBuf,
    address: SocketAddr,
    _directory: TempDir,
}

impl Kafka {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("cluster");
        let path = socket.clone();
        let broker = Broker::new(move || cluster::command(&path));
        broker.start();
        assert!(broker.until(|| cluster::tell(&socket, "address").is_some()).await, "it ended");
        let address = cluster::tell(&socket, "address").unwrap().parse().unwrap();
        let kafka = Self { broker, socket, address, _directory: directory };
        kafka.tell(&format!("create {TOPIC} {PARTITIONS}"));
        kafka
    }

    fn tell(&self, order: &str) {
        assert_eq!(cluster::tell(&self.socket, order).as_deref(), Some("done"), "{order}");
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        self.tell(&format!("create {} {PARTITIONS}", crate::serve::TOPIC));
        format!("kafka://{}", self.address)
    }

    fn config(&self) -> KafkaConfig {
        KafkaConfig { timeout: Duration::from_secs(1), ..KafkaConfig::new(self.address.to_string()) }
    }

    /// For a sink that goes through this proxy with everything.
    fn config_at(&self, address: SocketAddr) -> KafkaConfig {
        if address == self.address {
            return self.config();
        }
        let brokers = gate::open(address, self.address).to_string();
        KafkaConfig { brokers, ..self.config() }
    }

    /// Every record, partition by partition.
    fn records(&self) -> Vec<Record> {
        // Lengths in front of what may have any byte in it; a header has no line break.
        let output = Command::new(program(READER))
            .args(["-C", "-e", "-q", "-o", "beginning", "-t", TOPIC, "-b", &self.address.to_string()])
            .args(["-f", "%p %T %K %S %h\\n%k%s"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut rest = output.stdout.as_slice();
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (record, left) = Record::read(rest);
            records.push(record);
            rest = left;
        }
        records
    }

    /// Every record, once there are so many.
    async fn until_records(&self, count: usize) -> Vec<Record> {
        let began = Instant::now();
        loop {
            let records = self.records();
            if records.len() >= count {
                return records;
            }
            assert!(began.elapsed() < PATIENCE, "only {} of {count} came", records.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

struct Record {
    partition: usize,
    /// In milliseconds.
    time: i64,
    received: Received,
}

impl Record {
    /// The first one of these bytes, and the rest.
    fn read(bytes: &[u8]) -> (Self, &[u8]) {
        let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
        let line = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut words = line.splitn(5, ' ');
        let mut number = || words.next().unwrap().parse::<i64>().unwrap();
        let (partition, time, key, payload) = (number(), number(), number(), number());
        let fields = words.next().unwrap_or_default().split(',').filter_map(|field| field.split_once('='));
        let headers: BTreeMap<String, String> =
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let rest = &bytes[end + 1..];
        let (key, rest) = match usize::try_from(key) {
            Ok(length) => (Some(String::from_utf8(rest[..length].to_vec()).unwrap()), &rest[length..]),
            Err(_) => (None, rest),
        };
        let (payload, rest) = rest.split_at(usize::try_from(payload).expect("a payload, if an empty one"));
        let received = Received { id: headers["ce_id"].clone(), key, payload: payload.to_vec(), headers };
        (Self { partition: usize::try_from(partition).unwrap(), time, received }, rest)
    }
}

impl SinkHarness for Kafka {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        Arc::new(sendoff_sinks::Kafka::new(self.config_at(address)).unwrap())
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    async fn received(&self) -> Vec<Received> {
        self.records().into_iter().map(|record| record.received).collect()
    }

    /// The cluster keeps its records in memory, so it goes on, and is not to be reached.
    async fn kill(&self) {
        self.tell("down");
    }

    async fn restart(&self) {
        self.tell("up");
    }

    async fn freeze(&self, frozen: bool) {
        self.broker.hold(frozen);
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {
            vec![$(trial(format!("kafka::{}", stringify!($case)), is_missing(), $case)),*]
        };
    }
    use self::producer::*;
    cases![
        a_producer_that_cannot_go_on_is_replaced,
        a_producer_that_is_not_known_goes_on_with_its_next_epoch,
        a_producer_that_the_brokers_refuse_is_replaced,
        an_epoch_that_is_refused_is_not_held_against_the_event,
        a_key_stays_in_its_partition_and_its_order,
        a_record_says_when_its_event_was_written,
        events_without_a_key_are_spread,
        every_compression_can_be_read,
        a_payload_that_is_too_large_is_rejected_alone,
        what_one_record_is_refused_for_is_not_held_against_the_others,
        a_broker_that_is_no_leader_any_more_is_no_failure,
        a_topic_that_is_not_there_is_named,
        a_topic_that_is_not_allowed_is_named,
        what_a_dropped_call_has_left_comes_first,
        a_wrong_password_is_said_and_not_shown,
        a_certificate_that_nobody_trusts_is_said,
        one_broker_of_those_given_is_enough,
    ]
}

fn sink(config: KafkaConfig) -> sendoff_sinks::Kafka {
    sendoff_sinks::Kafka::new(config).unwrap()
}

/// So many events of so many keys, in turn; each payload is the number of its event.
fn numbered(count: usize, keys: usize) -> Vec<Claimed> {
    (0..count)
        .map(|number| claimed(number as i64, Some(&format!("key-{}", number % keys)), number.to_string()))
        .collect()
}

fn assert_delivered(deliveries: &[Delivery]) {
    assert!(deliveries.iter().all(|delivery| *delivery == Delivery::Delivered), "{deliveries:?}");
}

async fn a_key_stays_in_its_partition_and_its_order() {
    let kafka = Kafka::start().await;
    let sink = sink(kafka.config());
    for wave in numbered(10_000, 50).chunks(50) {
        assert_delivered(&sink.publish(wave).await);
    }
    let records = kafka.until_records(10_000).await;
    assert_eq!(records.len(), 10_000, "each once");
    let mut keys: HashMap<String, (BTreeSet<usize>, Vec<usize>)> = HashMap::new();
    for record in records {
        let (partitions, numbers) = keys.entry(record.received.key.unwrap()).or_default();
        partitions.insert(record.partition);
        numbers.push(std::str::from_utf8(&record.received.payload).unwrap().parse().unwrap());
    }
    for (key, (partitions, numbers)) in &keys {
        assert_eq!(partitions.len(), 1, "{key}: {partitions:?}");
        assert!(numbers.len() == 200 && numbers.is_sorted(), "out of order: {key}: {numbers:?}");
        // As clients in Java choose it.
        let expected = (murmur2(key.as_bytes()) & 0x7fff_ffff) as usize % PARTITIONS;
        assert!(partitions.contains(&expected), "{key}: {partitions:?}, not {expected}");
    }
    let used: BTreeSet<usize> = keys.values().flat_map(|(partitions, _)| partitions.clone()).collect();
    assert_eq!(used.len(), PARTITIONS);
}

/// The hash of `org.apache.kafka.common.utils.Utils`.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ u32::try_from(data.len()).unwrap();
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes(word.try_into().unwrap()).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

async fn a_record_says_when_its_event_was_written() {
    let kafka = Kafka::start().await;
    let mut event = claimed(1, Some("k"), "x");
    event.event.created_at = sendoff::claim::Timestamp::from_micros(1_700_000_000_123_456);
    assert_delivered(&sink(kafka.config()).publish(&[event]).await);
    let record = kafka.until_records(1).await.remove(0);
    assert_eq!(record.time, 1_700_000_000_123);
    assert_eq!(record.received.headers["content-type"], "application/octet-stream");
    assert_eq!(record.received.headers["ce_partitionkey"], "k");
}

async fn events_without_a_key_are_spread() {
    let kafka = Kafka::start().await;
    let sink = sink(kafka.config());
    let began = Instant::now();
    let mut partitions = BTreeSet::new();
    while partitions.len() < PARTITIONS {
        assert!(began.elapsed() < PATIENCE, "only {partitions:?}");
        for number in 0..20 {
            assert_delivered(&sink.publish(&[claimed(number, None, "x")]).await);
        }
        partitions = kafka.records().iter().map(|record| record.partition).collect();
    }
}

async fn every_compression_can_be_read() {
    for compression in
        [KafkaCompression::None, KafkaCompression::Gzip, KafkaCompression::Snappy, KafkaCompression::Lz4]
    {
        let kafka = Kafka::start().await;
        let events: Vec<_> = (0..200).map(|number| claimed(number, Some("k"), vec![7; 1_000])).collect();
        let sink = sink(KafkaConfig { compression, linger: Duration::from_millis(50), ..kafka.config() });
        assert_delivered(&sink.publish(&events).await);
        let records = kafka.until_records(200).await;
        assert!(records.iter().all(|record| record.received.payload == [7; 1_000]), "{compression:?}");
    }
}

async fn a_payload_that_is_too_large_is_rejected_alone() {
    let kafka = Kafka::start().await;
    let events = [claimed(1, None, "x"), claimed(2, None, vec![0; 2_000_000]), claimed(3, None, "y")];
    let deliveries = sink(kafka.config()).publish(&events).await;
    assert!(
        matches!(&deliveries[1], Delivery::Reject { error } if error.contains("max_message_bytes")),
        "{deliveries:?}"
    );
    assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
    assert_eq!(kafka.until_records(2).await.len(), 2);
}

/// A broker refuses a batch as a whole.
async fn what_one_record_is_refused_for_is_not_held_against_the_others() {
    for code in ["too_large", "invalid_record"] {
        let kafka = Kafka::start().await;
        let sink = sink(KafkaConfig { linger: Duration::from_millis(50), ..kafka.config() });
        let events: Vec<_> = (0..3).map(|number| claimed(number, Some("k"), "x")).collect();
        // The batch, then the first of it by itself.
        kafka.tell(&format!("fail {code} {code}"));
        let deliveries = sink.publish(&events).await;
        assert!(matches!(&deliveries[0], Delivery::Reject { .. }), "{deliveries:?}");
        assert_delivered(&deliveries[1..]);
        assert_eq!(kafka.until_records(2).await.len(), 2);
    }
}

async fn a_broker_that_is_no_leader_any_more_is_no_failure() {
    let kafka = Kafka::start().await;
    let sink = sink(KafkaConfig { timeout: Duration::from_secs(5), ..kafka.config() });
    kafka.tell("fail not_leader not_leader");
    let events = numbered(100, 100);
    assert_delivered(&sink.publish(&events).await);
    assert_eq!(kafka.until_records(100).await.len(), 100, "each once");
}

async fn a_topic_that_is_not_there_is_named() {
    named_and_used_later("unknown_topic", "there is no topic `suite.happened`: create it").await;
}

async fn a_topic_that_is_not_allowed_is_named() {
    named_and_used_later("not_allowed", "may not write to the topic `suite.happened`").await;
}

async fn named_and_used_later(code: &str, advice: &str) {
    for is_fixed in [true, false] {
        let kafka = Kafka::start().await;
        kafka.tell(&format!("refuse {TOPIC} {code}"));
        let topic = if is_fixed { Template::fixed(TOPIC) } else { Template::topic() };
        let sink = sink(KafkaConfig { topic, timeout: Duration::from_secs(2), ..kafka.config() });
        let checked = sink.check().await.map_err(|error| error.to_string());
        assert_eq!(checked.is_err(), is_fixed, "{checked:?}");
        assert!(checked.err().is_none_or(|error| error.contains(advice)));
        let event = claimed(1, None, "x");
        let delivery = sink.publish(std::slice::from_ref(&event)).await.remove(0);
        match &delivery {
            Delivery::Down { error } => assert!(is_fixed && error.contains(advice), "{delivery:?}"),
            Delivery::Retry { error, .. } => assert!(!is_fixed && error.contains(advice), "{delivery:?}"),
            _ => panic!("{delivery:?}"),
        }
        kafka.tell(&format!("refuse {TOPIC} none"));
        assert!(sink.check().await.is_ok());
        assert_delivered(&sink.publish(&[event]).await);
    }
}

/// Never after a later event of its key.
async fn what_a_dropped_call_has_left_comes_first() {
    let kafka = Kafka::start().await;
    let proxy = FaultProxy::start(kafka.address()).await.unwrap();
    let sink = sink(KafkaConfig { timeout: Duration::from_secs(5), ..kafka.config_at(proxy.address()) });
    let events = numbered(20, 1);
    assert_delivered(&sink.publish(&events[..1]).await);
    for pair in events[1..].chunks(2) {
        proxy.hold(true);
        let first = sink.publish(&pair[..1]);
        assert!(tokio::time::timeout(Duration::from_millis(50), first).await.is_err(), "it is held");
        proxy.hold(false);
        if fastrand::bool() {
            proxy.cut();
        }
        for event in pair {
            let began = Instant::now();
            while sink.publish(std::slice::from_ref(event)).await != [Delivery::Delivered] {
                assert!(began.elapsed() < PATIENCE);
            }
        }
    }
    let received = kafka.received().await;
    let mut highest = 0;
    for number in
        received.iter().map(|one| std::str::from_utf8(&one.payload).unwrap().parse::<usize>().unwrap())
    {
        assert!(number >= highest, "{number} after {highest}");
        highest = number;
    }
    assert_eq!(highest, 19);
}

async fn a_wrong_password_is_said_and_not_shown() {
    let address = doorkeeper::open();
    for mechanism in [KafkaMechanism::Plain, KafkaMechanism::ScramSha256, KafkaMechanism::ScramSha512] {
        let sasl =
            KafkaSasl { mechanism, username: "user".to_owned(), password: Secret::Plain("wr0ng".to_owned()) };
        let security = KafkaSecurity { sasl: Some(sasl), tls: None };
        let timeout = Duration::from_secs(20);
        let sink = sink(KafkaConfig { security, timeout, ..KafkaConfig::new(address.to_string()) });
        let began = Instant::now();
        let error = sink.check().await.unwrap_err().to_string();
        let is_said = |error: &str| {
            error.contains("uthentication failed")
                && error.contains("are user, password and mechanism right?")
        };
        assert!(is_said(&error) && error.contains(&address.to_string()), "{error}");
        assert!(!error.contains("wr0ng"), "{error}");
        let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
        assert!(
            matches!(&delivery, Delivery::Down { error } if is_said(error) && !error.contains("wr0ng")),
            "{delivery:?}"
        );
        assert!(began.elapsed() < timeout, "it is not waited for");
    }
}

async fn a_certificate_that_nobody_trusts_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = broker::certificate(directory.path());
    let port = broker::free_port();
    let (file, port_text) = (certificate.clone(), port.to_string());
    let server = Broker::new(move || {
        let mut command = Command::new("openssl");
        command.args(["s_server", "-quiet", "-accept", &port_text, "-cert"]).arg(&file).arg("-key").arg(&key);
        command
    });
    server.start();
    assert!(server.until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await);
    let check = async |tls| {
        let security = KafkaSecurity { tls: Some(tls), sasl: None };
        let timeout = Duration::from_secs(3);
        let config = KafkaConfig { security, timeout, ..KafkaConfig::new(format!("127.0.0.1:{port}")) };
        sink(config).check().await.unwrap_err().to_string()
    };
    let error = check(KafkaTls::default()).await;
    assert!(error.contains("certificate") && error.contains("is the CA file right"), "{error}");
    let error = check(KafkaTls { ca_file: Some(certificate), ..KafkaTls::default() }).await;
    assert!(!error.contains("certificate"), "it is trusted, but says nothing: {error}");
    let error = check(KafkaTls { ca_file: Some("/no/such/file".into()), ..KafkaTls::default() }).await;
    assert!(error.contains("ssl.ca.location") && error.contains("can the files for TLS be read?"), "{error}");
}

/// Some of them are as good as all.
async fn one_broker_of_those_given_is_enough() {
    let kafka = Kafka::start().await;
    let gone = broker::free_port();
    let brokers = format!("127.0.0.1:{gone},kafka://{}", kafka.address);
    let sink = sink(KafkaConfig { brokers, ..kafka.config() });
    for number in 0..3 {
        assert_eq!(sink.check().await, Ok(()));
        assert_delivered(&sink.publish(&[claimed(number, None, "x")]).await);
    }
}
