//! MQTT, read back over its plain protocol.

mod listener;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::outbox::Claimed;
use sendoff::testkit::{Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{EnvelopeConfig, Mode, MqttConfig, MqttQos, MqttVersion};
use tempfile::TempDir;

use self::listener::Listener;
use crate::broker::{self, Broker, free_port, program};
use crate::trial;

const SERVER: &str = "SENDOFF_TEST_MOSQUITTO";

/// The topic of the suite's events.
const TOPIC: &str = "suite.happened";

/// The topic of what says that everything before it has been read.
const MARKER: &str = "marker";

/// The user `relay` with the password `right`, as `mosquitto_passwd` writes it.
pub(crate) const PASSWORDS: &str = "relay:$7$101$mN3osbU7OB+bty9e$cKNk+gi7BwIpz1/dvp8ulSmZCaQM6ZAMNtGzK1uVL9B0jBsbHEB1qtofJLtuMWKQoQk6y2TuS0yCzNl/Ucs8MA==\n";

/// What is spoken.
type Kind = (MqttVersion, MqttQos);

pub(crate) const FIVE: Kind = (MqttVersion::V5, MqttQos::One);
pub(crate) const FIVE_QOS_TWO: Kind = (MqttVersion::V5, MqttQos::Two);
pub(crate) const THREE: Kind = (MqttVersion::V3, MqttQos::One);
const THREE_QOS_TWO: Kind = (MqttVersion::V3, MqttQos::Two);

pub(crate) fn is_missing() -> bool {
    broker::is_missing("mosquitto", &[SERVER])
}

/// A server of its own, and somebody who listens.
pub(crate) struct Mqtt {
    broker: Broker,
    port: u16,
    kind: Kind,
    /// None: nobody does.
    listener: Mutex<Option<Listener>>,
    directory: TempDir,
}

impl Mqtt {
    pub(crate) async fn start(kind: Kind) -> Self {
        let mqtt = Self::start_with(kind, "allow_anonymous true\n").await;
        mqtt.listen();
        mqtt
    }

    /// With more in its configuration, and nobody who listens. `DIRECTORY` stands for its own.
    async fn start_with(kind: Kind, options: &str) -> Self {
        loop {
            let directory = tempfile::tempdir().unwrap();
            let port = free_port();
            let (path, shown) = (directory.path().join("mosquitto.conf"), directory.path().display());
            let options = options.replace("DIRECTORY", &shown.to_string());
            let config = format!(
                "listener {port} 127.0.0.1\nuser root\nmax_queued_messages 1000000\npersistence true\n\
                 persistence_location {shown}/\nautosave_interval 1\n{options}"
            );
            std::fs::write(&path, config).unwrap();
            std::fs::write(directory.path().join("passwords"), PASSWORDS).unwrap();
            let rules = format!("topic readwrite {TOPIC}\ntopic readwrite {MARKER}\n");
            std::fs::write(directory.path().join("rules"), rules).unwrap();
            let broker = Broker::new(move || {
                let mut command = Command::new(program(SERVER));
                command.arg("-c").arg(&path);
                command
            });
            let mqtt = Self { broker, port, kind, listener: Mutex::default(), directory };
            mqtt.broker.start();
            if mqtt.until_ready().await {
                return mqtt;
            }
        }
    }

    async fn until_ready(&self) -> bool {
        self.broker.until(|| Listener::connect(self.port, "probe").is_some()).await
    }

    fn listen(&self) {
        let mut held = self.listener.lock().unwrap();
        let before = held.take().map(Listener::rest).unwrap_or_default();
        let mut listener = Listener::connect(self.port, "listener").expect("it runs");
        listener.received = before;
        listener.subscribe();
        *held = Some(listener);
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("mqtt://{}", self.address())
    }

    fn config(&self) -> MqttConfig {
        self.config_at(self.address())
    }

    fn config_at(&self, address: SocketAddr) -> MqttConfig {
        let (version, qos) = self.kind;
        MqttConfig {
            version,
            qos,
            timeout: Duration::from_secs(1),
            ..MqttConfig::new(format!("mqtt://{address}"))
        }
    }
}

fn open(config: MqttConfig) -> sendoff_sinks::Mqtt {
    sendoff_sinks::Mqtt::new(config).unwrap()
}

impl SinkHarness for Mqtt {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        Arc::new(open(self.config_at(address)))
    }

    fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    async fn received(&self) -> Vec<Received> {
        self.listener.lock().unwrap().as_mut().expect("somebody listens").so_far()
    }

    async fn kill(&self) {
        self.broker.kill();
    }

    async fn restart(&self) {
        self.broker.start();
        assert!(self.until_ready().await, "it ended when it was started again");
        self.listen();
    }

    async fn freeze(&self, frozen: bool) {
        self.broker.hold(frozen);
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {
            vec![$(trial(format!("mqtt::{}", stringify!($case)), is_missing(), $case)),*]
        };
    }
    cases![
        a_wrong_password_is_said_and_not_shown,
        a_packet_that_is_too_large_is_rejected_alone,
        a_topic_that_is_not_allowed_is_named,
        a_topic_to_which_nobody_listens_can_be_refused,
        a_content_type_is_a_property_of_its_own,
        of_many_calls_at_once_each_event_comes_one_time,
        a_connection_that_does_nothing_is_kept,
        a_certificate_is_trusted_only_if_it_is_known,
        a_sink_that_is_closed_says_so_and_can_be_used_again,
    ]
}

fn is_retry(delivery: &Delivery, words: &str) -> bool {
    matches!(delivery, Delivery::Retry { error, .. } if error.contains(words))
}

fn is_down(delivery: &Delivery, words: &str) -> bool {
    matches!(delivery, Delivery::Down { error } if error.contains(words))
}

async fn a_wrong_password_is_said_and_not_shown() {
    for kind in [FIVE, THREE] {
        let mqtt = Mqtt::start_with(kind, "allow_anonymous false\npassword_file DIRECTORY/passwords\n").await;
        for (user, is_right) in [("", false), ("relay:wr0ng@", false), ("relay:right@", true)] {
            let url = format!("mqtt://{user}127.0.0.1:{}", mqtt.port);
            let sink = open(MqttConfig { url, ..mqtt.config() });
            let checked = sink.check().await;
            assert_eq!(checked.is_ok(), is_right, "{kind:?} {user}: {checked:?}");
            if let Err(error) = checked {
                let error = error.to_string();
                assert!(error.contains("user and password"), "{error}");
                assert!(error.contains(&mqtt.port.to_string()) && !error.contains("wr0ng"), "{error}");
            }
            let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
            assert_eq!(delivery == Delivery::Delivered, is_right, "{delivery:?}");
            assert!(is_right || is_down(&delivery, "user and password"), "{delivery:?}");
            assert!(!format!("{delivery:?}").contains("wr0ng"), "{delivery:?}");
        }
    }
}

/// As the server says it with MQTT 5, and as it is configured with 3.1.1.
async fn a_packet_that_is_too_large_is_rejected_alone() {
    for (kind, max_packet) in
        [(FIVE, None), (FIVE_QOS_TWO, None), (THREE, Some(2_000)), (THREE_QOS_TWO, Some(2_000))]
    {
        let mqtt = Mqtt::start_with(kind, "allow_anonymous true\nmax_packet_size 2000\n").await;
        mqtt.listen();
        let sink = open(MqttConfig { max_packet, ..mqtt.config() });
        let events = [claimed(1, None, "x"), claimed(2, None, vec![0; 2_000]), claimed(3, None, "y")];
        let deliveries = sink.publish(&events).await;
        assert!(
            matches!(&deliveries[1], Delivery::Reject { error } if error.contains("too large")),
            "{deliveries:?}"
        );
        assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
        assert_eq!(mqtt.received().await.len(), 2);
    }
}

async fn a_topic_that_is_not_allowed_is_named() {
    for kind in [FIVE, FIVE_QOS_TWO] {
        let mqtt = Mqtt::start_with(kind, "allow_anonymous true\nacl_file DIRECTORY/rules\n").await;
        mqtt.listen();
        let sink = mqtt.sink();
        // More often than messages may be on their way: a refusal must not take up room for ever.
        for round in 0..30 {
            let mut events = [claimed(1, None, "x"), claimed(2, None, "y"), claimed(3, None, "z")];
            "private".clone_into(&mut events[1].event.topic);
            let deliveries = sink.publish(&events).await;
            assert!(is_down(&deliveries[1], "may not publish to `private`"), "{round}: {deliveries:?}");
            assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
        }
        assert_eq!(mqtt.received().await.len(), 60);
    }
}

async fn a_topic_to_which_nobody_listens_can_be_refused() {
    // This server does not say it with the other quality of service.
    let mqtt = Mqtt::start_with(FIVE, "allow_anonymous true\n").await;
    let event = claimed(1, None, "x");
    for need_subscriber in [false, true] {
        let sink = open(MqttConfig { need_subscriber, ..mqtt.config() });
        let delivery = sink.publish(std::slice::from_ref(&event)).await.remove(0);
        assert_eq!(is_retry(&delivery, "nobody listens"), need_subscriber, "{delivery:?}");
        assert_eq!(delivery == Delivery::Delivered, !need_subscriber, "{delivery:?}");
    }
    mqtt.listen();
    let sink = open(MqttConfig { need_subscriber: true, ..mqtt.config() });
    assert_eq!(sink.publish(&[event]).await, [Delivery::Delivered]);
}

/// As the MQTT binding of CloudEvents has it.
async fn a_content_type_is_a_property_of_its_own() {
    for (mode, content_type) in [
        (Mode::Binary, "application/octet-stream"),
        (Mode::Structured, "application/cloudevents+json; charset=UTF-8"),
    ] {
        let mqtt = Mqtt::start(FIVE).await;
        let sink = open(MqttConfig { envelope: EnvelopeConfig { mode, source: None }, ..mqtt.config() });
        assert_eq!(sink.publish(&[claimed(1, Some("k"), "x")]).await, [Delivery::Delivered]);
        let received = mqtt.received().await;
        assert_eq!((received[0].key.as_deref(), received[0].payload.as_slice()), (Some("k"), &b"x"[..]));
        let said = mqtt.listener.lock().unwrap().as_ref().unwrap().content_type.clone();
        assert_eq!(said.as_deref(), Some(content_type));
    }
}

/// More than may be on their way.
async fn of_many_calls_at_once_each_event_comes_one_time() {
    for kind in [FIVE_QOS_TWO, THREE_QOS_TWO, FIVE] {
        let mqtt = Mqtt::start(kind).await;
        let sink = mqtt.sink();
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let sink = Arc::clone(&sink);
                tokio::spawn(async move {
                    let events: Vec<Claimed> = (0..500).map(|number| claimed(number, None, "x")).collect();
                    sink.publish(&events).await
                })
            })
            .collect();
        for call in calls {
            let answered = tokio::time::timeout(Duration::from_secs(60), call).await;
            let deliveries = answered.expect("no call is stuck").unwrap();
            assert_eq!(deliveries, vec![Delivery::Delivered; 500]);
        }
        assert_eq!(mqtt.received().await.len(), 10_000);
    }
}

/// A server closes one that has said nothing for one and a half times its keep-alive.
async fn a_connection_that_does_nothing_is_kept() {
    let log = "allow_anonymous true\nlog_dest file DIRECTORY/log\nlog_type all\n";
    let mqtt = Mqtt::start_with(FIVE, log).await;
    let keep_alive = Duration::from_secs(1);
    let sink = open(MqttConfig { keep_alive, client_id: Some("idle".to_owned()), ..mqtt.config() });
    sink.check().await.unwrap();
    let began = std::time::Instant::now();
    let said = || std::fs::read_to_string(mqtt.directory.path().join("log")).unwrap();
    let pings = || said().matches("Received PINGREQ from idle").count();
    // The first is the check's own.
    while pings() < 4 {
        assert!(began.elapsed() < Duration::from_secs(20), "it is not kept: {}", said());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!said().contains("idle disconnected") && !said().contains("idle has exceeded"), "{}", said());
}

async fn a_sink_that_is_closed_says_so_and_can_be_used_again() {
    for kind in [FIVE, THREE] {
        let log = "allow_anonymous true\nlog_dest file DIRECTORY/log\nlog_type all\n";
        let mqtt = Mqtt::start_with(kind, log).await;
        let sink = open(MqttConfig { client_id: Some("polite".to_owned()), ..mqtt.config() });
        for _ in 0..2 {
            assert_eq!(sink.publish(&[claimed(1, None, "x")]).await, [Delivery::Delivered]);
            sink.close().await.unwrap();
        }
        drop(sink);
        let began = std::time::Instant::now();
        let said = || std::fs::read_to_string(mqtt.directory.path().join("log")).unwrap();
        while said().matches("Received DISCONNECT from polite").count() < 2 {
            assert!(began.elapsed() < Duration::from_secs(20), "it left without a word: {}", said());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn a_certificate_is_trusted_only_if_it_is_known() {
    let files = tempfile::tempdir().unwrap();
    let (file, key) = broker::certificate(files.path());
    let (certfile, keyfile, port) = (file.display(), key.display(), free_port());
    let options =
        format!("allow_anonymous true\nlistener {port} 127.0.0.1\ncertfile {certfile}\nkeyfile {keyfile}\n");
    let mqtt = Mqtt::start_with(FIVE_QOS_TWO, &options).await;
    mqtt.listen();
    let url = format!("mqtts://127.0.0.1:{port}");
    let stranger = open(MqttConfig { url: url.clone(), ..mqtt.config() });
    let error = stranger.check().await.unwrap_err().to_string();
    assert!(error.contains("certificate") && error.contains("ca_file"), "{error}");
    let plain = MqttConfig { url: format!("mqtts://{}", mqtt.address()), ..mqtt.config() };
    assert!(open(plain).check().await.is_err());
    let sink = open(MqttConfig { url, ca_file: Some(file), ..mqtt.config() });
    sink.check().await.unwrap();
    let events: Vec<Claimed> = (0..500).map(|number| claimed(number, None, vec![7; 10_000])).collect();
    assert_eq!(sink.publish(&events).await, vec![Delivery::Delivered; 500]);
    assert_eq!(mqtt.received().await.len(), 500);
    let wrong = MqttConfig { ca_file: Some("/nowhere".into()), ..MqttConfig::new("mqtts://h") };
    let error = sendoff_sinks::Mqtt::new(wrong).unwrap_err().to_string();
    assert!(error.contains("/nowhere"), "{error}");
}
