//! HTTP, to a webhook: each event a POST, many at a time, or many events in one.

mod answer;
mod client;
mod credentials;
mod endpoint;
mod guard;
mod request;
mod signature;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::{Client, Method, StatusCode};
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};

use self::answer::{Answer, CREDENTIALS, Said, unanswered, unusable};
use self::client::Clients;
use self::credentials::Credentials;
use self::endpoint::Endpoint;
use self::request::{Request, item};
pub use self::signature::SigningSecret;
use crate::envelope::EnvelopeConfig;
use crate::secret::Secret;
use crate::tls::Files;
use crate::unusable::Unusable;

/// How long a receiver may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// So many times in a call each of the requests at a time is followed by another: a call of a slow receiver has an end.
const ROUNDS: usize = 4;

/// Where an [`Http`] sink posts events, and how.
#[derive(Clone)]
pub struct HttpConfig {
    /// Where to: `https://host/hooks/{topic}`. The path may have holes, as in a [`Template`](crate::Template); what fills them is percent-encoded. User and password in it are sent as `Authorization`.
    pub url: String,
    /// Headers of every request. They are shown nowhere.
    pub headers: Vec<(String, String)>,
    /// The header `Authorization`, the whole of it: `Bearer …`; read anew for each call.
    pub authorization: Option<Secret>,
    /// Each request is signed with all of these, as [Standard Webhooks](https://www.standardwebhooks.com) has it: `webhook-id`, `webhook-timestamp` and `webhook-signature`. Empty: none is.
    pub secrets: Vec<SigningSecret>,
    /// All events of a call go in one POST, `application/cloudevents-batch+json`: the receiver takes all or none. One that is refused is sent again event by
    /// event, so that only the culprit is rejected.
    pub batch: bool,
    /// So many requests of one call at a time.
    pub concurrency: usize,
    /// For how long the receiver remembers an event id and drops what has one that it knows: the `Idempotency-Key`, or the `id` of an event in a batch. None: it does not.
    pub dedupe: Option<Duration>,
    /// A receiver that has not answered by then is taken to be down, if it does not answer OPTIONS either.
    pub timeout: Duration,
    /// Asked with OPTIONS whether the receiver is there, instead of the URL: for a receiver that answers 401 or 403 to it there. Any other answer will do.
    pub check_url: Option<String>,
    /// Certificates of the authorities to trust, as PEM, and nobody else. None: those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// A certificate that the receiver knows this client by, as PEM, with those that it was signed by. This and its key are read once, at the start.
    pub client_cert_file: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub client_key_file: Option<PathBuf>,
    /// Requests go through this proxy, `http://user:password@host:3128`; none: straight, whatever the environment says. A proxy looks names up by itself, and so has to
    /// guard private addresses by itself.
    pub proxy: Option<String>,
    /// Whether the receiver may be at an address that is not public: loopback, private, link-local and the like. Only for a URL that is the operator's own: one that somebody
    /// else may choose could lead into the network here.
    pub allow_private: bool,
    /// How events are wrapped. Those of a batch are structured, whatever it says.
    pub envelope: EnvelopeConfig,
}

impl HttpConfig {
    /// A POST for each event to this URL, which must lead to a public address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            authorization: None,
            secrets: Vec::new(),
            batch: false,
            concurrency: 16,
            dedupe: None,
            timeout: Duration::from_secs(5),
            check_url: None,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            proxy: None,
            allow_private: false,
            envelope: EnvelopeConfig::default(),
        }
    }

    fn tls_files(&self) -> Files<'_> {
        Files::new(&self.ca_file, &self.client_cert_file, &self.client_key_file)
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without URLs and headers, which may have secrets in them.
        f.debug_struct("HttpConfig")
            .field("authorization", &self.authorization)
            .field("secrets", &self.secrets)
            .field("batch", &self.batch)
            .field("concurrency", &self.concurrency)
            .field("dedupe", &self.dedupe)
            .field("timeout", &self.timeout)
            .field("ca_file", &self.ca_file)
            .field("client_cert_file", &self.client_cert_file)
            .field("client_key_file", &self.client_key_file)
            .field("allow_private", &self.allow_private)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Posts events to a webhook. A request has the CloudEvents attributes as `ce-*`, the event's own headers, and the event id as `Idempotency-Key`.
///
/// An event is delivered when the receiver has answered with a status of 200 to 299. Redirects are not followed.
pub struct Http {
    config: HttpConfig,
    endpoint: Endpoint,
    /// Asked whether the receiver is there.
    check: Endpoint,
    /// Host and port, for people.
    server: String,
    clients: Clients,
    /// With the connections that are kept.
    client: Mutex<Client>,
    /// With a new connection for every request: an old one says nothing of whether the receiver is there now.
    pinger: Client,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("server", &self.server)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Http {
    /// A sink of this webhook, which is connected to with the first event.
    ///
    /// # Errors
    /// A configuration that cannot work: a URL that is none or has an address that is not allowed, a header that is none, certificates that cannot be read.
    pub fn new(config: HttpConfig) -> Result<Self, SinkError> {
        Self::build(config).map_err(|error| SinkError::new("http", error))
    }

    fn build(config: HttpConfig) -> Result<Self, String> {
        let endpoint = Endpoint::parse(&config.url)?;
        if config.batch && !endpoint.is_fixed() {
            return Err("a batch goes to one URL: leave the braces out of it".to_owned());
        }
        if config.concurrency == 0 {
            return Err("`concurrency` is 1 at least".to_owned());
        }
        let check = match &config.check_url {
            Some(url) => Endpoint::parse(url).map_err(|error| format!("`check_url`: {error}"))?,
            None => endpoint.clone(),
        };
        Credentials::check(&config, &endpoint)?;
        let clients = Clients::new(&config, &[&endpoint, &check])?;
        let client = Mutex::new(clients.client(config.timeout, true)?);
        let pinger = clients.client(PING_TIMEOUT, false)?;
        let server = endpoint.server();
        Ok(Self { config, endpoint, check, server, clients, client, pinger })
    }

    /// As they are now.
    fn credentials(&self) -> Result<Credentials, String> {
        Credentials::read(&self.config, &self.endpoint).map_err(|error| format!("{}: {error}", self.server))
    }

    /// Lets go of connections that cannot be trusted any more.
    fn disconnect(&self) {
        // It was made once of the same, and so is made again.
        if let Ok(client) = self.clients.client(self.config.timeout, true) {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        }
    }

    /// Whether the receiver answers, whatever it says.
    async fn ping(&self, credentials: &Credentials) -> Result<StatusCode, Unusable> {
        let request = self.pinger.request(Method::OPTIONS, self.check.base().clone());
        let answered = request.headers(credentials.headers.clone()).send().await;
        answered.map(|response| response.status()).map_err(|error| unusable(&self.check.server(), &error))
    }

    async fn send(&self, request: Request, credentials: &Credentials) -> Answer {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = client.post(request.url).headers(request.headers).body(request.body).send();
        match sent.await {
            Ok(response) => {
                let said = Said::read(response, &credentials.secrets).await;
                Answer::Clear(said.delivery(&self.server, self.endpoint.is_fixed()))
            }
            Err(error) => unanswered(&self.server, &error),
        }
    }

    /// Sends requests, so many at a time. None begins once the receiver is down or the time for one is over: a call has an end, and what was not begun has no answer.
    async fn send_all(&self, requests: Vec<Request>, credentials: &Credentials) -> Vec<Option<Answer>> {
        let began = Instant::now();
        let down: Mutex<Option<Answer>> = Mutex::new(None);
        let mut answers = vec![None; requests.len()];
        let sending: Vec<_> = requests
            .into_iter()
            .enumerate()
            .map(|(index, request)| {
                let down = &down;
                async move {
                    if let Some(down) = &*down.lock().unwrap_or_else(PoisonError::into_inner) {
                        return (index, Some(down.clone()));
                    }
                    if began.elapsed() > self.config.timeout {
                        return (index, None);
                    }
                    let answer = self.send(request, credentials).await;
                    if matches!(answer, Answer::Clear(Delivery::Down { .. })) {
                        *down.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.clone());
                    }
                    (index, Some(answer))
                }
            })
            .collect();
        let mut sending = stream::iter(sending).buffer_unordered(self.config.concurrency);
        while let Some((index, answer)) = sending.next().await {
            answers[index] = answer;
        }
        answers
    }

    /// The request of each group of events. What can never be sent is rejected here, and is in none.
    fn requests(&self, call: &mut Call<'_>, groups: Vec<Vec<usize>>) -> (Vec<Vec<usize>>, Vec<Request>) {
        let (mut sent, mut requests) = (Vec::new(), Vec::new());
        for mut group in groups {
            let request = if self.config.batch {
                let items = call.items(&self.config, &mut group);
                Request::batch(&self.endpoint, call.credentials, &items)
            } else {
                let Some(index) = group.first() else { continue };
                Request::single(&self.config, &self.endpoint, call.credentials, &call.events[*index])
            };
            match request {
                _ if group.is_empty() => {}
                Ok(request) => {
                    sent.push(group);
                    requests.push(request);
                }
                Err(reason) => call.settle(&group, &Delivery::reject(reason)),
            }
        }
        (sent, requests)
    }

    /// Sends the groups, and returns those that are worth another try at once.
    async fn attempt(&self, call: &mut Call<'_>, groups: Vec<Vec<usize>>, is_last: bool) -> Vec<Vec<usize>> {
        let (groups, requests) = self.requests(call, groups);
        let answers = self.send_all(requests, call.credentials).await;
        // Whether it is the receiver that is at fault, asked once.
        let is_unclear = |answer: &Option<Answer>| matches!(answer, Some(Answer::TimedOut | Answer::Lost(_)));
        let mut down = None;
        if answers.iter().any(is_unclear) {
            self.disconnect();
            down = self.ping(call.credentials).await.err().map(String::from);
        }
        let mut again = Vec::new();
        for (group, answer) in groups.into_iter().zip(answers) {
            let delivery = match (answer, &down) {
                (None | Some(Answer::TimedOut | Answer::Lost(_)), Some(down)) => Delivery::down(down),
                (None, None) => Delivery::Untried,
                (Some(Answer::TimedOut), None) => {
                    Delivery::retry(format!("{} did not answer in time", self.server))
                }
                // A connection that the receiver was about to close, or an event that it cannot bear: the next try tells.
                (Some(Answer::Lost(_)), None) if !is_last => {
                    again.push(group);
                    continue;
                }
                (Some(Answer::Lost(error)), None) => Delivery::retry(error),
                (Some(Answer::Clear(Delivery::Reject { .. })), _) if group.len() > 1 => {
                    again.extend(group.into_iter().map(|index| vec![index]));
                    continue;
                }
                (Some(Answer::Clear(delivery)), _) => delivery,
            };
            call.settle(&group, &delivery);
        }
        again
    }
}

/// The events of a call, and what has become of them.
struct Call<'e> {
    events: &'e [Claimed],
    credentials: &'e Credentials,
    deliveries: Vec<Option<Delivery>>,
}

impl Call<'_> {
    /// The events of a group as they stand in a batch; one that cannot be in it is rejected, and leaves the group.
    fn items(&mut self, config: &HttpConfig, group: &mut Vec<usize>) -> Vec<(String, Vec<u8>)> {
        let mut items = Vec::with_capacity(group.len());
        group.retain(|index| match item(config, &self.events[*index]) {
            Ok(item) => {
                items.push(item);
                true
            }
            Err(reason) => {
                self.deliveries[*index] = Some(Delivery::reject(reason));
                false
            }
        });
        items
    }

    fn settle(&mut self, group: &[usize], delivery: &Delivery) {
        for index in group {
            self.deliveries[*index] = Some(delivery.clone());
        }
    }
}

#[async_trait]
impl Sink for Http {
    fn capabilities(&self) -> Capabilities {
        let usual = Capabilities::default();
        let events = if self.config.batch {
            usual.events
        } else {
            self.config.concurrency.saturating_mul(ROUNDS).min(usual.events)
        };
        Capabilities { events, dedupes_for: self.config.dedupe, ..usual }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let credentials = match self.credentials() {
            Ok(credentials) => credentials,
            Err(error) => return vec![Delivery::down(error); events.len()],
        };
        let mut call = Call { events, credentials: &credentials, deliveries: vec![None; events.len()] };
        let each = 0..events.len();
        let mut groups =
            if self.config.batch { vec![each.collect()] } else { each.map(|index| vec![index]).collect() };
        for is_last in [false, true] {
            groups = self.attempt(&mut call, groups, is_last).await;
            if groups.is_empty() {
                break;
            }
        }
        call.deliveries.into_iter().map(|delivery| delivery.unwrap_or(Delivery::Untried)).collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        let wrong = |error| SinkError::new("http", error);
        match self.ping(&self.credentials().map_err(wrong)?).await {
            Ok(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => Err(wrong(format!(
                "{} answered {status} to OPTIONS; {CREDENTIALS} If it answers so to everybody, set `check_url`",
                self.check.server()
            ))),
            Ok(_) => Ok(()),
            Err(unusable) => Err(unusable.error("http")),
        }
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.disconnect();
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    #[test]
    fn a_secret_is_shown_nowhere() {
        let config = HttpConfig {
            headers: vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())],
            secrets: vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap()],
            check_url: Some("https://h/s3cret".to_owned()),
            proxy: Some("http://user:s3cret@proxy:3128".to_owned()),
            ..HttpConfig::new("https://user:s3cret@hooks.example/s3cret?s3cret")
        };
        let sink = Http::new(config).unwrap();
        let shown = format!("{sink:?} {:?}", sink.config);
        assert!(!shown.contains("s3cret") && !shown.contains("MfKQ"), "{shown}");
        assert!(shown.contains("hooks.example:443"), "{shown}");
    }

    #[tokio::test]
    async fn a_credential_that_is_not_there_is_said() {
        let authorization = Some(Secret::File("/nowhere/token".into()));
        let sink =
            Http::new(HttpConfig { authorization, ..HttpConfig::new("https://hooks.example/") }).unwrap();
        let named = "hooks.example:443: `authorization`: the file /nowhere/token cannot be read";
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        let delivery = sink.publish(&[claimed(1, None, b"x")]).await.remove(0);
        assert!(matches!(&delivery, Delivery::Down { error } if error.contains(named)), "{delivery:?}");
    }

    #[test]
    fn what_cannot_work_is_refused_at_the_start_and_not_shown() {
        let config = || HttpConfig::new("https://hooks.example/");
        let header = |name: &str| vec![(name.to_owned(), "s3cret\n".to_owned())];
        for (config, error) in [
            (HttpConfig::new("s3cret"), "its URL cannot be read"),
            (HttpConfig::new("http://u:s3cret@10.0.0.1/"), "10.0.0.1:80: it is at 10.0.0.1"),
            (
                HttpConfig { check_url: Some("http://[::1]/s3cret".into()), ..config() },
                "[::1]:80: it is at ::1",
            ),
            (
                HttpConfig { check_url: Some("s3cret".into()), ..config() },
                "`check_url`: its URL cannot be read",
            ),
            (HttpConfig { batch: true, ..HttpConfig::new("https://h/{topic}") }, "a batch goes to one URL"),
            (HttpConfig { concurrency: 0, ..config() }, "`concurrency` is 1 at least"),
            (HttpConfig { headers: header("x"), ..config() }, "the header `x` has line breaks"),
            (
                HttpConfig { proxy: Some("http://s3cret@".into()), ..config() },
                "its proxy's URL cannot be read",
            ),
            (HttpConfig { ca_file: Some("/nowhere/ca.pem".into()), ..config() }, "`ca_file` /nowhere/ca.pem"),
        ] {
            let got = Http::new(config).unwrap_err().to_string();
            assert!(got.starts_with(&format!("http: {error}")) && !got.contains("s3cret"), "{got}");
        }
    }

    #[test]
    fn a_receiver_dedupes_only_if_it_is_said_to() {
        let window = Duration::from_secs(60);
        for dedupe in [None, Some(window)] {
            let sink = Http::new(HttpConfig { dedupe, ..HttpConfig::new("http://h/") }).unwrap();
            assert_eq!((sink.capabilities().dedupes_for, sink.capabilities().events), (dedupe, 64));
        }
        let sink = Http::new(HttpConfig { batch: true, ..HttpConfig::new("http://h/") }).unwrap();
        assert_eq!(sink.capabilities().events, 500);
    }
}
