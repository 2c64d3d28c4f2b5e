//! librdkafka: what is given to it, and what it tells.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::producer::{
    BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig, ThreadedProducer,
};
use tokio::sync::watch;

use super::answer::{explain, is_away, topic_advice};
use super::call::Call;
use super::message::Message;
use crate::unusable::Unusable;

/// How often a topic that is about to be made is asked for.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The name of the line that a client logs when the brokers do not know it as a producer, which it reports in no other way: it tries again with its next epoch until the time of
/// its records is over.
const UNKNOWN: &str = "UNKPID";

/// In that line: the brokers were given the first record of an epoch. Kafka takes that of anybody; who does not know a producer then never will.
const FROM_THE_START: &str = "base seq 0,";

/// Why it is given up, for people.
const REFUSED: &str =
    "the brokers do not know its producer any more, or take it for another one's: a new one is made";

/// What keeps a client from sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It has no connection to any broker.
    Lost,
    /// The brokers take nothing from it, and never will.
    Refused,
}

/// What a client tells, apart from single records.
pub(super) struct Faults {
    fault: watch::Sender<Option<Fault>>,
    /// Why the last connection failed.
    reason: Mutex<Option<Unusable>>,
}

impl Faults {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { fault: watch::Sender::new(None), reason: Mutex::default() })
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<Fault>> {
        self.fault.subscribe()
    }

    pub(super) fn is_lost(&self) -> bool {
        *self.fault.borrow() == Some(Fault::Lost)
    }

    fn is_refused(&self) -> bool {
        *self.fault.borrow() == Some(Fault::Refused)
    }

    /// The cluster answers again, as somebody else has found.
    pub(super) fn recovered(&self) {
        self.change(None);
    }

    /// There is no way back from being refused.
    fn change(&self, to: Option<Fault>) {
        self.fault.send_if_modified(|fault| {
            let is_changed = *fault != Some(Fault::Refused) && *fault != to;
            if is_changed {
                *fault = to;
            }
            is_changed
        });
    }

    /// Why it cannot connect, as far as it has said so.
    pub(super) fn reason(&self) -> Unusable {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.unwrap_or_else(Unusable::silent)
    }

    fn tell(&self, code: Code, reason: &str) {
        if code == Code::AllBrokersDown {
            self.change(Some(Fault::Lost));
        } else {
            let text = explain(code, reason);
            let reason = if is_away(code, reason) { Unusable::Away(text) } else { Unusable::Wrong(text) };
            *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        }
    }
}

/// Where it is to be reported what becomes of a record.
pub(super) struct Report {
    number: usize,
    to: Arc<Call>,
}

struct Context(Arc<Faults>);

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, name: &str, text: &str) {
        if name == UNKNOWN && text.contains(FROM_THE_START) {
            self.0.change(Some(Fault::Refused));
        }
    }

    fn stats_raw(&self, _: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.tell(error.rdkafka_error_code().unwrap_or(Code::Fail), reason);
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<Report>;

    fn delivery(&self, result: &DeliveryResult<'_>, report: Box<Report>) {
        let result = match result {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(Code::Fail)),
        };
        // It would go on with its next epoch, for which it would be refused as well.
        if result == Err(Code::ProducerFenced) {
            self.0.change(Some(Fault::Refused));
        }
        report.to.report(report.number, result);
    }
}

/// A client with its threads. Everything about it may block, but for what is said not to.
pub(super) struct Client {
    /// There until this ends.
    producer: Option<ThreadedProducer<Context>>,
    pub(super) faults: Arc<Faults>,
}

impl Client {
    /// # Errors
    /// What is wrong with the settings.
    pub(super) fn new(settings: &ClientConfig, faults: Arc<Faults>) -> Result<Self, String> {
        let made = ThreadedProducer::from_config_and_context(settings, Context(Arc::clone(&faults)));
        let producer = made.map_err(|error| match error {
            KafkaError::ClientCreation(detail) => {
                let hint = if detail.contains("ssl.") { "; can the files for TLS be read?" } else { "" };
                format!("no client can be made: {detail}{hint}")
            }
            // It may have a value in it that is a secret.
            _ => "no client can be made of its settings".to_owned(),
        })?;
        Ok(Self { producer: Some(producer), faults })
    }

    /// Takes a record, to be sent after those of its partition that it has. Does not block.
    pub(super) fn send(&self, message: &Message<'_>, number: usize, to: &Arc<Call>) -> Result<(), Code> {
        let producer = self.producer.as_ref().ok_or(Code::Fail)?;
        let report = Box::new(Report { number, to: Arc::clone(to) });
        let mut record = BaseRecord::with_opaque_to(&message.topic, report)
            .payload(message.payload.as_ref())
            .timestamp(message.written_at)
            .headers(message.headers());
        if let Some(key) = message.key {
            record = record.key(key);
        }
        producer.send(record).map_err(|(error, _)| error.rdkafka_error_code().unwrap_or(Code::Fail))
    }

    /// Asks the cluster for its topics, or for one of them.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(super) fn ask(&self, topic: Option<&str>, timeout: Duration) -> Result<(), Unusable> {
        let began = Instant::now();
        loop {
            let Err(code) = self.topic(topic, timeout.saturating_sub(began.elapsed()))? else {
                return Ok(());
            };
            // Brokers may make a topic that is asked for.
            let may_be_made = matches!(code, Code::UnknownTopic | Code::UnknownTopicOrPartition);
            if !may_be_made || began.elapsed() > timeout / 4 {
                return Err(topic_advice(code, topic.unwrap_or_default()).into());
            }
            std::thread::sleep(ASK_AGAIN);
        }
    }

    /// Whether the topic is there, as the cluster says.
    fn topic(&self, topic: Option<&str>, timeout: Duration) -> Result<Result<(), Code>, Unusable> {
        let Some(producer) = &self.producer else { return Ok(Ok(())) };
        let answered = producer.client().fetch_metadata(topic, timeout);
        let metadata = answered.map_err(|_| self.faults.reason())?;
        let error = topic.and_then(|name| {
            let found = metadata.topics().iter().find(|found| found.name() == name);
            found.map_or(Some(Code::UnknownTopic), |found| found.error().map(Code::from))
        });
        Ok(match error {
            // A topic that is being made, or whose brokers are about to agree: records wait for that.
            None | Some(Code::NoError | Code::LeaderNotAvailable) => Ok(()),
            Some(code) => Err(code),
        })
    }

    /// Why it will never send anything again, if so. Does not block.
    pub(super) fn spent(&self) -> Option<String> {
        if self.faults.is_refused() {
            return Some(REFUSED.to_owned());
        }
        let (code, reason) = self.producer.as_ref()?.client().fatal_error()?;
        Some(explain(code, &reason))
    }

    /// Gives up everything that it has: whoever waits for it is told so, and nothing of it comes later than what the next client is given.
    pub(super) fn give_up(&self) {
        if let Some(producer) = &self.producer {
            producer.purge(PurgeConfig::default().queue().inflight());
        }
    }

    /// Ends it, with everything that it has not sent.
    pub(super) fn end(mut self) {
        drop(self.producer.take());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Its threads are waited for, which must not happen on one that has tasks to run.
        if let Some(producer) = self.producer.take() {
            let _ = std::thread::Builder::new().name("kafka-end".to_owned()).spawn(move || drop(producer));
        }
    }
}
