//! MQTT 5 and 3.1.1: each event one message, acknowledged by the server.

mod connection;
mod message;
mod packet;
mod server;
mod stream;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Delivery, EventId, Sink, SinkError};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::sync::oneshot::Receiver;
use tokio::time::Instant;

use self::connection::{Answer, Connection};
use self::message::Message;
use self::packet::Verdict;
use self::server::Server;
use crate::envelope::EnvelopeConfig;
use crate::secret::Secret;
use crate::template::Template;
use crate::tls::Files;
use crate::unusable::Unusable;

/// How long a server may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MqttVersion {
    /// MQTT 5.
    #[default]
    V5,
    /// MQTT 3.1.1. It has no headers: an event is always structured, and its own headers are attributes of it. A server cannot refuse a single event: one that it
    /// does not take it drops, acknowledged all the same, or closes the connection over it.
    V3,
}

/// How often a message arrives at the server, as long as the connection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MqttQos {
    /// Once or more: quality of service 1.
    #[default]
    One,
    /// Once: quality of service 2, with twice as many packets. An event whose connection was lost is still sent again.
    Two,
}

/// Where an [`Mqtt`] sink publishes, and how.
#[derive(Clone)]
pub struct MqttConfig {
    /// The server: `mqtt://user:password@host:1883`, or encrypted `mqtts://user:password@host:8883`.
    pub url: String,
    /// Who asks, instead of the user in the URL.
    pub username: Option<String>,
    /// The password, instead of the one in the URL; read anew for each connection.
    pub password: Option<Secret>,
    /// Whom to trust with `mqtts://`: certificates of authorities as PEM, and nobody else. None: who the system trusts.
    pub ca_file: Option<PathBuf>,
    /// A certificate that the server knows this client by, as PEM, with those that it was signed by.
    pub client_cert_file: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub client_key_file: Option<PathBuf>,
    /// Which protocol is spoken.
    pub version: MqttVersion,
    /// What a server has to acknowledge.
    pub qos: MqttQos,
    /// The topic of an event.
    pub topic: Template,
    /// What the server knows this sink by; no other connection may have it, since a server closes one when the other comes. None: one that nobody else has.
    pub client_id: Option<String>,
    /// A message is delivered only if somebody listens to its topic; otherwise it is tried again. For MQTT 5, whose
    /// servers may say so; Mosquitto does with [`MqttQos::One`].
    pub need_subscriber: bool,
    /// A larger packet is rejected. None: as the server says, which one of MQTT 3.1.1 does not.
    pub max_packet: Option<u32>,
    /// A connection on which nothing was sent for so long is tested.
    pub keep_alive: Duration,
    /// A server that has not acknowledged anything by then is taken to be down, if it does not answer a ping either.
    pub timeout: Duration,
    /// How events are wrapped.
    pub envelope: EnvelopeConfig,
}

impl MqttConfig {
    /// MQTT 5 at least once, with each event's topic as its topic.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            version: MqttVersion::default(),
            qos: MqttQos::default(),
            topic: Template::topic(),
            client_id: None,
            need_subscriber: false,
            max_packet: None,
            keep_alive: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }

    fn tls_files(&self) -> Files<'_> {
        Files::new(&self.ca_file, &self.client_cert_file, &self.client_key_file)
    }
}

impl fmt::Debug for MqttConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password in it.
        f.debug_struct("MqttConfig")
            .field("username", &self.username)
            .field("password", &self.password)
            .field("ca_file", &self.ca_file)
            .field("client_cert_file", &self.client_cert_file)
            .field("client_key_file", &self.client_key_file)
            .field("version", &self.version)
            .field("qos", &self.qos)
            .field("topic", &self.topic)
            .field("client_id", &self.client_id)
            .field("need_subscriber", &self.need_subscriber)
            .field("max_packet", &self.max_packet)
            .field("keep_alive", &self.keep_alive)
            .field("timeout", &self.timeout)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Publishes each event as a message. With MQTT 5 the CloudEvents attributes and the event's own headers are user properties.
///
/// An acknowledged message is as durable as the server makes it: most hand it to who listens at that moment, and keep it for those with a session; nobody else
/// will ever see it.
pub struct Mqtt {
    config: MqttConfig,
    server: Server,
    /// The same for each of its connections: with the next one a server closes the last.
    client_id: String,
    held: Mutex<Held>,
}

/// What there is of a connection.
#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    Connected(Connection),
    /// When, and why.
    Failed(Instant, Unusable),
}

impl fmt::Debug for Mqtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mqtt").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Mqtt {
    /// A sink of this server, which is connected to with the first event.
    ///
    /// # Errors
    /// A URL that is none, and certificates that cannot be read.
    pub fn new(config: MqttConfig) -> Result<Self, SinkError> {
        let server = Server::read(&config.url)
            .ok_or_else(|| SinkError::new("mqtt", "its URL cannot be read; give mqtt://host:1883"))?;
        let files = config.tls_files();
        let checked =
            if server.is_encrypted { files.client().map(drop) } else { files.check_unused("mqtts") };
        checked.map_err(|error| SinkError::new("mqtt", error))?;
        let client_id = config.client_id.clone().unwrap_or_else(unique);
        Ok(Self { config, server, client_id, held: Mutex::default() })
    }

    /// Connects, unless it is connected. Who has waited for a try that failed does not try again: with a server that does not answer each would wait for all before it.
    async fn connect(&self) -> Result<Connection, Unusable> {
        let asked = Instant::now();
        let mut held = self.held.lock().await;
        match &*held {
            Held::Connected(connection) if !connection.is_lost() => return Ok(connection.clone()),
            Held::Failed(at, error) if *at >= asked => return Err(error.clone()),
            _ => {}
        }
        *held = Held::Nothing;
        let opening = async {
            let login = self.server.login(&self.config)?;
            let tls = self.server.is_encrypted.then(|| self.config.tls_files().client()).transpose()?;
            let stream = stream::connect(&self.server, tls.map(Arc::new)).await?;
            Connection::open(&self.config, login.as_ref(), &self.client_id, stream).await
        };
        let opened = tokio::time::timeout(self.config.timeout, opening).await;
        let opened = opened.unwrap_or_else(|_| Err(Unusable::silent()));
        *held = match &opened {
            Ok(connection) => Held::Connected(connection.clone()),
            Err(error) => Held::Failed(Instant::now(), error.clone()),
        };
        opened
    }

    async fn ping(&self) -> Result<(), Unusable> {
        let asked = async { self.connect().await?.ping().await.map_err(Unusable::Away) };
        let answered = tokio::time::timeout(PING_TIMEOUT, asked).await;
        answered.unwrap_or_else(|_| Err(Unusable::silent()))
    }

    /// With the server's name before it.
    fn named(&self, error: impl fmt::Display) -> String {
        format!("{}: {error}", self.server.address())
    }

    /// What became of a message; none: its connection was lost.
    fn delivery(&self, event: &Claimed, answer: Option<Answer>, connection: &Connection) -> Delivery {
        let delivery = match answer {
            None => Delivery::down(connection.reason()),
            Some(Answer::Unsaid(reason)) => Delivery::retry(self.named(reason)),
            Some(Answer::Said(verdict)) => classify(verdict, &self.config, event),
        };
        match delivery {
            Delivery::Down { error } => Delivery::down(self.named(error)),
            other => other,
        }
    }
}

#[async_trait]
impl Sink for Mqtt {
    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let messages: Vec<Result<Message, String>> =
            events.iter().map(|event| Message::new(&self.config, event)).collect();
        let connected = if messages.iter().any(Result::is_ok) {
            self.connect().await.map_err(|error| Delivery::down(self.named(error)))
        } else {
            // Nobody is told: each is rejected.
            Err(Delivery::Untried)
        };
        let sent: Vec<Result<(Receiver<Answer>, &Connection), Delivery>> = messages
            .into_iter()
            .map(|message| {
                let message = message.map_err(Delivery::reject)?;
                let connection = connected.as_ref().map_err(Clone::clone)?;
                message.check_size(connection.max_packet).map_err(Delivery::reject)?;
                Ok((connection.publish(message), connection))
            })
            .collect();
        let mut deliveries = Vec::with_capacity(events.len());
        for (event, sent) in events.iter().zip(sent) {
            deliveries.push(match sent {
                Ok((answer, connection)) => self.delivery(event, answer.await.ok(), connection),
                Err(delivery) => delivery,
            });
        }
        deliveries
    }

    async fn check(&self) -> Result<(), SinkError> {
        let Err(error) = self.ping().await else { return Ok(()) };
        // Who holds it is about to connect again.
        if let Ok(mut held) = self.held.try_lock()
            && let Held::Connected(connection) = std::mem::take(&mut *held)
        {
            connection.give_up(&error.to_string());
        }
        Err(error.of(&self.server.address()).error("mqtt"))
    }

    async fn close(&self) -> Result<(), SinkError> {
        let held = std::mem::take(&mut *self.held.lock().await);
        if let Held::Connected(connection) = held {
            connection.close().await;
        }
        Ok(())
    }
}

/// What nobody else is known by, in as many letters as every server takes.
fn unique() -> String {
    let random: String = EventId::generate().to_string().chars().filter(char::is_ascii_hexdigit).collect();
    // Its first digits are the time.
    format!("sendoff-{}", random.get(random.len().saturating_sub(15)..).unwrap_or_default())
}

/// What a server's word means for the event it is about.
fn classify(verdict: Verdict, config: &MqttConfig, event: &Claimed) -> Delivery {
    match verdict {
        Verdict::NoSubscriber if config.need_subscriber => Delivery::retry("nobody listens to its topic"),
        Verdict::Taken | Verdict::NoSubscriber => Delivery::Delivered,
        Verdict::NotAuthorized => Delivery::down(format!(
            "this user may not publish to `{}`; allow it there, for instance in an access control list",
            config.topic.fill(&event.event).unwrap_or_default()
        )),
        Verdict::InvalidTopic => Delivery::reject("the server does not take its topic"),
        Verdict::InvalidPayload => Delivery::reject("the server does not take its payload"),
        Verdict::Quota => Delivery::retry("a quota of the server is exceeded"),
        Verdict::Other(error) => Delivery::retry(format!("the server says: {error}")),
    }
}

#[cfg(test)]
mod tests;
