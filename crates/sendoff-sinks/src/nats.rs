//! NATS JetStream: each event one message, acknowledged by its stream, which drops what it has seen.

mod access;
mod forbidden;
mod user_key;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{Context, GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream;
use async_nats::{Client, HeaderMap, ServerAddr, Subject};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};
use tokio::time::Instant;

use self::access::{Login, Trouble};
use crate::envelope::{Carrier, EnvelopeConfig};
use crate::secret::Secret;
use crate::template::Template;
use crate::tls::Files;
use crate::unusable::Unusable;

/// How long a server may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest pause between two tries to connect again.
const RECONNECT_MAX: Duration = Duration::from_millis(500);

/// The stream that acknowledges the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsStream {
    /// Its name.
    pub name: String,
    /// It is made if it is not there, for these subjects; empty: it must be there.
    pub create_for: Vec<String>,
}

/// Where a [`Nats`] sink publishes, and how.
#[derive(Clone)]
pub struct NatsConfig {
    /// The servers: `nats://user:password@host:4222`, more than one with commas between them. With `tls://` a server that does not encrypt is not spoken to.
    pub url: String,
    /// Who asks, instead of the user in the URL.
    pub username: Option<String>,
    /// The password, instead of the one in the URL; read anew for each connection.
    pub password: Option<Secret>,
    /// A token, instead of user and password; read anew for each connection.
    pub token: Option<Secret>,
    /// What a `.creds` file has, a user's JWT and seed, instead of user and password; read anew for each connection.
    pub credentials: Option<Secret>,
    /// The seed of a user's nkey, `SU…`, instead of user and password; read anew for each connection.
    pub nkey: Option<Secret>,
    /// Whom to trust: certificates of authorities as PEM, and nobody else. With it a server that does not encrypt is not spoken to. None: who the system trusts.
    pub ca_file: Option<PathBuf>,
    /// A certificate that the server knows this client by, as PEM, with those that it was signed by. This and its key are read once, with the first event.
    pub client_cert_file: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub client_key_file: Option<PathBuf>,
    /// The stream.
    pub stream: NatsStream,
    /// The subject of an event.
    pub subject: Template,
    /// A server that has not answered by then is taken to be down, if it does not answer when it is asked for its stream either.
    pub timeout: Duration,
    /// How events are wrapped.
    pub envelope: EnvelopeConfig,
}

impl NatsConfig {
    /// This stream, with each event's topic as its subject.
    pub fn new(url: impl Into<String>, stream: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            token: None,
            credentials: None,
            nkey: None,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            stream: NatsStream { name: stream.into(), create_for: Vec::new() },
            subject: Template::topic(),
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }

    fn tls_files(&self) -> Files<'_> {
        Files::new(&self.ca_file, &self.client_cert_file, &self.client_key_file)
    }
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password in it.
        f.debug_struct("NatsConfig")
            .field("username", &self.username)
            .field("password", &self.password)
            .field("token", &self.token)
            .field("credentials", &self.credentials)
            .field("nkey", &self.nkey)
            .field("ca_file", &self.ca_file)
            .field("client_cert_file", &self.client_cert_file)
            .field("client_key_file", &self.client_key_file)
            .field("stream", &self.stream)
            .field("subject", &self.subject)
            .field("timeout", &self.timeout)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Publishes each event to a stream, with its id as `Nats-Msg-Id`: within the stream's duplicate window a second delivery is dropped there.
pub struct Nats {
    config: NatsConfig,
    servers: Vec<ServerAddr>,
    login: Login,
    /// One for as long as the sink lives: what it could not send when its connection was lost it sends before anything else.
    connected: tokio::sync::Mutex<Option<Connected>>,
    /// The stream's duplicate window, once it is known.
    window: Mutex<Option<Duration>>,
    trouble: Arc<Trouble>,
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("config", &self.config).finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Connected {
    client: Client,
    context: Context,
}

impl Nats {
    /// A sink of this stream, which is connected to with the first event.
    ///
    /// # Errors
    /// A URL that is none, and more than one way to be let in.
    pub fn new(config: NatsConfig) -> Result<Self, SinkError> {
        let wrong = |error: String| SinkError::new("nats", error);
        let servers = servers(&config.url).map_err(wrong)?;
        let login =
            Login::new(&config, &servers).map_err(|error| wrong(format!("{}: {error}", named(&servers))))?;
        Ok(Self {
            config,
            servers,
            login,
            connected: tokio::sync::Mutex::default(),
            window: Mutex::default(),
            trouble: Arc::default(),
        })
    }

    /// Connects, unless it has before, and finds the stream.
    async fn connect(&self) -> Result<Connected, Unusable> {
        let mut held = self.connected.lock().await;
        if let Some(connected) = &*held {
            return Ok(connected.clone());
        }
        let files = self.config.tls_files();
        let login = self.login.clone();
        let options = login
            .options(Arc::clone(&self.trouble))
            .tls_client_config(files.client()?)
            .require_tls(files.are_given())
            .name("sendoff")
            .connection_timeout(self.config.timeout)
            .request_timeout(Some(self.config.timeout))
            .reconnect_delay_callback(|attempts| {
                let pause =
                    Duration::from_millis(10) * u32::try_from(attempts).unwrap_or(u32::MAX).min(1_000);
                pause.min(RECONNECT_MAX)
            });
        let client =
            options.connect(&self.servers).await.map_err(|error| self.trouble.unreachable(&error))?;
        let mut context = async_nats::jetstream::new(client.clone());
        context.set_timeout(self.config.timeout);
        let connected = Connected { client, context };
        self.find_stream(&connected).await?;
        *held = Some(connected.clone());
        Ok(connected)
    }

    /// The stream is there, or made if that is wanted.
    async fn find_stream(&self, connected: &Connected) -> Result<(), Unusable> {
        let NatsStream { name, create_for } = &self.config.stream;
        let found = connected.context.get_stream(name).await;
        let stream = match found {
            Ok(stream) => stream,
            Err(_) if !create_for.is_empty() => {
                let config =
                    stream::Config { name: name.clone(), subjects: create_for.clone(), ..Default::default() };
                let made = connected.context.get_or_create_stream(config).await;
                made.map_err(|error| format!("the stream `{name}` could not be made: {error}"))?
            }
            Err(error) => {
                let text = format!(
                    "there is no stream `{name}` to be had ({error}): create it, or have it created (in a URL: ?create=SUBJECT,SUBJECT)"
                );
                // A server that is about to be ready does not answer this, and one without JetStream never does.
                let is_silent = matches!(error.kind(), GetStreamErrorKind::Request);
                return Err(if is_silent { Unusable::Away(text) } else { Unusable::Wrong(text) });
            }
        };
        let window = stream.cached_info().config.duplicate_window;
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(window).filter(|window| !window.is_zero());
        Ok(())
    }

    /// Whether the stream answers.
    async fn ping(&self) -> Result<(), Unusable> {
        let asked = async {
            let connected = self.connect().await?;
            if connected.client.connection_state() != State::Connected {
                return Err(self.trouble.reason());
            }
            self.find_stream(&connected).await
        };
        let began = Instant::now();
        let answered = tokio::time::timeout(PING_TIMEOUT, asked).await;
        let mut answered = answered.unwrap_or_else(|_| Err(Unusable::silent()));
        if answered.is_err()
            && let Some(forbidden) = self.forbidden(began).await
        {
            answered = Err(Unusable::Wrong(forbidden));
        }
        answered.map_err(|unusable| unusable.of(&named(&self.servers)))
    }

    /// Why an answer never comes though the server is there, if it has said so since then.
    async fn forbidden(&self, since: Instant) -> Option<String> {
        let forbidden = &self.trouble.forbidden;
        let listening = forbidden.listening();
        if listening.is_some()
            && let Some(connected) = &*self.connected.lock().await
        {
            // The client asks to listen once on a connection, and would never hear that it may.
            let _ = connected.client.force_reconnect().await;
        }
        listening.or_else(|| forbidden.asking(since))
    }

    /// Sends the messages, and waits for their acknowledgements.
    async fn send(&self, messages: Vec<Message>) -> Vec<Result<(), Failed>> {
        let connected = match self.connect().await {
            Ok(connected) if connected.client.connection_state() == State::Connected => connected,
            // It would be kept and sent later, when nobody waits for it any more.
            _ => {
                let lost = || PublishError::new(PublishErrorKind::BrokenPipe);
                return messages.into_iter().map(|message| Err((message.subject, lost()))).collect();
            }
        };
        // Each is waited for while the others are sent: the client lets only so many be on their way, in all calls together.
        let context = &connected.context;
        let sent = messages.into_iter().map(|Message { subject, publish }| async move {
            let acknowledged = match context.send_publish(subject.clone(), publish).await {
                Ok(sent) => sent.await.map(drop),
                Err(error) => Err(error),
            };
            acknowledged.map_err(|error| (subject, error))
        });
        join_all(sent).await
    }
}

#[async_trait]
impl Sink for Nats {
    fn capabilities(&self) -> Capabilities {
        let window = *self.window.lock().unwrap_or_else(PoisonError::into_inner);
        Capabilities { dedupes_for: window, ..Capabilities::default() }
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
        let began = Instant::now();
        let answers = if messages.is_empty() { Vec::new() } else { self.send(messages).await };
        // Whether it is the server that is at fault, asked once.
        let in_doubt =
            answers.iter().any(|answer| answer.as_ref().is_err_and(|(_, error)| is_in_doubt(error.kind())));
        let down = if in_doubt { self.ping().await.err().map(String::from) } else { None };
        let mut answers = answers.into_iter().map(|answer| match answer {
            Ok(()) => Delivery::Delivered,
            Err((subject, error)) => {
                let forbidden = || self.trouble.forbidden.publishing(&subject, began);
                classify(&error, down.as_deref(), forbidden)
            }
        });
        let missing = || Delivery::retry("the server did not say what became of it");
        rejected
            .into_iter()
            .map(|rejected| rejected.or_else(|| answers.next()).unwrap_or_else(missing))
            .collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        self.ping().await.map_err(|unusable| unusable.error("nats"))
    }

    async fn close(&self) -> Result<(), SinkError> {
        if let Some(connected) = self.connected.lock().await.take() {
            let drained = connected.client.drain().await;
            drained.map_err(|error| SinkError::new("nats", error.to_string()))?;
        }
        Ok(())
    }
}

fn servers(url: &str) -> Result<Vec<ServerAddr>, String> {
    let servers = url.split(',').map(|server| server.trim().parse());
    // Not its text: it may repeat the URL.
    servers.collect::<Result<_, _>>().map_err(|_| "its URL cannot be read; give nats://host:4222".to_owned())
}

/// Hosts and ports, for people.
fn named(servers: &[ServerAddr]) -> String {
    let named = servers.iter().map(|server| match server.host() {
        host if host.contains(':') => format!("[{host}]:{}", server.port()),
        host => format!("{host}:{}", server.port()),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// An event as it is published.
struct Message {
    subject: Subject,
    publish: PublishMessage,
}

/// What was not acknowledged, by its subject, and why.
type Failed = (Subject, PublishError);

impl Message {
    /// # Errors
    /// Why the event cannot be published, ever.
    fn new(config: &NatsConfig, event: &Claimed) -> Result<Self, String> {
        let subject = config.subject.fill(&event.event)?;
        check_subject(&subject)?;
        let envelope = config.envelope.wrap(&Carrier::NATS, event)?;
        let mut headers = HeaderMap::new();
        for (name, value) in envelope.headers {
            if name.to_ascii_lowercase().starts_with("nats-") {
                return Err(format!("its header `{name}` has a name that the server reads as its own"));
            }
            headers.insert(name, value.into_owned());
        }
        if let Some(content_type) = envelope.content_type {
            headers.insert("content-type", content_type.into_owned());
        }
        let publish = PublishMessage::build()
            .payload(Bytes::from(envelope.body.into_owned()))
            .headers(headers)
            .message_id(event.event.event_id.to_string())
            .expected_stream(&config.stream.name);
        Ok(Self { subject: subject.into(), publish })
    }
}

/// Tokens with dots between them, and no wildcards: those are for who listens.
fn check_subject(subject: &str) -> Result<(), String> {
    let is_token = |token: &str| {
        !token.is_empty()
            && token
                .chars()
                .all(|letter| !letter.is_whitespace() && !letter.is_control() && !"*>".contains(letter))
    };
    if subject.split('.').all(is_token) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no subject: tokens with dots between them, without spaces, `*` and `>`",
        subject.escape_debug()
    ))
}

/// It may be the server's fault, and the event may have arrived.
fn is_in_doubt(kind: PublishErrorKind) -> bool {
    matches!(
        kind,
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe | PublishErrorKind::StreamNotFound
    )
}

/// What an error means for the event it is about; `down`: why the server does not answer, if it does not; `forbidden`: that it forbids the event's subject.
fn classify(
    error: &PublishError,
    down: Option<&str>,
    forbidden: impl FnOnce() -> Option<String>,
) -> Delivery {
    match (error.kind(), down) {
        (kind, Some(down)) if is_in_doubt(kind) => Delivery::down(down),
        (PublishErrorKind::TimedOut, None) => {
            Delivery::retry(forbidden().unwrap_or_else(|| error.to_string()))
        }
        (PublishErrorKind::MaxPayloadExceeded, _) => {
            Delivery::reject(format!("{error}; the server's `max_payload` says how much it takes"))
        }
        (PublishErrorKind::StreamNotFound, _) => {
            Delivery::retry("no stream has its subject: add the subject to the stream")
        }
        _ => Delivery::retry(error.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    #[test]
    fn an_error_stops_the_sink_or_the_event() {
        use PublishErrorKind as Kind;
        let of = |kind, down| classify(&PublishError::new(kind), down, || None);
        for kind in [Kind::TimedOut, Kind::BrokenPipe, Kind::StreamNotFound] {
            assert!(
                matches!(of(kind, Some("gone")), Delivery::Down { error } if error == "gone"),
                "{kind:?}"
            );
            assert!(matches!(of(kind, None), Delivery::Retry { .. }), "{kind:?}");
        }
        for kind in [Kind::Other, Kind::MaxAckPending, Kind::WrongLastSequence] {
            assert!(matches!(of(kind, Some("gone")), Delivery::Retry { .. }), "{kind:?}");
        }
        assert!(matches!(of(Kind::MaxPayloadExceeded, None), Delivery::Reject { .. }));
        let forbidden = classify(&PublishError::new(Kind::TimedOut), None, || Some("no".to_owned()));
        assert!(matches!(forbidden, Delivery::Retry { error, .. } if error == "no"));
    }

    #[test]
    fn what_can_never_be_published_is_refused_with_a_reason() {
        let config = NatsConfig { subject: "a.{key}".parse().unwrap(), ..NatsConfig::new("nats://h", "s") };
        let refused = |event: &Claimed| Message::new(&config, event).err().unwrap_or_default();
        for key in ["a b", "*", "a.>", "", "a..b", "a\tb"] {
            assert!(refused(&claimed(1, Some(key), b"x")).contains("is no subject"), "{key:?}");
        }
        let mut event = claimed(1, Some("k.l"), b"x");
        assert_eq!(refused(&event), "");
        event.event.headers.insert("Nats-Msg-Id".to_owned(), "another".to_owned());
        assert_eq!(refused(&event), "its header `Nats-Msg-Id` has a name that the server reads as its own");
    }

    #[tokio::test]
    async fn a_secret_is_shown_nowhere() {
        let secret = || Some(Secret::Plain("s3cret".to_owned()));
        let config = NatsConfig::new("nats://user:s3cret@127.0.0.1:1", "s");
        let sink = Nats::new(NatsConfig { password: secret(), token: secret(), ..config }).unwrap();
        let (checked, delivery) = (sink.check().await, sink.publish(&[claimed(1, None, b"x")]).await);
        let shown = format!("{sink:?} {checked:?} {delivery:?}");
        assert!(!shown.contains("s3cret") && shown.contains("127.0.0.1:1: "), "{shown}");
        let error = Nats::new(NatsConfig::new("nats://user:s3cret@h:port", "s")).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
        let by_key = NatsConfig::new("nats://127.0.0.1:1", "s");
        for config in
            [NatsConfig { credentials: secret(), ..by_key.clone() }, NatsConfig { nkey: secret(), ..by_key }]
        {
            let error =
                Nats::new(NatsConfig { password: secret(), ..config.clone() }).unwrap_err().to_string();
            assert!(error.contains("127.0.0.1:1: user and password"), "{error}");
            let sink = Nats::new(config).unwrap();
            let shown = format!("{error} {sink:?} {:?}", sink.check().await);
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
