//! Amazon SNS.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sns::Client;
use aws_sdk_sns::types::{MessageAttributeValue, PublishBatchRequestEntry};
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};

use super::answer::{Entry, Failure};
use super::connection::{Credentials, Settings};
use super::message::Message;
use super::publisher::{Publisher, Service, Target};
use crate::envelope::EnvelopeConfig;
use crate::secret::Secret;
use crate::template::Template;

/// Where an [`Sns`] sink publishes events, and how.
#[derive(Clone)]
pub struct SnsConfig {
    /// The ARN of an event's topic: `arn:aws:sns:eu-central-1:123456789012:orders`. Each topic must be there. One whose name ends in `.fifo` is a FIFO topic.
    pub topic_arn: Template,
    /// Where requests go, for a local server or a VPC endpoint: `http://127.0.0.1:4566`. None: to AWS.
    pub endpoint_url: Option<String>,
    /// The region. None: the one in the topic's ARN, or else that of the environment.
    pub region: Option<String>,
    /// The key id of a user. None: credentials are found as in any AWS program: in the environment, the profile, by web identity, of the container, of the instance.
    pub access_key_id: Option<String>,
    /// The secret that goes with the key id. It is read anew when AWS does not take it any more, and so is the token.
    pub secret_access_key: Option<Secret>,
    /// The token of temporary credentials.
    pub session_token: Option<Secret>,
    /// An event of more bytes is rejected, and no request has more in sum.
    pub max_bytes: usize,
    /// A request that has not been answered by then has failed; the service is taken to be down if it does not answer when it is asked for the topic either. A request
    /// is repeated once within this time if its connection was lost or AWS is busy; the rest is the relay's.
    pub timeout: Duration,
    /// How events are wrapped. They are always structured here, whatever its `mode` says.
    pub envelope: EnvelopeConfig,
}

impl SnsConfig {
    /// This topic.
    pub fn new(topic_arn: impl Into<String>) -> Self {
        Self {
            topic_arn: Template::fixed(topic_arn),
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

impl fmt::Debug for SnsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the endpoint's URL, which may have a password in it.
        f.debug_struct("SnsConfig")
            .field("topic_arn", &self.topic_arn)
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

/// Publishes each event to a topic, as one message. What a message is made of, and what FIFO means for it, is the same as for `Sqs`.
///
/// A subscription may filter by the attributes `ce-id`, `ce-type` and `traceparent`, or by anything in the body (`FilterPolicyScope`: `MessageBody`).
///
/// The user needs `sns:Publish`. With `sns:GetTopicAttributes` as well, a topic that is not there is found before anything is sent.
#[derive(Debug)]
pub struct Sns {
    publisher: Publisher<Client>,
}

impl Sns {
    /// A sink of this topic, which is connected to with the first event.
    ///
    /// # Errors
    /// A key id without its secret, or the other way round.
    pub fn new(config: SnsConfig) -> Result<Self, SinkError> {
        let credentials =
            Credentials::new(config.access_key_id, config.secret_access_key, config.session_token)
                .map_err(|error| SinkError::new(Client::NAME, error))?;
        let settings = Settings {
            endpoint_url: config.endpoint_url,
            region: config.region.or_else(|| config.topic_arn.as_fixed().and_then(region)),
            credentials,
            timeout: config.timeout,
        };
        let target =
            Target { template: config.topic_arn, max_bytes: config.max_bytes, envelope: config.envelope };
        Ok(Self { publisher: Publisher::new(settings, target) })
    }
}

#[async_trait]
impl Sink for Sns {
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

/// `arn:aws:sns:REGION:…`
fn region(topic_arn: &str) -> Option<String> {
    let region = topic_arn.split(':').nth(3).filter(|region| !region.is_empty());
    region.filter(|_| topic_arn.starts_with("arn:")).map(str::to_owned)
}

#[async_trait]
impl Service for Client {
    const NAME: &'static str = "sns";
    const TARGET: &'static str = "topic";
    const MISSING: &'static str = "there is no such topic: create it, or correct its ARN and region";
    const DENIED: &'static str = "allow `sns:Publish` on the topic to the user";

    fn open(config: &aws_config::SdkConfig) -> Self {
        Self::new(config)
    }

    async fn send(&self, topic_arn: &str, messages: &[&Message]) -> Result<Vec<Option<Entry>>, Failure> {
        let mut request = self.publish_batch().topic_arn(topic_arn);
        for (index, message) in messages.iter().enumerate() {
            let mut entry = PublishBatchRequestEntry::builder()
                .id(index.to_string())
                .message(&message.body)
                .set_message_group_id(message.group.clone())
                .set_message_deduplication_id(message.group.is_some().then(|| message.id.clone()));
            for (name, value) in &message.attributes {
                let value =
                    MessageAttributeValue::builder().data_type(super::message::TEXT).string_value(value);
                entry = entry.message_attributes(*name, value.build().map_err(Failure::of_request)?);
            }
            request = request.publish_batch_request_entries(entry.build().map_err(Failure::of_request)?);
        }
        let answer = request.send().await.map_err(|error| Failure::of(&error))?;
        let taken = answer.successful().iter().filter_map(|entry| Some((entry.id()?, Entry::Taken)));
        let failed = answer
            .failed()
            .iter()
            .map(|entry| (entry.id(), Entry::failed(entry.code(), entry.message(), entry.sender_fault())));
        Ok(super::answer::in_order(messages.len(), taken.chain(failed)))
    }

    async fn look(&self, topic_arn: Option<&str>) -> Result<(), Failure> {
        match topic_arn {
            Some(topic_arn) => {
                let asked = self.get_topic_attributes().topic_arn(topic_arn).send().await;
                asked.map(|_| ()).map_err(|error| Failure::of(&error))
            }
            None => self.list_topics().send().await.map(|_| ()).map_err(|error| Failure::of(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_in_the_arn() {
        for (arn, expected) in [
            ("arn:aws:sns:eu-central-1:1:t", Some("eu-central-1")),
            ("arn:aws-cn:sns:cn-north-1:1:t", Some("cn-north-1")),
            ("arn:aws:sns::1:t", None),
            ("t", None),
        ] {
            assert_eq!(region(arn).as_deref(), expected, "{arn}");
        }
    }
}
