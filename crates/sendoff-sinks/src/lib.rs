//! Where events go: one module for each sink. Those that need no client library are here: in-process handlers, standard output, files, and nowhere.

#[cfg(feature = "_envelope")]
mod envelope;
mod file;
mod handler;
mod in_turn;
mod json_line;
#[cfg(feature = "nats")]
mod nats;
mod null;
#[cfg(feature = "redis")]
mod redis;
mod stdout;
#[cfg(feature = "_envelope")]
mod template;

#[cfg(feature = "_envelope")]
pub use envelope::{EnvelopeConfig, Mode};
pub use file::{File, FileConfig};
pub use handler::Handler;
pub use json_line::json_line;
#[cfg(feature = "nats")]
pub use nats::{Nats, NatsConfig, NatsStream};
pub use null::Null;
#[cfg(feature = "redis")]
pub use redis::{Redis, RedisConfig};
pub use stdout::Stdout;
#[cfg(feature = "_envelope")]
pub use template::{Template, TemplateError};
