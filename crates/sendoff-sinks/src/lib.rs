//! Where events go: sinks for the relay of `sendoff`, each a type with a configuration, behind a feature of its own.
//!
//! | sink | feature | *delivered* means | drops second copies |
//! |---|---|---|---|
//! | [`Handler`], a function of this process | | it says so | |
//! | [`File`], [`Stdout`]: lines of JSON | | written; a file's are on the disk | |
//! | [`Null`] | | it was given | |
//! | `Nats`: NATS JetStream | `nats` | acknowledged by the stream | in the stream's duplicate window |
//! | `Kafka` | `kafka` | all replicas in sync have it | |
//! | `RabbitMq` | `rabbitmq` | confirmed, and a queue got it | |
//! | `Redis`: Redis Streams | `redis` | added | for as long as is wanted |
//! | `Mqtt`: 5 and 3.1.1 | `mqtt` | acknowledged by the server | |
//! | `Http`: webhooks | `http` | answered with 200 to 299 | the receiver, by `Idempotency-Key` |
//! | `Sqs`, `Sns` | `sqs`, `sns` | taken by the service | FIFO: for five minutes |
//! | `Inbox`: a table of another database | `inbox` | inserted and committed | while the row is there |
//!
//! ```
//! use std::sync::Arc;
//! use sendoff::{Delivery, Event, Sink};
//! use sendoff_sinks::{File, FileConfig, Handler};
//!
//! let file: Arc<dyn Sink> = Arc::new(File::new(FileConfig::new("/var/log/shop/events.jsonl")));
//! let function: Arc<dyn Sink> = Arc::new(Handler::new(|event: Event| async move {
//!     println!("{}", event.topic);
//!     Delivery::Delivered
//! }));
//! ```
//!
//! Brokers are sent CloudEvents 1.0, with the event's id, position and epoch. Passwords and the like are [`Secret`]s: a text, a file or an environment variable, shown nowhere. What each
//! broker's errors mean for an event, and what its limits are, is in `docs/sinks.md`; how to write a sink, in `docs/writing-a-sink.md`.

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
// Not every sink needs all of it.
#[cfg(feature = "_envelope")]
#[cfg_attr(
    not(all(feature = "http", feature = "inbox", feature = "rabbitmq", feature = "redis")),
    allow(dead_code)
)]
mod unusable;

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
