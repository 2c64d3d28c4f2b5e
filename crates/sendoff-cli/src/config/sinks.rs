//! The settings of each sink, beside its URL. What is not given is as the sink has it by itself.

#[cfg(feature = "_brokers")]
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::values::Hidden;
#[cfg(feature = "mqtt")]
use super::values::Qos;
#[cfg(feature = "kafka")]
use super::values::{Compression, KafkaSecurity};
#[cfg(feature = "_brokers")]
use super::values::{Holes, Span};
#[cfg(feature = "http")]
use super::values::{Pairs, SigningSecrets};

/// A sink: its URL, and its own settings as they stand. Which they may be is known by the scheme of the URL.
#[derive(Debug, Clone)]
pub(crate) struct SinkConfig {
    pub(crate) url: Hidden,
    settings: toml::Table,
}

impl SinkConfig {
    /// A sink with nothing but its URL.
    pub(crate) fn of_url(url: &str) -> Self {
        Self { url: Hidden::plain(url), settings: toml::Table::new() }
    }

    /// Its settings, as those of one kind of sink.
    ///
    /// # Errors
    /// A setting that such a sink does not have.
    pub(crate) fn settings<T: for<'de> Deserialize<'de>>(&self) -> Result<T, toml::de::Error> {
        T::deserialize(toml::Value::Table(self.settings.clone()))
    }
}

impl<'de> Deserialize<'de> for SinkConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(url) => Ok(Self::of_url(&url)),
            toml::Value::Table(mut settings) => {
                let url = settings.remove("url").ok_or_else(|| D::Error::custom("a sink needs its `url`"))?;
                let url = Hidden::deserialize(url).map_err(|error| D::Error::custom(error.message()))?;
                Ok(Self { url, settings })
            }
            _ => Err(D::Error::custom("a sink is a URL, or a table with its `url`")),
        }
    }
}

impl JsonSchema for SinkConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SinkConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let url = Hidden::json_schema(generator);
        let mut kinds = vec![json_schema!({ "type": "string" })];
        for (_, schema) in all(generator) {
            let mut schema = schema;
            if let Some(properties) = schema.as_object_mut().and_then(|object| object.get_mut("properties"))
                && let Some(properties) = properties.as_object_mut()
            {
                properties.insert("url".to_owned(), url.clone().to_value());
            }
            kinds.push(schema);
        }
        json_schema!({ "anyOf": kinds })
    }
}

/// Settings of a sink, each of which may be left out, and what they change.
macro_rules! settings {
    ($($(#[doc = $about:literal])* $(#[cfg($gate:meta)])* $name:ident for $config:ident { $($(#[doc = $doc:literal])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[doc = $about])*
            $(#[cfg($gate)])*
            #[derive(Debug, Default, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields, default)]
            pub(crate) struct $name {
                $($(#[doc = $doc])* $field: Option<$kind>,)*
            }

            $(#[cfg($gate)])*
            impl $name {
                /// Changes what is given.
                pub(crate) fn apply(self, config: &mut sendoff_sinks::$config) {
                    $(if let Some(value) = self.$field {
                        config.$field = value.into();
                    })*
                }
            }
        )*

        /// The schema of each.
        #[allow(clippy::vec_init_then_push, reason = "each only with its feature")]
        pub(super) fn all(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
            let mut all = Vec::new();
            $($(#[cfg($gate)])* all.push((stringify!($name), $name::json_schema(generator)));)*
            all
        }
    };
}

/// A sink that has no settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NoSettings {}

settings! {
    /// A file of JSON lines: `file:PATH`.
    FileSettings for FileConfig {
        /// A new file is begun when this one has so many bytes.
        rotate_bytes: u64,
        /// So many old files are kept.
        keep: u32,
        /// An event counts as delivered when it is on the disk, not before.
        sync: bool,
    }

    /// Redis Streams: `redis://HOST:PORT/0`, `rediss://` with TLS.
    #[cfg(feature = "redis")]
    RedisSettings for RedisConfig {
        /// Who connects, instead of the user in the URL.
        username: String,
        /// The password, instead of the one in the URL.
        password: Hidden,
        /// Whom to trust: certificates of authorities as PEM, and nobody else.
        ca_file: PathBuf,
        /// A certificate that the server knows this client by, as PEM.
        client_cert_file: PathBuf,
        /// The key of the certificate, as PEM.
        client_key_file: PathBuf,
        /// The stream of an event.
        stream: Holes,
        /// A stream is cut to about so many entries.
        max_length: u64,
        /// An event that was added within so long is not added again.
        dedupe: Span,
        /// A call that takes longer has failed.
        timeout: Span,
    }

    /// NATS JetStream: `nats://HOST:PORT/STREAM`, `tls://` with TLS.
    #[cfg(feature = "nats")]
    NatsSettings for NatsConfig {
        /// Who connects, instead of the user in the URL.
        username: String,
        /// The password, instead of the one in the URL.
        password: Hidden,
        /// A token, instead of user and password.
        token: Hidden,
        /// What a .creds file has, a user's JWT and seed, instead of user and password.
        credentials: Hidden,
        /// The seed of a user's nkey, SU…, instead of user and password.
        nkey: Hidden,
        /// Whom to trust: certificates of authorities as PEM, and nobody else.
        ca_file: PathBuf,
        /// A certificate that the server knows this client by, as PEM.
        client_cert_file: PathBuf,
        /// The key of the certificate, as PEM.
        client_key_file: PathBuf,
        /// The subject of an event.
        subject: Holes,
        /// A call that takes longer has failed.
        timeout: Span,
    }

    /// RabbitMQ: `amqp://HOST:PORT/VHOST?exchange=NAME`, `amqps://` with TLS.
    #[cfg(feature = "rabbitmq")]
    RabbitMqSettings for RabbitMqConfig {
        /// Who connects, instead of the user in the URL.
        username: String,
        /// The password, instead of the one in the URL.
        password: Hidden,
        /// Whom to trust: certificates of authorities as PEM, and nobody else.
        ca_file: PathBuf,
        /// A certificate that the server knows this client by, as PEM.
        client_cert_file: PathBuf,
        /// The key of the certificate, as PEM.
        client_key_file: PathBuf,
        /// The exchange of an event, instead of the one in the URL.
        exchange: Holes,
        /// The routing key of an event.
        routing_key: Holes,
        /// A larger payload is rejected before it is sent, in bytes.
        max_payload: usize,
        /// A call that takes longer has failed.
        timeout: Span,
    }

    /// MQTT: `mqtt://HOST:PORT`, `mqtts://` with TLS, `?version=3` for 3.1.1.
    #[cfg(feature = "mqtt")]
    MqttSettings for MqttConfig {
        /// Who connects, instead of the user in the URL.
        username: String,
        /// The password, instead of the one in the URL.
        password: Hidden,
        /// Whom to trust: certificates of authorities as PEM, and nobody else.
        ca_file: PathBuf,
        /// A certificate that the server knows this client by, as PEM.
        client_cert_file: PathBuf,
        /// The key of the certificate, as PEM.
        client_key_file: PathBuf,
        /// The quality of service.
        qos: Qos,
        /// The topic of an event.
        topic: Holes,
        /// What the server knows this client by.
        client_id: String,
        /// An event that nobody has subscribed to is tried again.
        need_subscriber: bool,
        /// A larger packet is rejected before it is sent, in bytes.
        max_packet: u32,
        /// The server hears of an idle client so often.
        keep_alive: Span,
        /// A call that takes longer has failed.
        timeout: Span,
    }

    /// A webhook: `https://HOST/PATH`.
    #[cfg(feature = "http")]
    HttpSettings for HttpConfig {
        /// Sent with each request.
        headers: Pairs,
        /// The value of the header `Authorization`.
        authorization: Hidden,
        /// Each request is signed with these, as Standard Webhooks has it.
        secrets: SigningSecrets,
        /// Many events in one request.
        batch: bool,
        /// So many requests of a call at a time.
        concurrency: usize,
        /// The receiver drops what has an `Idempotency-Key` that it knows, for so long.
        dedupe: Span,
        /// A request that takes longer has failed.
        timeout: Span,
        /// Asked to see whether the receiver is there.
        check_url: String,
        /// Whom to trust: certificates of authorities as PEM, and nobody else.
        ca_file: PathBuf,
        /// A certificate that the receiver knows this client by, as PEM.
        client_cert_file: PathBuf,
        /// The key of the certificate, as PEM.
        client_key_file: PathBuf,
        /// Requests go by this proxy.
        proxy: String,
        /// The receiver may be at a private address.
        allow_private: bool,
    }

    /// The inbox table of another database: `inbox:DATABASE-URL#TABLE`.
    #[cfg(feature = "inbox")]
    InboxSettings for InboxConfig {
        /// Who connects, instead of the user in the URL.
        username: String,
        /// The password, instead of the one in the URL.
        password: Hidden,
        /// Whom to trust beside those that the system trusts: certificates of authorities as PEM.
        ca_file: PathBuf,
        /// A certificate that the server knows this client by, as PEM.
        client_cert_file: PathBuf,
        /// The key of the certificate, as PEM.
        client_key_file: PathBuf,
        /// The table is made if it is not there.
        create: bool,
        /// So many connections at most.
        connections: u32,
        /// A call that takes longer has failed.
        timeout: Span,
    }

    /// Amazon SQS: `sqs:QUEUE-URL`.
    #[cfg(feature = "aws")]
    SqsSettings for SqsConfig {
        /// Where requests go, for a local server or a VPC endpoint.
        endpoint_url: String,
        /// The region.
        region: String,
        /// The id of an access key. Without it, credentials are found as the tools of AWS find them.
        access_key_id: String,
        /// The secret of the access key.
        secret_access_key: Hidden,
        /// The token of a session.
        session_token: Hidden,
        /// An event of more bytes is rejected, and no request has more in sum.
        max_bytes: usize,
        /// A request that takes longer has failed.
        timeout: Span,
    }

    /// Amazon SNS: `sns:TOPIC-ARN`.
    #[cfg(feature = "aws")]
    SnsSettings for SnsConfig {
        /// Where requests go, for a local server or a VPC endpoint.
        endpoint_url: String,
        /// The region.
        region: String,
        /// The id of an access key. Without it, credentials are found as the tools of AWS find them.
        access_key_id: String,
        /// The secret of the access key.
        secret_access_key: Hidden,
        /// The token of a session.
        session_token: Hidden,
        /// An event of more bytes is rejected, and no request has more in sum.
        max_bytes: usize,
        /// A request that takes longer has failed.
        timeout: Span,
    }

    /// Kafka: `kafka://HOST:PORT`.
    #[cfg(feature = "kafka")]
    KafkaSettings for KafkaConfig {
        /// The topic of an event.
        topic: Holes,
        /// How the connection is protected.
        security: KafkaSecurity,
        /// How batches are made smaller.
        compression: Compression,
        /// So long a batch waits for more records.
        linger: Span,
        /// A larger record is rejected before it is sent, in bytes.
        max_message_bytes: u32,
        /// A record that takes longer has failed.
        timeout: Span,
        /// Any other setting of librdkafka.
        properties: std::collections::BTreeMap<String, String>,
    }
}
