//! What SQS and SNS have in common: events in requests of ten, several on their way.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use futures_util::stream::{self, StreamExt as _};
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, SinkError};

use super::answer::{Entry, Failure};
use super::connection::{Connection, Settings};
use super::message::{Message, is_fifo};
use crate::envelope::EnvelopeConfig;
use crate::template::Template;
use crate::unusable::Unusable;

/// A request has so many messages at most, says AWS.
const MESSAGES_MAX: usize = 10;

/// So many requests of a call are on their way at a time.
const REQUESTS_MAX: usize = 10;

/// How long a FIFO queue or topic remembers what it was sent.
const FIFO_WINDOW: Duration = Duration::from_secs(5 * 60);

/// How long a service that did not answer may take to say that it is there.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// A client of one of the services.
#[async_trait]
pub(super) trait Service: Clone + Send + Sync + 'static {
    /// Of the sink.
    const NAME: &'static str;
    /// What it sends to.
    const TARGET: &'static str;
    /// What to do about a target that is not there.
    const MISSING: &'static str;
    /// What to do about a target that may not be written to.
    const DENIED: &'static str;

    fn open(config: &SdkConfig) -> Self;

    /// Sends messages in one request; an answer for each that has one.
    async fn send(&self, target: &str, messages: &[&Message]) -> Result<Vec<Option<Entry>>, Failure>;

    /// Whether the target is there; without a target, whether the service is.
    async fn look(&self, target: Option<&str>) -> Result<(), Failure>;
}

/// Where events go, and as what.
#[derive(Debug)]
pub(super) struct Target {
    /// The queue's URL, or the topic's ARN.
    pub(super) template: Template,
    pub(super) max_bytes: usize,
    pub(super) envelope: EnvelopeConfig,
}

/// Sends events to one of the services.
pub(super) struct Publisher<S> {
    connection: Connection<S>,
    target: Target,
}

impl<S> fmt::Debug for Publisher<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("target", &self.target)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

/// What became of a message: its answer, or why its request failed, or nothing since it was not sent any more.
type Outcome = Option<Result<Delivery, Failure>>;

impl<S: Service> Publisher<S> {
    pub(super) fn new(settings: Settings, target: Target) -> Self {
        Self { connection: Connection::new(settings), target }
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        let is_fifo = self.target.template.as_fixed().is_some_and(is_fifo);
        Capabilities {
            events: MESSAGES_MAX * REQUESTS_MAX,
            bytes: self.target.max_bytes.saturating_mul(REQUESTS_MAX),
            // Of two messages of one group in a request the first may be refused and the second taken.
            keeps_order: false,
            dedupes_for: is_fifo.then_some(FIFO_WINDOW),
        }
    }

    pub(super) async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let messages: Vec<Result<Message, String>> =
            events.iter().map(|event| Message::new(&self.target, event)).collect();
        let good: Vec<&Message> = messages.iter().filter_map(|message| message.as_ref().ok()).collect();
        let outcomes = if good.is_empty() { Vec::new() } else { self.send(&good).await };
        let mut deliveries = self.settle(&good, outcomes).await.into_iter();
        messages
            .iter()
            .map(|message| match message {
                Ok(_) => deliveries.next().unwrap_or_else(unanswered),
                Err(reason) => Delivery::reject(reason),
            })
            .collect()
    }

    /// Sends messages in as few requests as they fit in.
    async fn send(&self, messages: &[&Message]) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = vec![None; messages.len()];
        let client = match self.connection.client().await {
            Ok(client) => client,
            Err(error) => {
                outcomes.fill(Some(Ok(Delivery::down(self.named(&error)))));
                return outcomes;
            }
        };
        let (client, is_over) = (&client, &AtomicBool::new(false));
        let requests = requests(messages, self.target.max_bytes);
        let mut answers = stream::iter(requests)
            .map(|places| async move {
                let batch: Vec<&Message> = places.iter().map(|place| messages[*place]).collect();
                (places, self.request(client, &batch, is_over).await)
            })
            .buffer_unordered(REQUESTS_MAX);
        while let Some((places, answer)) = answers.next().await {
            for (place, outcome) in places.into_iter().zip(answer) {
                outcomes[place] = outcome;
            }
        }
        outcomes
    }

    /// Sends one request, and its messages one by one if it may have been refused for one of them. `is_over`: there is no use in any more.
    async fn request(&self, client: &S, batch: &[&Message], is_over: &AtomicBool) -> Vec<Outcome> {
        let is_fixed = self.target.template.as_fixed().is_some();
        let once = async |batch: &[&Message]| -> Vec<Outcome> {
            if is_over.load(Ordering::Relaxed) {
                return vec![None; batch.len()];
            }
            let target = batch.first().map_or("", |message| message.target.as_str());
            match client.send(target, batch).await {
                Ok(entries) => entries
                    .into_iter()
                    .map(|entry| entry.map(|entry| Ok(entry.delivery::<S>(target, is_fixed))))
                    .map(|outcome| outcome.or_else(|| Some(Ok(unanswered()))))
                    .collect(),
                Err(failure) => {
                    is_over.fetch_or(failure.is_final(is_fixed), Ordering::Relaxed);
                    vec![Some(Err(failure)); batch.len()]
                }
            }
        };
        let outcomes = once(batch).await;
        let is_of_one = matches!(outcomes.first(), Some(Some(Err(failure))) if failure.is_of_one());
        if batch.len() < 2 || !is_of_one {
            return outcomes;
        }
        let mut outcomes = Vec::with_capacity(batch.len());
        for message in batch {
            outcomes.extend(once(&[message]).await);
        }
        outcomes
    }

    /// An answer for each message.
    async fn settle(&self, messages: &[&Message], outcomes: Vec<Outcome>) -> Vec<Delivery> {
        let is_fixed = self.target.template.as_fixed().is_some();
        let is_of_credentials =
            |outcome: &Outcome| matches!(outcome, Some(Err(failure)) if failure.is_of_credentials());
        if outcomes.iter().any(is_of_credentials) {
            self.connection.forget().await;
        }
        let is_silent = |outcome: &Outcome| matches!(outcome, Some(Err(Failure::Silence(_))));
        let mut silence = None;
        if outcomes.iter().any(is_silent) {
            // They may be of no use any more, without anybody saying so.
            self.connection.disconnect().await;
            // Whether it is the service that is at fault, asked once.
            silence = self.look(LOOK_TIMEOUT).await.err().map(String::from);
        }
        let deliveries: Vec<Option<Delivery>> = messages
            .iter()
            .zip(outcomes)
            .map(|(message, outcome)| {
                Some(match outcome? {
                    Ok(delivery) => delivery,
                    Err(Failure::Refused(said)) => said.delivery::<S>(&message.target, is_fixed),
                    Err(failure @ Failure::Unreachable(_)) => {
                        Delivery::down(self.named(&failure.text::<S>(&message.target)))
                    }
                    Err(Failure::Silence(error)) => match &silence {
                        Some(down) => Delivery::down(self.named(down)),
                        None => Delivery::retry(self.named(&error)),
                    },
                })
            })
            .collect();
        let down = deliveries.iter().flatten().find(|delivery| matches!(delivery, Delivery::Down { .. }));
        let rest = down.cloned().unwrap_or(Delivery::Untried);
        deliveries.into_iter().map(|delivery| delivery.unwrap_or_else(|| rest.clone())).collect()
    }

    /// Whether the service answers, and has the target if it is the same for all. Who may only write may not ask, and has been answered all the same.
    async fn look(&self, limit: Duration) -> Result<(), Unusable> {
        let target = self.target.template.as_fixed();
        let asked = async {
            let client = self.connection.client().await?;
            match client.look(target).await {
                Err(Failure::Refused(said)) if said.is_denied() => Ok(()),
                Err(failure) => {
                    if failure.is_of_credentials() {
                        self.connection.forget().await;
                    }
                    Err(failure.unusable::<S>(target.unwrap_or("any")))
                }
                Ok(()) => Ok(()),
            }
        };
        tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(Unusable::silent()))
    }

    pub(super) async fn check(&self) -> Result<(), SinkError> {
        // It may be the first to need credentials, and those take a while.
        match self.look(self.connection.settings().timeout).await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.connection.disconnect().await;
                Err(match error {
                    Unusable::Away(text) => SinkError::away(S::NAME, self.named(&text)),
                    Unusable::Wrong(text) => SinkError::new(S::NAME, self.named(&text)),
                })
            }
        }
    }

    pub(super) async fn close(&self) {
        self.connection.disconnect().await;
    }

    /// With the place that it is about.
    fn named(&self, error: &str) -> String {
        format!("{}: {error}", self.connection.settings().place())
    }
}

fn unanswered() -> Delivery {
    Delivery::retry("the service did not say what became of it")
}

/// The places of messages by request: ten at most, of one target, and not too many bytes.
pub(super) fn requests(messages: &[&Message], max_bytes: usize) -> Vec<Vec<usize>> {
    let mut done = Vec::new();
    let mut open: BTreeMap<&str, (Vec<usize>, usize)> = BTreeMap::new();
    for (place, message) in messages.iter().enumerate() {
        let (places, bytes) = open.entry(&message.target).or_default();
        if places.len() == MESSAGES_MAX || *bytes + message.size > max_bytes && !places.is_empty() {
            done.push(std::mem::take(places));
            *bytes = 0;
        }
        places.push(place);
        *bytes += message.size;
    }
    done.extend(open.into_values().map(|(places, _)| places));
    done
}
