//! What AWS says when something is wrong, which no local server does, said by one that says nothing else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sendoff::outbox::Claimed;
use sendoff::{Delivery, Sink};

use super::answer::{Entry, Failure, Said};
use super::message::Message;
use super::publisher::{Target, requests};
use super::sdk::Client;
use crate::envelope::EnvelopeConfig;
use crate::json_line::tests::claimed;
use crate::secret::Secret;

/// Answers each request with what it is told to.
struct Server {
    port: u16,
    count: Arc<AtomicUsize>,
}

impl Server {
    fn start(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), count: Arc::default() };
        let count = Arc::clone(&server.count);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                // One that is closed before it says anything is no request.
                if let Some(request) = read(connection.as_ref().unwrap()) {
                    count.fetch_add(1, Ordering::SeqCst);
                    let (status, body) = answer(&request);
                    let length = body.len();
                    let text = format!(
                        "HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                    let _ = connection.unwrap().write_all(text.as_bytes());
                }
            }
        });
        server
    }

    fn count(&self) -> usize {
        self.count.swap(0, Ordering::SeqCst)
    }
}

/// The body of a request.
fn read(connection: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// A sink of each service at this port, with how that service writes down an error, and what became of messages.
fn sinks(port: u16, secret: &Secret) -> Vec<Dialect> {
    vec![
        #[cfg(feature = "sqs")]
        Dialect {
            sink: Arc::new(
                super::Sqs::new(super::SqsConfig {
                    endpoint_url: Some(format!("http://user:h1dden@127.0.0.1:{port}")),
                    access_key_id: Some("key".to_owned()),
                    secret_access_key: Some(secret.clone()),
                    timeout: Duration::from_secs(5),
                    ..super::SqsConfig::new("https://sqs.eu-central-1.amazonaws.com/1/orders")
                })
                .unwrap(),
            ),
            target: "https://sqs.eu-central-1.amazonaws.com/1/orders",
            error: |code| {
                format!(
                    r#"{{"__type":"com.amazonaws.sqs#{code}","message":"So it is.\nx-amz-security-token: t0ken"}}"#
                )
            },
            answer: |taken, failed| {
                let taken = taken
                    .iter()
                    .map(|id| format!(r#"{{"Id":"{id}","MessageId":"m","MD5OfMessageBody":"x"}}"#));
                let failed = failed.iter().map(|(id, code)| {
                    format!(
                        r#"{{"Id":"{id}","Code":"{code}","Message":"Why.","SenderFault":{}}}"#,
                        is_ours(code)
                    )
                });
                let (taken, failed) =
                    (taken.collect::<Vec<_>>().join(","), failed.collect::<Vec<_>>().join(","));
                format!(r#"{{"Successful":[{taken}],"Failed":[{failed}]}}"#)
            },
        },
        #[cfg(feature = "sns")]
        Dialect {
            sink: Arc::new(
                super::Sns::new(super::SnsConfig {
                    endpoint_url: Some(format!("http://user:h1dden@127.0.0.1:{port}")),
                    access_key_id: Some("key".to_owned()),
                    secret_access_key: Some(secret.clone()),
                    timeout: Duration::from_secs(5),
                    ..super::SnsConfig::new("arn:aws:sns:eu-central-1:1:orders")
                })
                .unwrap(),
            ),
            target: "arn:aws:sns:eu-central-1:1:orders",
            error: |code| {
                format!(
                    "<ErrorResponse><Error><Code>{code}</Code><Message>So it is.\nx-amz-security-token: t0ken</Message></Error></ErrorResponse>"
                )
            },
            answer: |taken, failed| {
                let member = |inside: String| format!("<member>{inside}</member>");
                let taken = taken.iter().map(|id| member(format!("<Id>{id}</Id><MessageId>m</MessageId>")));
                let failed = failed.iter().map(|(id, code)| {
                    let ours = is_ours(code);
                    member(format!(
                        "<Id>{id}</Id><Code>{code}</Code><Message>Why.</Message><SenderFault>{ours}</SenderFault>"
                    ))
                });
                let (taken, failed) = (taken.collect::<String>(), failed.collect::<String>());
                format!(
                    "<PublishBatchResponse><PublishBatchResult><Successful>{taken}</Successful><Failed>{failed}</Failed>\
                     </PublishBatchResult></PublishBatchResponse>"
                )
            },
        },
    ]
}

/// Those that were taken, and those that failed with their codes.
type Answer = fn(&[usize], &[(usize, &str)]) -> String;

struct Dialect {
    sink: Arc<dyn Sink>,
    target: &'static str,
    error: fn(&str) -> String,
    answer: Answer,
}

fn is_ours(code: &str) -> bool {
    code.starts_with("Invalid")
}

fn secret() -> Secret {
    Secret::Plain("s3cret".to_owned())
}

fn three() -> Vec<Claimed> {
    (0..3).map(|number| claimed(number, None, b"{}")).collect()
}

/// The same answer for every request, to each of the sinks.
async fn refused(status: u16, code: &'static str) -> Vec<(Delivery, String, String, usize)> {
    let mut found = Vec::new();
    for place in 0..sinks(1, &secret()).len() {
        let error = sinks(1, &secret())[place].error;
        let server = Server::start(move |_| (status, error(code)));
        let dialect = sinks(server.port, &secret()).remove(place);
        let delivery = dialect.sink.publish(&three()).await.remove(0);
        let count = server.count();
        let checked = dialect.sink.check().await.err().map(|error| error.to_string()).unwrap_or_default();
        let shown = format!("{delivery:?} {checked} {:?}", dialect.sink);
        for secret in ["s3cret", "h1dden", "t0ken"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        found.push((delivery, checked, dialect.target.to_owned(), count));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_are_said_and_not_shown() {
    for code in ["InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredTokenException"] {
        for (delivery, checked, _, _) in refused(403, code).await {
            for text in ["are key id and secret right", code.trim_end_matches("Exception")] {
                let is_down = matches!(&delivery, Delivery::Down { error } if error.contains(text));
                assert!(is_down && checked.contains(text), "{delivery:?} {checked}");
            }
        }
    }
}

/// Who may only write may not ask whether the queue is there: nothing is known to be wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_write_is_told_what_is_needed() {
    for (delivery, checked, target, _) in refused(403, "AccessDenied").await {
        let is_told = |error: &str| error.contains("allow `s") && error.contains(&target);
        assert!(matches!(&delivery, Delivery::Down { error } if is_told(error)), "{delivery:?}");
        assert_eq!(checked, "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_busy_is_asked_once_more_and_then_the_relay_is() {
    for (status, code) in
        [(503, "ServiceUnavailable"), (500, "InternalFailure"), (400, "ThrottlingException")]
    {
        for (delivery, _, _, count) in refused(status, code).await {
            assert!(
                matches!(&delivery, Delivery::Retry { error, .. } if error.contains(code)),
                "{delivery:?}"
            );
            assert_eq!(count, 2, "{code}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_event_harms_no_other() {
    for place in 0..sinks(1, &secret()).len() {
        let answer = sinks(1, &secret())[place].answer;
        let server = Server::start(move |_| {
            (200, answer(&[4, 0], &[(2, "InvalidParameterValue"), (1, "InternalError")]))
        });
        let sink = sinks(server.port, &secret()).remove(place).sink;
        let events: Vec<_> = (0..5).map(|number| claimed(number, None, b"{}")).collect();
        let deliveries = sink.publish(&events).await;
        assert_eq!((&deliveries[0], &deliveries[4]), (&Delivery::Delivered, &Delivery::Delivered));
        let is_retry = |index: usize, text: &str| matches!(&deliveries[index], Delivery::Retry { error, .. } if error.contains(text));
        assert!(is_retry(1, "InternalError: Why"), "{deliveries:?}");
        assert!(
            matches!(&deliveries[2], Delivery::Reject { error } if error.contains("Why")),
            "{deliveries:?}"
        );
        assert!(is_retry(3, "did not say"), "{deliveries:?}");
    }
}

/// A request as a whole is refused for one of its messages, whose name the service does not say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_refused_is_sent_message_by_message() {
    for place in 0..sinks(1, &secret()).len() {
        let Dialect { error, answer, .. } = sinks(1, &secret()).remove(place);
        let server = Server::start(move |request| match request.contains("evil") {
            true => (400, error("InvalidMessageContents")),
            false => (200, answer(&[0], &[])),
        });
        let sink = sinks(server.port, &secret()).remove(place).sink;
        let mut events = three();
        events[1].event.payload = br#""evil""#.to_vec();
        let deliveries = sink.publish(&events).await;
        assert_eq!((&deliveries[0], &deliveries[2]), (&Delivery::Delivered, &Delivery::Delivered));
        assert!(matches!(&deliveries[1], Delivery::Reject { .. }), "{deliveries:?}");
        assert_eq!(server.count(), 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_where_nobody_is_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for Dialect { sink, .. } in sinks(port, &secret()) {
        let began = Instant::now();
        let place = format!("http://127.0.0.1:{port}: ");
        let is_said = |error: &str| {
            error.contains(&place) && error.contains("is it running") && !error.contains("h1dden")
        };
        let deliveries = sink.publish(&three()).await;
        let is_down = |delivery: &Delivery| matches!(delivery, Delivery::Down { error } if is_said(error));
        assert!(deliveries.iter().all(is_down), "{deliveries:?}");
        let error = sink.check().await.unwrap_err().to_string();
        assert!(is_said(&error), "{error}");
        assert!(began.elapsed() < Duration::from_secs(5), "at once: {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_read_again_when_it_is_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    for place in 0..sinks(1, &secret()).len() {
        let Dialect { error, answer, .. } = sinks(1, &secret()).remove(place);
        let path = file.clone();
        let server =
            Server::start(move |_| match std::fs::read_to_string(&path).is_ok_and(|text| text == "new") {
                true => (200, answer(&[0, 1, 2], &[])),
                false => (403, error("InvalidClientTokenId")),
            });
        let sink = sinks(server.port, &Secret::File(file.clone())).remove(place).sink;
        let is_down = |delivery: &Delivery, text: &str| matches!(delivery, Delivery::Down { error } if error.contains(text));
        let deliveries = sink.publish(&three()).await;
        assert!(is_down(&deliveries[0], &named(&file)), "{deliveries:?}");
        std::fs::write(&file, "old").unwrap();
        assert!(is_down(&sink.publish(&three()).await[0], "InvalidClientTokenId"));
        std::fs::remove_file(&file).unwrap();
        let deliveries = sink.publish(&three()).await;
        assert!(is_down(&deliveries[0], &named(&file)), "it is not kept: {deliveries:?}");
        std::fs::write(&file, "new").unwrap();
        assert_eq!(sink.publish(&three()).await, vec![Delivery::Delivered; 3]);
        std::fs::remove_file(&file).unwrap();
    }
}

fn named(file: &Path) -> String {
    format!("the file {}", file.display())
}

#[test]
fn an_error_stops_the_sink_or_the_event() {
    let of = |code: &str, text: &str, status: u16, is_fixed: bool| match Said::new(code, Some(text), status)
        .delivery::<Client>(
        "orders", is_fixed,
    ) {
        Delivery::Down { .. } => "down",
        Delivery::Retry { .. } => "retry",
        Delivery::Reject { .. } => "reject",
        other => panic!("{other:?}"),
    };
    for (code, text, status, expected, of_one) in [
        ("AWS.SimpleQueueService.NonExistentQueue", "", 400, "down", "retry"),
        ("QueueDoesNotExist", "", 400, "down", "retry"),
        ("NotFound", "", 404, "down", "retry"),
        ("InvalidAddress", "", 404, "down", "retry"),
        ("InvalidParameter", "Invalid parameter: TopicArn", 400, "down", "retry"),
        ("AuthorizationError", "", 403, "down", "retry"),
        ("AccessDeniedException", "", 400, "down", "retry"),
        ("KMS.DisabledException", "", 400, "down", "retry"),
        ("KmsDisabled", "", 400, "down", "retry"),
        ("KMS.ThrottlingException", "", 400, "retry", "retry"),
        ("SomethingNew", "", 403, "down", "retry"),
        ("UnrecognizedClientException", "", 400, "down", "down"),
        ("ExpiredToken", "", 403, "down", "down"),
        ("InvalidSignatureException", "", 400, "down", "down"),
        ("RequestThrottled", "", 400, "retry", "retry"),
        ("KmsThrottled", "", 400, "retry", "retry"),
        ("RequestLimitExceeded", "", 400, "retry", "retry"),
        ("InternalError", "", 500, "retry", "retry"),
        ("SomethingNew", "", 502, "retry", "retry"),
        ("SomethingNew", "", 429, "retry", "retry"),
        ("SomethingNew", "", 400, "retry", "retry"),
        ("InvalidMessageContents", "", 400, "reject", "reject"),
        ("InvalidParameterValue", "Message must be shorter than 1 bytes", 400, "reject", "reject"),
        ("AWS.SimpleQueueService.BatchRequestTooLong", "", 400, "reject", "reject"),
    ] {
        assert_eq!(
            (of(code, text, status, true), of(code, text, status, false)),
            (expected, of_one),
            "{code}"
        );
    }
}

#[test]
fn an_entry_is_its_events_alone() {
    let of = |code: &str, is_ours: bool| {
        Entry::failed(code, Some("Why."), is_ours).delivery::<Client>("orders", true)
    };
    assert_eq!(Entry::Taken.delivery::<Client>("orders", true), Delivery::Delivered);
    assert!(matches!(of("SomethingNew", true), Delivery::Reject { .. }));
    assert!(matches!(of("SomethingNew", false), Delivery::Retry { .. }));
    assert!(matches!(of("ThrottlingException", true), Delivery::Retry { .. }));
    assert!(matches!(of("KmsAccessDenied", true), Delivery::Down { .. }));
}

#[test]
fn a_lost_connection_is_down_and_a_strange_answer_is_in_doubt() {
    let unreachable = Failure::Unreachable("no credentials in chain: the credential provider".to_owned());
    assert!(unreachable.text::<Client>("orders").contains("give `access_key_id`"));
    assert!(unreachable.is_final(false) && !unreachable.is_of_one());
    let silence = Failure::Silence("it does not answer".to_owned());
    assert!(silence.text::<Client>("orders").contains("is it running"));
    assert!(silence.is_final(false) && !silence.is_of_one());
}

#[test]
fn messages_are_put_together_as_they_fit() {
    let of = |name: &str, bytes: usize| {
        let target = Target {
            template: name.parse().unwrap(),
            max_bytes: usize::MAX,
            envelope: EnvelopeConfig::default(),
        };
        Message { size: bytes, ..Message::new(&target, &claimed(1, None, b"{}")).unwrap() }
    };
    let packed = |messages: &[Message]| requests(&messages.iter().collect::<Vec<_>>(), 100);
    let small: Vec<_> = (0..25).map(|_| of("a", 1)).collect();
    assert_eq!(packed(&small).iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(packed(&[of("a", 60), of("a", 40), of("a", 1), of("a", 100)]), [vec![0, 1], vec![2], vec![3]]);
    let mut two = packed(&[of("a", 1), of("b", 1), of("a", 1), of("b", 99), of("b", 1)]);
    two.sort();
    assert_eq!(two, [vec![0, 2], vec![1, 3], vec![4]]);
    assert!(packed(&[]).is_empty());
}
