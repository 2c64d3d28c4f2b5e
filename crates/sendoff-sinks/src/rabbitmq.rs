//! RabbitMQ: each event one persistent message, delivered once a queue has it and the server has confirmed that.

mod answer;
mod connection;
mod message;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use lapin::options::{BasicPublishOptions, ExchangeDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Confirmation, ExchangeKind};
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};

use self::answer::{Fault, Outcome, answers, cause, is_refusal, single, unreachable};
use self::connection::{Connected, Server};
use self::message::Message;
use crate::envelope::EnvelopeConfig;
use crate::secret::{self, Secret};
use crate::template::Template;
use crate::tls::Files;
use crate::unusable::Unusable;

/// Why nothing goes on while the server is short of memory or disk.
const BLOCKED: &str = "the server blocks publishers: it is short of memory or disk space (`rabbitmqctl status` shows its alarms)";

/// Where a [`RabbitMq`] sink publishes, and how.
#[derive(Clone)]
pub struct RabbitMqConfig {
    /// The server: `amqp://user:password@host:5672/vhost`, with `amqps://` over TLS. Without a virtual host it is `/`.
    pub url: String,
    /// Who asks, instead of the user in the URL.
    pub username: Option<String>,
    /// The password, instead of the one in the URL; read anew for each connection.
    pub password: Option<Secret>,
    /// Whom to trust with `amqps://`: certificates of authorities as PEM, and nobody else. None: who the system trusts.
    pub ca_file: Option<PathBuf>,
    /// A certificate that the server knows this client by, as PEM, with those that it was signed by.
    pub client_cert_file: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub client_key_file: Option<PathBuf>,
    /// The exchange, which must be there. An empty name is the server's own: the routing key names a queue.
    pub exchange: Template,
    /// The routing key of an event.
    pub routing_key: Template,
    /// A payload of more bytes is rejected before it is sent. The server has a limit of its own, `max_message_size`.
    pub max_payload: usize,
    /// A server that has confirmed nothing for so long is taken to be down, if it does not answer when it is asked for a channel either.
    pub timeout: Duration,
    /// How events are wrapped.
    pub envelope: EnvelopeConfig,
}

impl RabbitMqConfig {
    /// This exchange, with each event's topic as its routing key.
    pub fn new(url: impl Into<String>, exchange: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            exchange: Template::fixed(exchange),
            routing_key: Template::topic(),
            max_payload: 16 * 1024 * 1024,
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }

    fn tls_files(&self) -> Files<'_> {
        Files::new(&self.ca_file, &self.client_cert_file, &self.client_key_file)
    }
}

impl fmt::Debug for RabbitMqConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password in it.
        f.debug_struct("RabbitMqConfig")
            .field("username", &self.username)
            .field("password", &self.password)
            .field("ca_file", &self.ca_file)
            .field("client_cert_file", &self.client_cert_file)
            .field("client_key_file", &self.client_key_file)
            .field("exchange", &self.exchange)
            .field("routing_key", &self.routing_key)
            .field("max_payload", &self.max_payload)
            .field("timeout", &self.timeout)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Publishes each event to an exchange, with its id as `message_id`. One that no queue gets is rejected: the server would drop it.
pub struct RabbitMq {
    config: RabbitMqConfig,
    server: Server,
    connected: tokio::sync::Mutex<Option<Arc<Connected>>>,
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMq").field("config", &self.config).finish_non_exhaustive()
    }
}

impl RabbitMq {
    /// A sink of this server, which is connected to with the first event.
    ///
    /// # Errors
    /// The URL or the certificates cannot be read.
    pub fn new(config: RabbitMqConfig) -> Result<Self, SinkError> {
        let wrong = |error: String| SinkError::new("rabbitmq", error);
        let server = Server::new(&config.url).map_err(wrong)?;
        let files = config.tls_files();
        let checked =
            if server.is_encrypted() { files.client().map(drop) } else { files.check_unused("amqps") };
        checked.map_err(wrong)?;
        Ok(Self { config, server, connected: tokio::sync::Mutex::default() })
    }

    /// The connection: the one there is, if it lives.
    async fn connect(&self) -> Result<Arc<Connected>, Unusable> {
        let mut held = self.connected.lock().await;
        if let Some(connected) = held.as_ref().filter(|connected| connected.is_alive()) {
            return Ok(Arc::clone(connected));
        }
        *held = None;
        let password = secret::read(self.config.password.as_ref(), "password")?;
        let server = self.server.asked_by(self.config.username.clone(), password);
        let tls = server.is_encrypted().then(|| self.config.tls_files().client()).transpose()?;
        let opened = Connected::open(&server, tls.map(Arc::new), self.config.timeout).await;
        let connected = Arc::new(opened.map_err(|error| unreachable(&error))?);
        *held = Some(Arc::clone(&connected));
        Ok(connected)
    }

    /// A connection, and something done with it in time.
    async fn within<T>(
        &self,
        work: impl AsyncFnOnce(&Arc<Connected>) -> Result<T, Unusable>,
    ) -> Result<T, Unusable> {
        let done = async {
            let silent = |_| Unusable::silent();
            let timeout = self.config.timeout;
            let connected = tokio::time::timeout(timeout, self.connect()).await.map_err(silent)??;
            if connected.is_blocked() {
                return Err(Unusable::Away(BLOCKED.to_owned()));
            }
            let done = tokio::time::timeout(timeout, work(&connected)).await;
            done.unwrap_or_else(|elapsed| {
                connected.cut();
                Err(silent(elapsed))
            })
        };
        done.await.map_err(|unusable: Unusable| unusable.of(&self.server.name))
    }

    /// Whether the server answers, and has the exchange.
    async fn ping(&self) -> Result<(), Unusable> {
        self.within(async |connected| {
            let channel = connected.new_channel().await.map_err(|error| unreachable(&error))?;
            let Some(exchange) = self.config.exchange.as_fixed().filter(|name| !name.is_empty()) else {
                return Ok(());
            };
            let name = message::short("the exchange's name", exchange)?;
            let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
            let asked = channel.exchange_declare(name, ExchangeKind::Topic, passive, FieldTable::default());
            match asked.await {
                Ok(()) => Ok(()),
                Err(error) if !is_refusal(&error) => Err(unreachable(&error)),
                Err(error) => Err(match Fault::of(&error, Some(exchange)) {
                    Fault::Server(text) | Fault::Message { text, .. } => Unusable::Wrong(text),
                }),
            }
        })
        .await
    }

    /// Publishes messages, and finds the one that the server closes the channel over, if there is such a one: the others are not harmed by it.
    async fn deliver(&self, messages: &[Message<'_>]) -> Vec<Delivery> {
        let all: Vec<&Message<'_>> = messages.iter().collect();
        let Sent { mut answers, fault } = self.send(&all).await;
        let mut left: Vec<usize> = (0..answers.len()).filter(|index| answers[*index].is_none()).collect();
        let mut fault = match fault {
            Some(Fault::Message { .. }) if left.len() > 1 => None,
            other => other,
        };
        while fault.is_none() && !left.is_empty() {
            let index = left.remove(0);
            let mut sent = self.send(&[&messages[index]]).await;
            answers[index] = sent.answers.pop().flatten();
            if answers[index].is_none() {
                match sent.fault {
                    Some(Fault::Message { code, text }) => answers[index] = Some(single(code, &text)),
                    other => fault = other,
                }
            }
        }
        let rest = match fault {
            Some(Fault::Server(error)) => Delivery::down(error),
            Some(Fault::Message { code, text }) => single(code, &text),
            None => Delivery::retry("the server did not say what became of it"),
        };
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| rest.clone())).collect()
    }

    /// Publishes messages on a channel of their own, and waits for what the server says to them.
    async fn send(&self, messages: &[&Message<'_>]) -> Sent {
        let opened = self
            .within(async |connected| {
                let channel = connected.channel().await.map_err(|error| unreachable(&error))?;
                Ok((Arc::clone(connected), channel))
            })
            .await;
        let (connected, channel) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                return Sent {
                    answers: vec![None; messages.len()],
                    fault: Some(Fault::Server(error.into())),
                };
            }
        };
        let outcomes = self.publish_on(&channel, connected.frame_max(), messages).await;
        let mut sent = Sent { answers: answers(messages, &outcomes), fault: None };
        if sent.answers.iter().all(Option::is_some) {
            connected.put_back(channel);
            return sent;
        }
        drop(channel);
        sent.fault = match cause(&outcomes) {
            Some(error) => Some(match Fault::of(error, self.config.exchange.as_fixed()) {
                Fault::Server(error) => Fault::Server(format!("{}: {error}", self.server.name)),
                message => message,
            }),
            None => self.silence(&connected, &mut sent.answers).await,
        };
        sent
    }

    /// All messages at once; what has been confirmed when nothing more comes.
    async fn publish_on(
        &self,
        channel: &Channel,
        frame_max: usize,
        messages: &[&Message<'_>],
    ) -> Vec<Outcome> {
        let mandatory = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let mut outcomes: Vec<Outcome> = messages.iter().map(|message| message.fits(frame_max)).collect();
        let waiting: Vec<usize> =
            (0..outcomes.len()).filter(|index| matches!(outcomes[*index], Outcome::Unanswered)).collect();
        let mut on_the_way: FuturesUnordered<_> = waiting
            .into_iter()
            .map(|index| async move {
                let Message { exchange, routing_key, payload, properties, .. } = messages[index];
                let published = channel.basic_publish(
                    exchange.clone(),
                    routing_key.clone(),
                    mandatory,
                    payload,
                    properties.clone(),
                );
                let confirmed: lapin::Result<Confirmation> = async { published.await?.await }.await;
                (index, confirmed)
            })
            .collect();
        while let Ok(Some((index, confirmed))) =
            tokio::time::timeout(self.config.timeout, on_the_way.next()).await
        {
            outcomes[index] = Outcome::of(confirmed);
        }
        outcomes
    }

    /// Nothing is wrong, but not everything was confirmed: it may be the server, or only these messages.
    async fn silence(&self, connected: &Arc<Connected>, answers: &mut [Option<Delivery>]) -> Option<Fault> {
        if connected.is_blocked() {
            return Some(Fault::Server(format!("{}: {BLOCKED}", self.server.name)));
        }
        let asked = tokio::time::timeout(self.config.timeout, connected.new_channel()).await;
        if matches!(asked, Ok(Ok(_))) {
            let error = format!("the server did not confirm it within {:?}", self.config.timeout);
            for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                *answer = Some(Delivery::retry(error.clone()));
            }
            return None;
        }
        // It is of no use to any other call either.
        connected.cut();
        Some(Fault::Server(format!("{}: it does not answer", self.server.name)))
    }
}

/// What became of messages; `fault`: why some have no answer.
struct Sent {
    answers: Vec<Option<Delivery>>,
    fault: Option<Fault>,
}

#[async_trait]
impl Sink for RabbitMq {
    fn capabilities(&self) -> Capabilities {
        // A message that comes back does not keep the next one from its queue.
        Capabilities::default()
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let (mut rejected, mut messages) = (Vec::with_capacity(events.len()), Vec::new());
        for event in events {
            match Message::new(&self.config, event) {
                Ok(message) => {
                    rejected.push(None);
                    messages.push(message);
                }
                Err(reason) => rejected.push(Some(Delivery::reject(reason))),
            }
        }
        let deliveries = if messages.is_empty() { Vec::new() } else { self.deliver(&messages).await };
        let mut deliveries = deliveries.into_iter();
        let missing = || Delivery::retry("the server did not say what became of it");
        rejected
            .into_iter()
            .map(|rejected| rejected.or_else(|| deliveries.next()).unwrap_or_else(missing))
            .collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        self.ping().await.map_err(|unusable| unusable.error("rabbitmq"))
    }

    async fn close(&self) -> Result<(), SinkError> {
        let Some(connected) = self.connected.lock().await.take() else { return Ok(()) };
        connected.close(self.config.timeout).await;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::json_line::tests::claimed;

    #[tokio::test]
    async fn a_password_is_shown_nowhere() {
        let sink = RabbitMq::new(RabbitMqConfig::new("amqp://user:s3cret@localhost:1", "e")).unwrap();
        assert!(!format!("{sink:?}").contains("s3cret"), "{sink:?}");
        for url in ["user:s3cret@localhost", "http://user:s3cret@localhost", "amqp://u:s3cret@h:port"] {
            let error = RabbitMq::new(RabbitMqConfig::new(url, "e")).unwrap_err().to_string();
            assert!(!error.contains("s3cret") && error.contains("give amqp://"), "{error}");
        }
        let password = Some(Secret::Plain("s3cret".to_owned()));
        let config = RabbitMqConfig { password, ..RabbitMqConfig::new("amqp://user@127.0.0.1:1", "e") };
        let sink = RabbitMq::new(config).unwrap();
        let shown = format!("{sink:?} {:?}", sink.check().await);
        assert!(shown.contains("Secret(..)") && !shown.contains("s3cret"), "{shown}");
    }

    #[tokio::test]
    async fn a_password_that_is_not_there_is_said() {
        let password = Some(Secret::File("/nowhere/password".into()));
        let config = RabbitMqConfig { password, ..RabbitMqConfig::new("amqp://127.0.0.1:1", "e") };
        let sink = RabbitMq::new(config).unwrap();
        let named = "127.0.0.1:1: `password`: the file /nowhere/password cannot be read";
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        let delivery = sink.publish(&[claimed(1, None, b"x")]).await.remove(0);
        assert!(matches!(&delivery, Delivery::Down { error } if error.contains(named)), "{delivery:?}");
    }

    #[test]
    fn files_for_encryption_are_not_left_unused() {
        let config =
            RabbitMqConfig { ca_file: Some("/ca.pem".into()), ..RabbitMqConfig::new("amqp://h", "e") };
        assert!(RabbitMq::new(config).unwrap_err().to_string().contains("give amqps://"));
    }

    /// A server that takes connections and says nothing must not cost a thread with each try.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_is_left_of_a_connection_that_was_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = RabbitMqConfig {
            timeout: Duration::from_millis(100),
            ..RabbitMqConfig::new(format!("amqp://user:s3cret@{address}"), "e")
        };
        let sink = RabbitMq::new(config).unwrap();
        for _ in 0..3 {
            let error = sink.check().await.unwrap_err().to_string();
            assert!(error.contains(&address.to_string()) && error.contains("does not answer"), "{error}");
        }
        let deliveries = sink.publish(&[claimed(1, None, b"x")]).await;
        assert!(matches!(&deliveries[0], Delivery::Down { error } if !error.contains("s3cret")));
        let threads = || {
            let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
            let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
            names.filter(|name| name.starts_with("lapin")).count()
        };
        let began = Instant::now();
        while threads() > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "{} threads are left", threads());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(listener);
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains("is it running"), "{error}");
    }
}
