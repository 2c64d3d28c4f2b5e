//! Amazon SQS.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};

use super::answer::{Entry, Failure};
use super::connection::{Credentials, Settings};
use super::message::Message;
use super::publisher::{Publisher, Service, Target};
use crate::envelope::EnvelopeConfig;
use crate::secret::Secret;
use crate::template::Template;

/// Where an [`Sqs`] sink sends events, and how.
#[derive(Clone)]
pub struct SqsConfig {
    /// The URL of an event's queue, as AWS shows it: `https://sqs.eu-central-1.amazonaws.com/123456789012/orders`. Each queue must be there. One whose name ends in
    /// `.fifo` is a FIFO queue.
    pub queue_url: Template,
    /// Where requests go, for a local server or a VPC endpoint: `http://127.0.0.1:4566`. None: to AWS.
    pub endpoint_url: Option<String>,
    /// The region. None: the one in the queue's URL, or else that of the environment.
    pub region: Option<String>,
    /// The key id of a user. None: credentials are found as in any AWS program: in the environment, the profile, by web identity, of the container, of the instance.
    pub access_key_id: Option<String>,
    /// The secret that goes with the key id. It is read anew when AWS does not take it any more, and so is the token.
    pub secret_access_key: Option<Secret>,
    /// The token of temporary credentials.
    pub session_token: Option<Secret>,
    /// An event of more bytes is rejected, and no request has more in sum. A queue may take up to 1 MiB (its `MaximumMessageSize`).
    pub max_bytes: usize,
    /// A request that has not been answered by then has failed; the service is taken to be down if it does not answer when it is asked for the queue either. A request
    /// is repeated once within this time if its connection was lost or AWS is busy; the rest is the relay's.
    pub timeout: Duration,
    /// How events are wrapped. They are always structured here, whatever its `mode` says.
    pub envelope: EnvelopeConfig,
}

impl SqsConfig {
    /// This queue.
    pub fn new(queue_url: impl Into<String>) -> Self {
        Self {
            queue_url: Template::fixed(queue_url),
            endpoint_url: None,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            max_bytes: 262_144,
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }
}

impl fmt::Debug for SqsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the endpoint's URL, which may have a password in it.
        f.debug_struct("SqsConfig")
            .field("queue_url", &self.queue_url)
            .field("region", &self.region)
            .field("access_key_id", &self.access_key_id)
            .field("secret_access_key", &self.secret_access_key)
            .field("session_token", &self.session_token)
            .field("max_bytes", &self.max_bytes)
            .field("timeout", &self.timeout)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Sends each event to a queue, as one message.
///
/// **The body is a CloudEvent in JSON, with everything in it**: a body here is text, and a message has ten attributes at most. A payload that is JSON is its `data`, any
/// other its `data_base64`. The event's own headers are attributes of the CloudEvent if their names are of a-z and 0-9; all others are in `sendoffheaders`, a JSON object
/// as text. For consumers that look no further, the message attributes `ce-id`, `ce-type` and `traceparent` say the same again.
///
/// **A FIFO queue** drops a second delivery of the same event within five minutes: the event's id is the deduplication id. Its group is its key, and so a key's events are
/// received in their order; an event without a key is a group of its own. A group's name is up to 128 letters, digits and marks of ASCII: any other key is named by its
/// hash, `sha256:…`, and the key itself is in the body.
///
/// The user needs `sqs:SendMessage`. With `sqs:GetQueueAttributes` as well, a queue that is not there is found before anything is sent.
#[derive(Debug)]
pub struct Sqs {
    publisher: Publisher<Client>,
}

impl Sqs {
    /// A sink of this queue, which is connected to with the first event.
    ///
    /// # Errors
    /// A key id without its secret, or the other way round.
    pub fn new(config: SqsConfig) -> Result<Self, SinkError> {
        let credentials =
            Credentials::new(config.access_key_id, config.secret_access_key, config.session_token)
                .map_err(|error| SinkError::new(Client::NAME, error))?;
        let settings = Settings {
            endpoint_url: config.endpoint_url,
            region: config.region.or_else(|| config.queue_url.as_fixed().and_then(region)),
            credentials,
            timeout: config.timeout,
        };
        let target =
            Target { template: config.queue_url, max_bytes: config.max_bytes, envelope: config.envelope };
        Ok(Self { publisher: Publisher::new(settings, target) })
    }
}

#[async_trait]
impl Sink for Sqs {
    fn capabilities(&self) -> Capabilities {
        self.publisher.capabilities()
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        self.publisher.publish(events).await
    }

    async fn check(&self) -> Result<(), SinkError> {
        self.publisher.check().await
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.publisher.close().await;
        Ok(())
    }
}

/// `https://sqs.REGION.amazonaws.com/…`, or as it was before: `https://REGION.queue.amazonaws.com/…`.
fn region(queue_url: &str) -> Option<String> {
    let host = queue_url.split_once("://")?.1.split(['/', ':']).next()?;
    let mut labels = host.split('.');
    let region = match (labels.next()?, labels.next()?) {
        ("sqs", region) => region,
        (region, "queue") => region,
        _ => return None,
    };
    labels.next().map(|_| region.to_owned())
}

#[async_trait]
impl Service for Client {
    const NAME: &'static str = "sqs";
    const TARGET: &'static str = "queue";
    const MISSING: &'static str = "there is no such queue: create it, or correct its URL and region";
    const DENIED: &'static str = "allow `sqs:SendMessage` on the queue to the user";

    fn open(config: &aws_config::SdkConfig) -> Self {
        Self::new(config)
    }

    async fn send(&self, queue_url: &str, messages: &[&Message]) -> Result<Vec<Option<Entry>>, Failure> {
        let mut request = self.send_message_batch().queue_url(queue_url);
        for (index, message) in messages.iter().enumerate() {
            let mut entry = SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(&message.body)
                .set_message_group_id(message.group.clone())
                .set_message_deduplication_id(message.group.is_some().then(|| message.id.clone()));
            for (name, value) in &message.attributes {
                let value =
                    MessageAttributeValue::builder().data_type(super::message::TEXT).string_value(value);
                entry = entry.message_attributes(*name, value.build().map_err(Failure::of_request)?);
            }
            request = request.entries(entry.build().map_err(Failure::of_request)?);
        }
        let answer = request.send().await.map_err(|error| Failure::of(&error))?;
        let taken = answer.successful().iter().map(|entry| (entry.id(), Entry::Taken));
        let failed = answer
            .failed()
            .iter()
            .map(|entry| (entry.id(), Entry::failed(entry.code(), entry.message(), entry.sender_fault())));
        Ok(super::answer::in_order(messages.len(), taken.chain(failed)))
    }

    async fn look(&self, queue_url: Option<&str>) -> Result<(), Failure> {
        match queue_url {
            Some(queue_url) => {
                let request = self.get_queue_attributes().queue_url(queue_url);
                let asked = request.attribute_names(QueueAttributeName::QueueArn).send().await;
                asked.map(|_| ()).map_err(|error| Failure::of(&error))
            }
            None => {
                let asked = self.list_queues().max_results(1).send().await;
                asked.map(|_| ()).map_err(|error| Failure::of(&error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_in_the_url() {
        for (url, expected) in [
            ("https://sqs.eu-central-1.amazonaws.com/1/q", Some("eu-central-1")),
            ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", Some("cn-north-1")),
            ("https://us-west-2.queue.amazonaws.com/1/q", Some("us-west-2")),
            ("http://127.0.0.1:4566/1/q", None),
            ("http://localhost:4566/1/q", None),
            ("http://sqs.local/1/q", None),
            ("q", None),
        ] {
            assert_eq!(region(url).as_deref(), expected, "{url}");
        }
    }
}
