//! Where events go: one module for each sink. Those that need no client library are here: in-process handlers, standard output, files, and nowhere.

#[cfg(feature = "_aws")]
mod aws;
#[cfg(feature = "_envelope")]
mod envelope;
mod file;
mod handler;
#[cfg(feature = "http")]
mod http;
mod in_turn;
#[cfg(feature = "inbox")]
mod inbox;
mod json_line;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "mqtt")]
mod mqtt;
#[cfg(feature = "nats")]
mod nats;
mod null;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
mod secret;
mod stdout;
#[cfg(feature = "_envelope")]
mod template;
#[cfg(feature = "_tls")]
mod tls;

#[cfg(feature = "sns")]
pub use aws::{Sns, SnsConfig};
#[cfg(feature = "sqs")]
pub use aws::{Sqs, SqsConfig};
#[cfg(feature = "_envelope")]
pub use envelope::{EnvelopeConfig, Mode};
pub use file::{File, FileConfig};
pub use handler::Handler;
#[cfg(feature = "http")]
pub use http::{Http, HttpConfig, SigningSecret};
#[cfg(feature = "inbox")]
pub use inbox::{Inbox, InboxConfig};
pub use json_line::json_line;
#[cfg(feature = "kafka")]
pub use kafka::{Kafka, KafkaCompression, KafkaConfig, KafkaMechanism, KafkaSasl, KafkaSecurity, KafkaTls};
#[cfg(feature = "mqtt")]
pub use mqtt::{Mqtt, MqttConfig, MqttQos, MqttVersion};
#[cfg(feature = "nats")]
pub use nats::{Nats, NatsConfig, NatsStream};
pub use null::Null;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{RabbitMq, RabbitMqConfig};
#[cfg(feature = "redis")]
pub use redis::{Redis, RedisConfig};
pub use secret::Secret;
pub use stdout::Stdout;
#[cfg(feature = "_envelope")]
pub use template::{Template, TemplateError};
