//! Where a cluster is, and how it is spoken to.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;

use crate::envelope::EnvelopeConfig;
use crate::secret::Secret;
use crate::template::Template;

/// How a secret is read, and for which field.
type Reader<'r> = &'r dyn Fn(&Secret, &str) -> Result<String, String>;

/// The longest pause between two tries to connect again.
const RECONNECT_MAX: Duration = Duration::from_millis(500);

/// Beyond the time that a record has. A producer needs up to a second before it can send its first one, and more if the machine is busy.
pub(super) const SETTLE: Duration = Duration::from_secs(2);

/// What the sink promises rests on these.
const PROMISED: [&str; 13] = [
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "enable.gapless.guarantee",
    "retries",
    "message.send.max.retries",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "partitioner",
    "transactional.id",
    "test.mock.num.brokers",
    "debug",
    "log_level",
];

/// These have a field of their own.
const FIELDS: [(&str, &str); 18] = [
    ("bootstrap.servers", "brokers"),
    ("metadata.broker.list", "brokers"),
    ("compression.codec", "compression"),
    ("compression.type", "compression"),
    ("queue.buffering.max.ms", "linger"),
    ("linger.ms", "linger"),
    ("message.max.bytes", "max_message_bytes"),
    ("message.timeout.ms", "timeout"),
    ("delivery.timeout.ms", "timeout"),
    ("security.protocol", "security"),
    ("sasl.mechanism", "security"),
    ("sasl.mechanisms", "security"),
    ("sasl.username", "security"),
    ("sasl.password", "security"),
    ("ssl.ca.location", "security"),
    ("ssl.certificate.location", "security"),
    ("ssl.key.location", "security"),
    ("ssl.key.password", "security"),
];

/// How batches are made smaller on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KafkaCompression {
    /// As they are.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
}

/// How a password is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaMechanism {
    /// It is sent as it is: only with TLS.
    Plain,
    /// SCRAM-SHA-256.
    ScramSha256,
    /// SCRAM-SHA-512.
    ScramSha512,
}

/// Who connects.
#[derive(Debug, Clone)]
pub struct KafkaSasl {
    /// How the password is proved.
    pub mechanism: KafkaMechanism,
    /// The user.
    pub username: String,
    /// The password; read anew for each client that is made.
    pub password: Secret,
}

/// How a connection is encrypted, by files in PEM.
#[derive(Debug, Clone, Default)]
pub struct KafkaTls {
    /// Who may have signed the brokers' certificates; none: whom this machine trusts.
    pub ca_file: Option<PathBuf>,
    /// This client's certificate, if the brokers want one.
    pub client_cert_file: Option<PathBuf>,
    /// Its key.
    pub client_key_file: Option<PathBuf>,
    /// The password of the key.
    pub client_key_password: Option<Secret>,
}

/// How a connection is protected. By default not at all.
#[derive(Debug, Clone, Default)]
pub struct KafkaSecurity {
    /// Encrypted, or not.
    pub tls: Option<KafkaTls>,
    /// With a password, or without.
    pub sasl: Option<KafkaSasl>,
}

/// Where a [`Kafka`](crate::Kafka) sink produces, and how.
#[derive(Clone)]
pub struct KafkaConfig {
    /// Some of the brokers: `host:9092`, more than one with commas between them.
    pub brokers: String,
    /// The topic of an event.
    pub topic: Template,
    /// How a connection is protected.
    pub security: KafkaSecurity,
    /// How batches are made smaller.
    pub compression: KafkaCompression,
    /// So long a batch waits for more records.
    pub linger: Duration,
    /// A record of more bytes is rejected before it is sent. The brokers have a limit of their own, `message.max.bytes`, and a topic `max.message.bytes`.
    pub max_message_bytes: u32,
    /// When a record was not acknowledged by then, the cluster is asked whether it is there, and is taken to be down if it does not answer within the same time
    /// either. Two seconds later the record is given up.
    pub timeout: Duration,
    /// Any other setting of librdkafka, but none that the sink's promises rest on.
    pub properties: BTreeMap<String, String>,
    /// How events are wrapped.
    pub envelope: EnvelopeConfig,
}

impl KafkaConfig {
    /// A topic for each topic, in the cluster of these brokers.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: Template::topic(),
            security: KafkaSecurity::default(),
            compression: KafkaCompression::default(),
            linger: Duration::from_millis(1),
            max_message_bytes: 1_000_000,
            timeout: Duration::from_secs(5),
            properties: BTreeMap::new(),
            envelope: EnvelopeConfig::default(),
        }
    }

    /// The brokers' hosts and ports.
    ///
    /// # Errors
    /// What is wrong with them, without repeating it: there may be a password in it, though it does not belong there.
    pub(super) fn servers(&self) -> Result<String, String> {
        let servers = self.brokers.split(',').map(str::trim).filter(|server| !server.is_empty());
        let servers: Vec<&str> =
            servers.map(|server| server.strip_prefix("kafka://").unwrap_or(server)).collect();
        let is_plain = |server: &&str| {
            !server.is_empty() && !server.contains(['/', '@', ' ']) && !server.chars().any(char::is_control)
        };
        if servers.is_empty() || !servers.iter().all(is_plain) {
            return Err("its brokers cannot be read; give host:9092,host:9092, and user and password by \
                        themselves"
                .to_owned());
        }
        Ok(servers.join(","))
    }

    /// What librdkafka is told.
    ///
    /// # Errors
    /// A secret that is not where it should be.
    pub(super) fn settings(&self) -> Result<ClientConfig, String> {
        self.settings_with(&|secret, field| secret.read(field))
    }

    /// Whether it is something that librdkafka can be told, wherever its secrets are.
    ///
    /// # Errors
    /// What it would not take.
    pub(super) fn check(&self) -> Result<(), String> {
        self.settings_with(&|_, _| Ok("secret".to_owned())).map(drop)
    }

    fn settings_with(&self, read: Reader<'_>) -> Result<ClientConfig, String> {
        let servers = self.servers()?;
        if self.linger >= self.timeout {
            return Err("a batch must not wait for longer than its records have: give a longer timeout, or less linger".to_owned());
        }
        let mut settings = ClientConfig::new();
        // Nothing goes to standard error; but what becomes of a producer's epochs is only told in lines for debugging, of which there are few.
        settings.set_log_level(RDKafkaLogLevel::Debug);
        let timeout = millis(self.timeout);
        let within = |least: u128, most: u128| timeout.clamp(least, most).to_string();
        let all = [
            ("bootstrap.servers", servers),
            ("client.id", "sendoff".to_owned()),
            ("enable.idempotence", "true".to_owned()),
            ("debug", "eos".to_owned()),
            // As clients in Java do: whoever reads by partition finds a key where they would have put it.
            ("partitioner", "murmur2_random".to_owned()),
            ("message.timeout.ms", (timeout + millis(SETTLE)).min(2_147_483_647).to_string()),
            ("request.timeout.ms", within(1, 900_000)),
            ("socket.timeout.ms", within(10, 300_000)),
            ("socket.connection.setup.timeout.ms", within(1_000, 2_147_483_647)),
            ("api.version.request.timeout.ms", within(10, 300_000)),
            ("reconnect.backoff.max.ms", millis(RECONNECT_MAX).to_string()),
            // It fails by itself before the record does, and says why.
            ("topic.metadata.propagation.max.ms", (timeout / 2).min(3_600_000).to_string()),
            // The relay knows how many it has on their way.
            ("queue.buffering.max.messages", "0".to_owned()),
            ("linger.ms", format!("{:.3}", self.linger.as_secs_f64() * 1_000.0)),
            ("message.max.bytes", self.max_message_bytes.to_string()),
            ("compression.type", self.compression.name().to_owned()),
        ];
        for (name, value) in all {
            settings.set(name, value);
        }
        self.security.set(&mut settings, read)?;
        for (name, value) in &self.properties {
            check_property(name)?;
            settings.set(name, value);
        }
        settings.create_native_config().map_err(|error| unset(&error))?;
        Ok(settings)
    }
}

impl fmt::Debug for KafkaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the brokers and the values of properties, which may have passwords in them.
        f.debug_struct("KafkaConfig")
            .field("topic", &self.topic)
            .field("security", &self.security)
            .field("compression", &self.compression)
            .field("linger", &self.linger)
            .field("max_message_bytes", &self.max_message_bytes)
            .field("timeout", &self.timeout)
            .field("properties", &self.properties.keys())
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

impl KafkaCompression {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
        }
    }
}

impl KafkaMechanism {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl KafkaSecurity {
    fn set(&self, settings: &mut ClientConfig, read: Reader<'_>) -> Result<(), String> {
        let protocol = match (&self.tls, &self.sasl) {
            (None, None) => "plaintext",
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        };
        settings.set("security.protocol", protocol);
        if let Some(KafkaTls { ca_file, client_cert_file, client_key_file, client_key_password }) = &self.tls
        {
            let shown = |path: &Option<PathBuf>| path.as_deref().map(Path::to_string_lossy).map(Into::into);
            let all: [(&str, Option<String>); 4] = [
                ("ssl.ca.location", shown(ca_file)),
                ("ssl.certificate.location", shown(client_cert_file)),
                ("ssl.key.location", shown(client_key_file)),
                (
                    "ssl.key.password",
                    client_key_password
                        .as_ref()
                        .map(|secret| read(secret, "client_key_password"))
                        .transpose()?,
                ),
            ];
            for (name, value) in all.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                settings.set(name, value);
            }
        }
        if let Some(KafkaSasl { mechanism, username, password }) = &self.sasl {
            settings.set("sasl.mechanism", mechanism.name());
            settings.set("sasl.username", username);
            settings.set("sasl.password", read(password, "password")?);
        }
        Ok(())
    }
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

fn check_property(name: &str) -> Result<(), String> {
    if PROMISED.contains(&name) {
        return Err(format!(
            "the property `{name}` cannot be set: what the sink promises rests on it; leave it out"
        ));
    }
    if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
        return Err(format!("the property `{name}` has a place of its own: set `{field}` instead"));
    }
    Ok(())
}

/// Why a setting is not taken; without its value where that may be a secret.
fn unset(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, detail, name, _) => {
            let is_secret = ["password", "pem", "sasl"].iter().any(|part| name.contains(part));
            let detail = if is_secret { "" } else { detail };
            format!("the property `{name}` is not taken {detail}").trim_end().to_owned()
        }
        _ => "its settings are not taken".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn brokers_are_read_with_and_without_a_scheme() {
        for (brokers, servers) in [
            ("host:9092", "host:9092"),
            ("kafka://a:1,kafka://b:2", "a:1,b:2"),
            ("kafka://a:1, b:2 ,", "a:1,b:2"),
            ("[::1]:9092", "[::1]:9092"),
        ] {
            assert_eq!(KafkaConfig::new(brokers).servers().unwrap(), servers);
        }
        for brokers in ["", ",", "kafka://", "http://h:1", "user:s3cret@h:1", "a b:1"] {
            let error = KafkaConfig::new(brokers).servers().unwrap_err();
            assert!(error.contains("give host:9092") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_property_that_breaks_a_promise_is_refused() {
        let with = |name: &str, value: &str| {
            let mut config = KafkaConfig::new("h:1");
            config.properties.insert(name.to_owned(), value.to_owned());
            config.settings().map(|settings| settings.get(name).map(str::to_owned))
        };
        for name in PROMISED {
            let error = with(name, "1").unwrap_err();
            assert!(error.contains(name) && error.contains("promises"), "{error}");
        }
        for (name, field) in FIELDS {
            let error = with(name, "1").unwrap_err();
            assert!(error.contains(name) && error.contains(&format!("set `{field}` instead")), "{error}");
        }
        assert_eq!(with("socket.keepalive.enable", "true").unwrap().as_deref(), Some("true"));
        assert!(with("socket.keepalive.enabled", "true").unwrap_err().contains("socket.keepalive.enabled"));
        assert!(with("batch.size", "many").unwrap_err().contains("batch.size"));
    }

    #[test]
    fn every_kind_of_protection_is_one_that_the_client_has() {
        let sasl = |mechanism| KafkaSasl {
            mechanism,
            username: "u".to_owned(),
            password: Secret::Plain("s3cret".to_owned()),
        };
        let mechanisms =
            [KafkaMechanism::Plain, KafkaMechanism::ScramSha256, KafkaMechanism::ScramSha512].map(sasl);
        for sasl in mechanisms.into_iter().map(Some).chain([None]) {
            for tls in [None, Some(KafkaTls { ca_file: Some("/ca.pem".into()), ..KafkaTls::default() })] {
                for compression in [
                    KafkaCompression::None,
                    KafkaCompression::Gzip,
                    KafkaCompression::Snappy,
                    KafkaCompression::Lz4,
                ] {
                    let security = KafkaSecurity { tls: tls.clone(), sasl: sasl.clone() };
                    let config = KafkaConfig { security, compression, ..KafkaConfig::new("h:1") };
                    let settings = config.settings().unwrap();
                    assert_eq!(settings.get("ssl.ca.location"), tls.as_ref().map(|_| "/ca.pem"));
                    assert_eq!(settings.get("sasl.username"), sasl.as_ref().map(|_| "u"));
                    assert!(!format!("{config:?}").contains("s3cret"));
                }
            }
        }
        let config = KafkaConfig { linger: Duration::from_secs(9), ..KafkaConfig::new("h:1") };
        assert!(config.settings().unwrap_err().contains("less linger"));
    }
}
