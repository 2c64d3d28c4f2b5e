//! Kafka: each event one record, acknowledged by all replicas that are in sync.

mod answer;
mod call;
mod client;
mod config;
mod message;

use std::collections::BTreeSet;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use rdkafka::error::RDKafkaErrorCode as Code;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};
use tokio::sync::{RwLock, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use self::answer::{classify, is_in_doubt, is_of_a_batch, is_of_a_topic};
use self::call::Call;
use self::client::{Client, Fault, Faults};
use self::config::SETTLE;
pub use self::config::{KafkaCompression, KafkaConfig, KafkaMechanism, KafkaSasl, KafkaSecurity, KafkaTls};
use self::message::Message;
use crate::unusable::Unusable;

/// The client looks once a second for records whose time is over.
const GRACE: Duration = Duration::from_secs(3);

/// A host may have more than one address, and the client takes it for lost when the first one was of no use: `localhost` often is one of IPv6 first.
const OTHER_ADDRESSES: Duration = Duration::from_millis(300);

/// Produces each event as one record: its key is the record's key, and so its partition; what is known about it is in headers, as the Kafka binding of
/// CloudEvents has them.
///
/// An idempotent producer sends again by itself what was not acknowledged, in its order and without doing so twice, until the time of a record is over. One producer does all of it for as long as
/// the sink lives, and takes records of a partition in the order in which it is given them. So nothing of a key is overtaken by its own second try, or by what a
/// dropped call has left behind: that may still be delivered, for up to `timeout` and two seconds, but before anything that is given to the sink later. What it may overtake is
/// what *another* relay sends meanwhile. A batch that is still on the wire when its time is over is fenced off by the next epoch of the producer, in the brokers.
///
/// What remains: a producer is made anew when the client calls its state fatal, when the brokers refuse it whatever its epoch is, as some that are not Kafka do, or with the process; the
/// brokers then know nothing of the one before. A second delivery has the same event id, and the same position.
pub struct Kafka {
    config: KafkaConfig,
    /// Hosts and ports, for people.
    servers: String,
    client: tokio::sync::Mutex<Option<Arc<Client>>>,
    /// A call has it as long as its records are on their way, together with others; one whose record must be in no batch with others has it alone.
    turn: RwLock<()>,
    /// Topics that were refused. The client remembers that for minutes, so it has to ask again.
    refused: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka")
            .field("servers", &self.servers)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// What has become of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Delivered,
    /// The brokers have not taken it.
    Failed(Code),
    /// The client has not taken it.
    Unsent(Code),
    /// The brokers cannot be reached.
    Down(String),
}

impl From<Result<(), Code>> for Outcome {
    fn from(reported: Result<(), Code>) -> Self {
        reported.map_or_else(Self::Failed, |()| Self::Delivered)
    }
}

/// What comes next while records are on their way.
enum Next {
    Complete,
    Lost,
    Refused,
    Overdue,
}

impl Kafka {
    /// A sink of this cluster, which is connected to with the first event.
    ///
    /// # Errors
    /// Brokers that cannot be read, or a setting that is not taken.
    pub fn new(config: KafkaConfig) -> Result<Self, SinkError> {
        config.check().map_err(|error| SinkError::new("kafka", error))?;
        let servers = config.servers().map_err(|error| SinkError::new("kafka", error))?;
        Ok(Self {
            config,
            servers,
            client: tokio::sync::Mutex::default(),
            turn: RwLock::default(),
            refused: Mutex::default(),
        })
    }

    async fn client(&self) -> Result<Arc<Client>, String> {
        let mut held = self.client.lock().await;
        if let Some(client) = &*held
            && client.spent().is_none()
        {
            return Ok(Arc::clone(client));
        }
        let settings = self.config.settings()?;
        let spent = held.take();
        let replace = move || {
            spent.iter().for_each(|client| client.give_up());
            Client::new(&settings, Faults::new())
        };
        let made = spawn_blocking(replace).await;
        let client = Arc::new(made.map_err(|error| error.to_string())??);
        *held = Some(Arc::clone(&client));
        Ok(client)
    }

    /// Whether the cluster answers. It is asked by another client: the first one tells why it cannot connect only once in half a minute.
    async fn ping(&self) -> Result<(), Unusable> {
        let named = |unusable: Unusable| unusable.of(&self.servers);
        let mut settings = self.config.settings().map_err(|error| named(error.into()))?;
        // No producer, only a question; and a topic that is made with the first record may be made now.
        settings.set("enable.idempotence", "false").set("allow.auto.create.topics", "true");
        settings.set("reconnect.backoff.ms", "10").set("reconnect.backoff.max.ms", "50");
        let (faults, topic) = (Faults::new(), self.config.topic.as_fixed().map(str::to_owned));
        let (told, timeout) = (Arc::clone(&faults), self.config.timeout);
        let asked = aside(move || Client::new(&settings, told)?.ask(topic.as_deref(), timeout));
        let mut watched = faults.watch();
        let lost = pin!(async {
            let _ = watched.wait_for(Option::is_some).await;
            tokio::time::sleep(OTHER_ADDRESSES).await;
        });
        // It has a limit by itself, but it makes a thread first.
        let answered = tokio::time::timeout(self.config.timeout + GRACE, select(asked, lost)).await;
        let answer = match answered {
            Ok(Either::Left((Ok(answer), _))) => answer,
            Ok(Either::Left((Err(error), _))) => Err(Unusable::Away(error.to_string())),
            Ok(Either::Right(_)) | Err(_) => Err(faults.reason()),
        };
        answer.map_err(named)
    }

    /// Asks again for topics that were refused before, so that the client knows how they are now.
    async fn renew(&self, client: &Arc<Client>, messages: &[&Message<'_>]) {
        let asked: BTreeSet<String> = {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.is_empty() {
                return;
            }
            messages.iter().filter_map(|message| refused.take(&message.topic)).collect()
        };
        if asked.is_empty() {
            return;
        }
        let (client, timeout) = (Arc::clone(client), self.config.timeout);
        let ask = move || asked.iter().try_for_each(|topic| client.ask(Some(topic), timeout));
        // What it finds shows itself with the records.
        let _ = aside(ask).await;
    }

    /// Sends records, and waits for what is reported of them.
    async fn send(&self, messages: &[&Message<'_>]) -> Vec<Outcome> {
        let down = |error: String| vec![Outcome::Down(error); messages.len()];
        let client = match self.client().await {
            Ok(client) => client,
            Err(error) => return down(format!("{}: {error}", self.servers)),
        };
        if client.faults.is_lost() {
            // It would be kept until its time is over.
            if let Err(error) = self.ping().await {
                return down(error.into());
            }
            client.faults.recovered();
        }
        self.renew(&client, messages).await;
        let mut outcomes = self.send_by(&client, messages).await;
        if let Some(error) = client.spent() {
            for outcome in outcomes.iter_mut().filter(|outcome| **outcome != Outcome::Delivered) {
                *outcome = Outcome::Down(format!("{}: {error}", self.servers));
            }
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for (message, outcome) in messages.iter().zip(&outcomes) {
            if matches!(outcome, Outcome::Failed(code) | Outcome::Unsent(code) if is_of_a_topic(*code)) {
                refused.insert(message.topic.clone());
            }
        }
        outcomes
    }

    async fn send_by(&self, client: &Client, messages: &[&Message<'_>]) -> Vec<Outcome> {
        let call = Arc::new(Call::new(messages.len()));
        let mut unsent = BTreeSet::new();
        for (number, message) in messages.iter().enumerate() {
            if let Err(code) = client.send(message, number, &call) {
                unsent.insert(number);
                call.report(number, Err(code));
            }
        }
        let outcomes = |missing: Outcome| {
            let of = |(number, report): (usize, Option<Result<(), Code>>)| match report {
                Some(Err(code)) if unsent.contains(&number) => Outcome::Unsent(code),
                Some(report) => report.into(),
                None => missing.clone(),
            };
            call.reports().into_iter().enumerate().map(of).collect()
        };
        let mut watched = client.faults.watch();
        let (mut deadline, mut was_asked) = (Instant::now() + self.config.timeout, false);
        loop {
            match next(&call, &mut watched, deadline).await {
                Next::Complete | Next::Refused => break,
                Next::Overdue if was_asked => break,
                late @ (Next::Lost | Next::Overdue) => match self.ping().await {
                    // It connects again by itself, and goes on where it was.
                    Ok(()) => {
                        client.faults.recovered();
                        if matches!(late, Next::Overdue) {
                            (deadline, was_asked) = (Instant::now() + SETTLE + GRACE, true);
                        }
                    }
                    Err(error) => return outcomes(Outcome::Down(error.to_string())),
                },
            }
        }
        outcomes(Outcome::Failed(Code::MessageTimedOut))
    }

    /// Sends records together, and by themselves those of a batch that was refused: it may be another one of it that the brokers do not take.
    async fn deliver(&self, messages: &[Message<'_>]) -> Vec<Outcome> {
        let all: Vec<&Message<'_>> = messages.iter().collect();
        let together = self.turn.read().await;
        let mut outcomes = self.send(&all).await;
        drop(together);
        for (message, outcome) in messages.iter().zip(&mut outcomes) {
            if matches!(outcome, Outcome::Failed(code) if is_of_a_batch(*code)) {
                let _alone = self.turn.write().await;
                *outcome = self.send(&[message]).await.pop().unwrap_or(Outcome::Failed(Code::Fail));
            }
        }
        outcomes
    }
}

/// Runs what may block for long. Unlike a task that may, it is not waited for when the runtime ends.
fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (to, done) = oneshot::channel();
    // Without a thread it is dropped, and so is the sender.
    let _ = std::thread::Builder::new().name("kafka-ask".to_owned()).spawn(move || to.send(work()));
    done
}

/// All is reported, or the client has lost the brokers or is refused by them, or the time is over.
async fn next(call: &Call, watched: &mut watch::Receiver<Option<Fault>>, deadline: Instant) -> Next {
    let complete = pin!(call.completed());
    let hindered = pin!(async { watched.wait_for(Option::is_some).await.ok().and_then(|fault| *fault) });
    match tokio::time::timeout_at(deadline, select(complete, hindered)).await {
        Ok(Either::Left(_)) => Next::Complete,
        Ok(Either::Right((Some(Fault::Refused), _))) => Next::Refused,
        Ok(Either::Right(_)) => Next::Lost,
        Err(_) => Next::Overdue,
    }
}

#[async_trait]
impl Sink for Kafka {
    fn capabilities(&self) -> Capabilities {
        // Brokers drop what one producer sends twice by itself, not what it is given twice. And a record that fails does not stop the next one of its key.
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
        let outcomes = if messages.is_empty() { Vec::new() } else { self.deliver(&messages).await };
        // Whether it is the cluster that is at fault, asked once.
        let in_doubt =
            outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(code) if is_in_doubt(*code)));
        let down = if in_doubt { self.ping().await.err().map(String::from) } else { None };
        let is_fixed = self.config.topic.as_fixed().is_some();
        let mut answers = outcomes.into_iter().zip(&messages).map(|(outcome, message)| match outcome {
            Outcome::Delivered => Delivery::Delivered,
            Outcome::Failed(code) | Outcome::Unsent(code) => {
                classify(code, (&message.topic, is_fixed), down.as_deref())
            }
            Outcome::Down(error) => Delivery::down(error),
        });
        let missing = || Delivery::retry("the brokers did not say what became of it");
        rejected
            .into_iter()
            .map(|rejected| rejected.or_else(|| answers.next()).unwrap_or_else(missing))
            .collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        self.ping().await.map_err(|unusable| unusable.error("kafka"))
    }

    async fn close(&self) -> Result<(), SinkError> {
        let Some(client) = self.client.lock().await.take() else { return Ok(()) };
        // A call that has it still ends it later.
        if let Some(client) = Arc::into_inner(client) {
            let ended = spawn_blocking(move || client.end()).await;
            ended.map_err(|error| SinkError::new("kafka", error.to_string()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;
    use crate::secret::Secret;

    #[test]
    fn a_password_is_shown_nowhere() {
        let sasl = KafkaSasl {
            mechanism: KafkaMechanism::Plain,
            username: "user".to_owned(),
            password: Secret::Plain("s3cret".to_owned()),
        };
        let tls =
            KafkaTls { client_key_password: Some(Secret::Plain("s3cret".to_owned())), ..KafkaTls::default() };
        let mut config = KafkaConfig::new("localhost:1");
        config.security = KafkaSecurity { tls: Some(tls), sasl: Some(sasl) };
        config.properties.insert("ssl.keystore.password".to_owned(), "s3cret".to_owned());
        let sink = Kafka::new(config.clone()).unwrap();
        assert!(!format!("{sink:?} {config:?}").contains("s3cret"), "{sink:?}");
        config.properties.insert("ssl.key.pem".to_owned(), "s3cret".to_owned());
        let error = Kafka::new(config).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[tokio::test]
    async fn a_password_that_is_not_there_is_said() {
        let sasl = KafkaSasl {
            mechanism: KafkaMechanism::Plain,
            username: "user".to_owned(),
            password: Secret::Env("SENDOFF_NO_SUCH_VARIABLE".to_owned()),
        };
        let mut config = KafkaConfig::new("localhost:1");
        config.security.sasl = Some(sasl);
        let sink = Kafka::new(config).unwrap();
        let named = "localhost:1: `password`: the environment variable SENDOFF_NO_SUCH_VARIABLE is not set";
        assert!(sink.check().await.unwrap_err().to_string().contains(named));
        let delivery = sink.publish(&[claimed(1, None, b"x")]).await.remove(0);
        assert!(matches!(&delivery, Delivery::Down { error } if error == named), "{delivery:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_cluster_that_is_not_there_is_named_at_once() {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config =
            KafkaConfig { timeout: Duration::from_secs(20), ..KafkaConfig::new(address.to_string()) };
        let sink = Kafka::new(config).unwrap();
        let began = Instant::now();
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("refused"), "{error}");
        assert!(error.contains("is it running"), "{error}");
        for _ in 0..2 {
            let deliveries = sink.publish(&[claimed(1, None, b"x")]).await;
            assert!(
                matches!(&deliveries[0], Delivery::Down { error } if error.contains("refused")),
                "{deliveries:?}"
            );
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        sink.close().await.unwrap();
    }
}
