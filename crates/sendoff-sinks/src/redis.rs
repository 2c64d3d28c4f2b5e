//! Redis Streams: each event one entry, many in one trip.

mod server;

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, Pipeline, RedisError, Value};
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};
use tokio::sync::Mutex;

use self::server::{Fault, Server, silent};
use crate::envelope::{Carrier, EnvelopeConfig};
use crate::secret::Secret;
use crate::template::Template;
use crate::tls::Files;

/// The field that the payload is in.
const PAYLOAD: &str = "payload";

/// The field that says what the payload is.
const CONTENT_TYPE: &str = "content-type";

/// How long a server may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a [`Redis`] sink adds events, and how.
#[derive(Clone)]
pub struct RedisConfig {
    /// The server: `redis://user:password@host:6379/0`, or encrypted `rediss://user:password@host:6380/0`.
    pub url: String,
    /// Who asks, instead of the user in the URL.
    pub username: Option<String>,
    /// The password, instead of the one in the URL; read anew for each connection.
    pub password: Option<Secret>,
    /// Whom to trust with `rediss://`: certificates of authorities as PEM, and nobody else. None: who the system trusts.
    pub ca_file: Option<PathBuf>,
    /// A certificate that the server knows this client by, as PEM, with those that it was signed by.
    pub client_cert_file: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub client_key_file: Option<PathBuf>,
    /// The stream of an event.
    pub stream: Template,
    /// A stream is cut to about so many entries; none: it grows.
    pub max_length: Option<u64>,
    /// An event id that was added within this time is not added again. It costs two trips a call and a key for each event; two relays that publish the same event at the
    /// same moment may still both add it, and so may one that is killed between the two. None: consumers tell by the id.
    pub dedupe: Option<Duration>,
    /// A server that has not answered by then is taken to be down, if it does not answer a ping either.
    pub timeout: Duration,
    /// How events are wrapped.
    pub envelope: EnvelopeConfig,
}

impl RedisConfig {
    /// A stream for each topic, on this server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            stream: Template::topic(),
            max_length: None,
            dedupe: None,
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }

    fn tls_files(&self) -> Files<'_> {
        Files::new(&self.ca_file, &self.client_cert_file, &self.client_key_file)
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password in it.
        f.debug_struct("RedisConfig")
            .field("username", &self.username)
            .field("password", &self.password)
            .field("ca_file", &self.ca_file)
            .field("client_cert_file", &self.client_cert_file)
            .field("client_key_file", &self.client_key_file)
            .field("stream", &self.stream)
            .field("max_length", &self.max_length)
            .field("dedupe", &self.dedupe)
            .field("timeout", &self.timeout)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Adds each event to a stream. An entry has the fields `payload`, `content-type`, the CloudEvents attributes as `ce-*`, and the event's own headers.
///
/// An acknowledged entry is as durable as the server makes it: see `appendfsync` in its configuration.
#[derive(Debug)]
pub struct Redis {
    config: RedisConfig,
    server: Server,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Redis {
    /// A sink of this server, which is connected to with the first event.
    ///
    /// # Errors
    /// A URL that is none, and certificates that cannot be read.
    pub fn new(config: RedisConfig) -> Result<Self, SinkError> {
        let server = Server::new(&config).map_err(|error| SinkError::new("redis", error))?;
        Ok(Self { config, server, connection: Mutex::default() })
    }

    /// Connects, unless it is connected.
    async fn connect(&self) -> Result<MultiplexedConnection, Fault> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let opened = tokio::time::timeout(self.config.timeout, self.server.open(&self.config)).await;
        let mut connection = opened.unwrap_or_else(|_| Err(silent().into()))?;
        // A server that wants a password first says so of a short command; it calls a long one broken.
        redis::cmd("PING").query_async::<()>(&mut connection).await?;
        *held = Some(connection.clone());
        Ok(connection)
    }

    /// Lets go of a connection that cannot be trusted any more.
    async fn disconnect(&self) {
        self.connection.lock().await.take();
    }

    async fn ping(&self) -> Result<(), Fault> {
        let asked = async {
            let mut connection = self.connect().await?;
            Ok(redis::cmd("PING").query_async::<()>(&mut connection).await?)
        };
        let answered = tokio::time::timeout(PING_TIMEOUT, asked).await;
        answered.unwrap_or_else(|_| Err(silent().into()))
    }

    /// Which of these event ids were added before.
    async fn known(
        &self,
        connection: &mut MultiplexedConnection,
        events: &[&Claimed],
    ) -> Result<HashSet<usize>, RedisError> {
        if self.config.dedupe.is_none() || events.is_empty() {
            return Ok(HashSet::new());
        }
        let mut ask = redis::cmd("MGET");
        for event in events {
            ask.arg(marker(event));
        }
        let found: Vec<Option<String>> = ask.query_async(connection).await?;
        Ok(found.iter().enumerate().filter(|(_, found)| found.is_some()).map(|(index, _)| index).collect())
    }

    /// Adds the entries in one trip; an answer for each.
    async fn add(&self, entries: &[(&Claimed, Entry)]) -> Result<Vec<Delivery>, Fault> {
        let mut connection = self.connect().await?;
        let events: Vec<&Claimed> = entries.iter().map(|(event, _)| *event).collect();
        let known = self.known(&mut connection, &events).await?;
        let mut pipeline = Pipeline::with_capacity(entries.len());
        pipeline.ignore_errors();
        for (_, entry) in entries.iter().enumerate().filter(|(index, _)| !known.contains(index)) {
            self.append(&mut pipeline, &entry.1);
        }
        if known.len() == entries.len() {
            return Ok(vec![Delivery::Delivered; entries.len()]);
        }
        let answers: Vec<Result<Value, RedisError>> = pipeline.query_async(&mut connection).await?;
        let mut answers = answers.into_iter();
        let mut deliveries = Vec::with_capacity(entries.len());
        for index in 0..entries.len() {
            deliveries.push(match known.contains(&index) {
                true => Delivery::Delivered,
                false => answers.next().map_or_else(unanswered, |answer| match answer {
                    Ok(_) => Delivery::Delivered,
                    Err(error) => classify(&error),
                }),
            });
        }
        self.mark(&mut connection, &events, &deliveries).await;
        Ok(deliveries)
    }

    fn append(&self, pipeline: &mut Pipeline, entry: &Entry) {
        let add = pipeline.cmd("XADD").arg(&entry.stream);
        if let Some(length) = self.config.max_length {
            add.arg("MAXLEN").arg("~").arg(length);
        }
        add.arg("*");
        for (name, value) in &entry.fields {
            add.arg(name).arg(value.as_slice());
        }
    }

    /// Writes down what was added, and only when it was: an event that was marked and not added would be left out for ever. One that was added and not marked may
    /// be added again, no more.
    async fn mark(
        &self,
        connection: &mut MultiplexedConnection,
        events: &[&Claimed],
        deliveries: &[Delivery],
    ) {
        let Some(window) = self.config.dedupe else { return };
        let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut pipeline = Pipeline::with_capacity(events.len());
        for (event, _) in
            events.iter().zip(deliveries).filter(|(_, delivery)| **delivery == Delivery::Delivered)
        {
            pipeline.cmd("SET").arg(marker(event)).arg(1).arg("PX").arg(millis).ignore();
        }
        // Nothing is lost with it, and a connection that is gone shows itself with the next call.
        let _ = pipeline.query_async::<()>(connection).await;
    }

    /// What a failed trip means for the events of it.
    async fn failed(&self, fault: &Fault) -> Delivery {
        self.disconnect().await;
        let down = || Delivery::down(format!("{}: {}", self.server.name, fault.advice()));
        let Fault::Redis(error) = fault else { return down() };
        if error.is_timeout() && self.ping().await.is_ok() {
            return Delivery::retry(format!("{} did not answer in time", self.server.name));
        }
        match classify(error) {
            Delivery::Down { .. } => down(),
            other => other,
        }
    }
}

#[async_trait]
impl Sink for Redis {
    fn capabilities(&self) -> Capabilities {
        Capabilities { dedupes_for: self.config.dedupe, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let entries: Vec<Result<Entry, String>> =
            events.iter().map(|event| Entry::new(&self.config, event)).collect();
        let good: Vec<(&Claimed, Entry)> = events
            .iter()
            .zip(&entries)
            .filter_map(|(event, entry)| Some((event, entry.as_ref().ok()?.clone())))
            .collect();
        let mut answers = match self.add(&good).await {
            Ok(answers) => answers,
            Err(fault) => vec![self.failed(&fault).await; good.len()],
        }
        .into_iter();
        entries
            .into_iter()
            .map(|entry| match entry {
                Ok(_) => answers.next().unwrap_or_else(unanswered),
                Err(reason) => Delivery::reject(reason),
            })
            .collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        match self.ping().await {
            Ok(()) => Ok(()),
            Err(fault) => {
                self.disconnect().await;
                Err(fault.unusable().of(&self.server.name).error("redis"))
            }
        }
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.disconnect().await;
        Ok(())
    }
}

/// An event as it is added.
#[derive(Debug, Clone)]
struct Entry {
    stream: String,
    fields: Vec<(String, Vec<u8>)>,
}

impl Entry {
    /// # Errors
    /// Why the event cannot be added, ever.
    fn new(config: &RedisConfig, event: &Claimed) -> Result<Self, String> {
        let stream = config.stream.fill(&event.event)?;
        let envelope = config.envelope.wrap(&Carrier::REDIS, event)?;
        let mut fields = Vec::with_capacity(envelope.headers.len() + 2);
        for (name, value) in envelope.headers {
            if name == PAYLOAD || name == CONTENT_TYPE {
                return Err(format!("its header `{name}` has the name of the field for its {name}"));
            }
            fields.push((name.to_owned(), value.into_owned().into_bytes()));
        }
        if let Some(content_type) = envelope.content_type {
            fields.push((CONTENT_TYPE.to_owned(), content_type.into_owned().into_bytes()));
        }
        fields.push((PAYLOAD.to_owned(), envelope.body.into_owned()));
        Ok(Self { stream, fields })
    }
}

fn unanswered() -> Delivery {
    Delivery::retry("the server did not say what became of it")
}

fn marker(event: &Claimed) -> String {
    format!("sendoff:seen:{}", event.event.event_id)
}

/// What an error means for the event it is about.
fn classify(error: &RedisError) -> Delivery {
    // Not its debug form: that may have what was sent.
    let text = error.to_string();
    match error.code() {
        // Nothing can be written now, whatever it is.
        Some(
            "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "READONLY" | "OOM" | "MISCONF" | "NOREPLICAS"
            | "NOAUTH" | "WRONGPASS",
        ) => Delivery::down(text),
        _ if error.is_io_error() || error.kind() == ErrorKind::AuthenticationFailed => Delivery::down(text),
        _ => Delivery::retry(text),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use redis::ServerErrorKind;

    use super::*;
    use crate::json_line::tests::claimed;

    #[test]
    fn an_error_stops_the_sink_or_the_event() {
        let of = |kind: ServerErrorKind| RedisError::from((ErrorKind::Server(kind), "says the server"));
        let is_down = |error: &RedisError| matches!(classify(error), Delivery::Down { .. });
        for kind in [
            ServerErrorKind::BusyLoading,
            ServerErrorKind::ClusterDown,
            ServerErrorKind::MasterDown,
            ServerErrorKind::ReadOnly,
        ] {
            assert!(is_down(&of(kind)), "{kind:?}");
        }
        for kind in [ServerErrorKind::ResponseError, ServerErrorKind::NoPerm, ServerErrorKind::TryAgain] {
            assert!(matches!(classify(&of(kind)), Delivery::Retry { .. }), "{kind:?}");
        }
        assert!(is_down(&std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()));
        assert!(is_down(&(ErrorKind::AuthenticationFailed, "no").into()));
    }

    #[test]
    fn what_can_never_be_added_is_refused_with_a_reason() {
        let config =
            RedisConfig { stream: "{header:shop}".parse().unwrap(), ..RedisConfig::new("redis://h") };
        let mut event = claimed(1, None, b"x");
        assert_eq!(Entry::new(&config, &event).unwrap_err(), "it has no header `shop` to be named by");
        event.event.headers.insert("shop".to_owned(), "s".to_owned());
        assert_eq!(Entry::new(&config, &event).unwrap().stream, "s");
        event.event.headers.insert("payload".to_owned(), "y".to_owned());
        let error = "its header `payload` has the name of the field for its payload";
        assert_eq!(Entry::new(&config, &event).unwrap_err(), error);
    }

    #[tokio::test]
    async fn a_password_is_shown_nowhere() {
        let url = "redis://user:s3cret@localhost:1/0";
        let sink = Redis::new(RedisConfig::new(url)).unwrap();
        assert!(!format!("{sink:?} {:?}", sink.config).contains("s3cret"), "{sink:?}");
        let error = Redis::new(RedisConfig::new("http://user:s3cret@localhost")).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
        let password = Some(Secret::Plain("s3cret".to_owned()));
        let sink =
            Redis::new(RedisConfig { password, ..RedisConfig::new("rediss://user@127.0.0.1:1") }).unwrap();
        let shown = format!("{sink:?} {:?}", sink.check().await);
        assert!(shown.contains("Secret(..)") && !shown.contains("s3cret"), "{shown}");
    }

    #[tokio::test]
    async fn a_password_that_is_not_there_is_said() {
        let password = Some(Secret::Env("SENDOFF_NO_SUCH_VARIABLE".to_owned()));
        let sink = Redis::new(RedisConfig { password, ..RedisConfig::new("redis://127.0.0.1:1") }).unwrap();
        let named = "127.0.0.1:1: `password`: the environment variable SENDOFF_NO_SUCH_VARIABLE is not set";
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        let delivery = sink.publish(&[claimed(1, None, b"x")]).await.remove(0);
        assert!(matches!(&delivery, Delivery::Down { error } if error == named), "{delivery:?}");
    }

    #[test]
    fn files_for_encryption_are_not_left_unused() {
        let config = RedisConfig { ca_file: Some("/ca.pem".into()), ..RedisConfig::new("redis://h") };
        assert!(Redis::new(config).unwrap_err().to_string().contains("give rediss://"));
    }
}
