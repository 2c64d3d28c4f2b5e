//! How single values are written.

use std::time::Duration;

use anyhow::Result;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use sendoff::outbox::LaneSet;
use sendoff_sinks::Secret;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::exit::Refused;

/// A time, as people write it: `500ms`, `30s`, `5m`, `12h`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(Duration);

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl From<Span> for Option<Duration> {
    fn from(span: Span) -> Self {
        Some(span.0)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let span = humantime::parse_duration(&text);
        let span = span
            .map_err(|_| D::Error::custom(format!("{text:?} is no time: write 500ms, 30s, 5m, 12h or 7d")))?;
        if span.is_zero() {
            return Err(D::Error::custom("a time of 0 is none: leave it out, or give a longer one"));
        }
        Ok(Self(span))
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["500ms", "30s", "7d"] })
    }
}

/// Some lanes: `0..15`, `7`, `0..7,12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes(LaneSet);

impl From<Lanes> for LaneSet {
    fn from(lanes: Lanes) -> Self {
        lanes.0
    }
}

impl<'de> Deserialize<'de> for Lanes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for Lanes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Lanes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^\d+(\.\.\d+)?(,\d+(\.\.\d+)?)*$", "examples": ["0..15", "0..7,12"] })
    }
}

/// A text that may be secret, or where it stands: a file or an environment variable.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hidden(Secret);

impl Hidden {
    pub(crate) fn plain(text: &str) -> Self {
        Self(Secret::Plain(text.to_owned()))
    }

    /// What it is; `key`: where it is asked for.
    pub(crate) fn read(&self, key: &str) -> Result<String> {
        Ok(self.0.read(key).map_err(Refused)?)
    }
}

impl JsonSchema for Hidden {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hidden".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let place = |key: &str| {
            json_schema!({
                "type": "object",
                "properties": { key: { "type": "string" } },
                "required": [key],
                "additionalProperties": false
            })
        };
        json_schema!({ "anyOf": [{ "type": "string" }, place("file"), place("env")] })
    }
}

impl From<Hidden> for Secret {
    fn from(hidden: Hidden) -> Self {
        hidden.0
    }
}

impl From<Hidden> for Option<Secret> {
    fn from(hidden: Hidden) -> Self {
        Some(hidden.0)
    }
}

/// A name with holes that an event fills: `orders.{topic}`.
#[cfg(feature = "_brokers")]
#[derive(Debug, Clone)]
pub(crate) struct Holes(sendoff_sinks::Template);

#[cfg(feature = "_brokers")]
impl From<Holes> for sendoff_sinks::Template {
    fn from(holes: Holes) -> Self {
        holes.0
    }
}

#[cfg(feature = "_brokers")]
impl<'de> Deserialize<'de> for Holes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

#[cfg(feature = "_brokers")]
impl JsonSchema for Holes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Holes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["orders.{topic}"] })
    }
}

/// Names and values.
#[cfg(feature = "http")]
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Pairs(std::collections::BTreeMap<String, String>);

#[cfg(feature = "http")]
impl From<Pairs> for Vec<(String, String)> {
    fn from(pairs: Pairs) -> Self {
        pairs.0.into_iter().collect()
    }
}

/// What requests are signed with.
#[cfg(feature = "http")]
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct SigningSecrets(Vec<Hidden>);

#[cfg(feature = "http")]
impl From<SigningSecrets> for Vec<sendoff_sinks::SigningSecret> {
    fn from(secrets: SigningSecrets) -> Self {
        secrets.0.into_iter().map(|hidden| hidden.0.into()).collect()
    }
}

/// How often MQTT makes sure.
#[cfg(feature = "mqtt")]
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
#[schemars(with = "u8")]
pub(crate) enum Qos {
    One,
    Two,
}

#[cfg(feature = "mqtt")]
impl TryFrom<u8> for Qos {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        match number {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            _ => Err("`qos` is 1 or 2: with 0 nobody knows what has arrived"),
        }
    }
}

#[cfg(feature = "mqtt")]
impl From<Qos> for sendoff_sinks::MqttQos {
    fn from(qos: Qos) -> Self {
        match qos {
            Qos::One => Self::One,
            Qos::Two => Self::Two,
        }
    }
}

/// How Kafka's batches are made smaller.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
}

#[cfg(feature = "kafka")]
impl From<Compression> for sendoff_sinks::KafkaCompression {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Gzip => Self::Gzip,
            Compression::Snappy => Self::Snappy,
            Compression::Lz4 => Self::Lz4,
        }
    }
}

/// How a password is proved to Kafka.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub(crate) enum Mechanism {
    #[serde(rename = "PLAIN")]
    Plain,
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

/// How a connection to Kafka is protected.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KafkaSecurity {
    /// Encrypted.
    tls: Option<KafkaTls>,
    /// With a password.
    sasl: Option<KafkaSasl>,
}

/// How a connection to Kafka is encrypted, by files in PEM.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KafkaTls {
    /// Who may have signed the brokers' certificates; without it, whom this machine trusts.
    ca_file: Option<std::path::PathBuf>,
    /// This client's certificate, if the brokers want one.
    client_cert_file: Option<std::path::PathBuf>,
    /// Its key.
    client_key_file: Option<std::path::PathBuf>,
    /// The password of the key.
    client_key_password: Option<Hidden>,
}

/// Who connects to Kafka.
#[cfg(feature = "kafka")]
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KafkaSasl {
    /// How the password is proved.
    mechanism: Mechanism,
    /// The user.
    username: String,
    /// The password.
    password: Hidden,
}

#[cfg(feature = "kafka")]
impl From<KafkaSecurity> for sendoff_sinks::KafkaSecurity {
    fn from(security: KafkaSecurity) -> Self {
        Self {
            tls: security.tls.map(|tls| sendoff_sinks::KafkaTls {
                ca_file: tls.ca_file,
                client_cert_file: tls.client_cert_file,
                client_key_file: tls.client_key_file,
                client_key_password: tls.client_key_password.map(Into::into),
            }),
            sasl: security.sasl.map(|sasl| sendoff_sinks::KafkaSasl {
                mechanism: match sasl.mechanism {
                    Mechanism::Plain => sendoff_sinks::KafkaMechanism::Plain,
                    Mechanism::ScramSha256 => sendoff_sinks::KafkaMechanism::ScramSha256,
                    Mechanism::ScramSha512 => sendoff_sinks::KafkaMechanism::ScramSha512,
                },
                username: sasl.username,
                password: sasl.password.into(),
            }),
        }
    }
}
