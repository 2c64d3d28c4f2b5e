//! A cluster in a process of its own, which can be held as a whole: the mock cluster of librdkafka, told by a socket what to do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr as Error};

/// Where a process that is to be a cluster listens for what to do.
const SOCKET: &str = "SENDOFF_TEST_KAFKA_CLUSTER";

/// One broker: so every connection there is goes to the one address that is known.
const BROKERS: i32 = 1;

/// This program again, as a cluster.
pub(crate) fn command(socket: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(SOCKET, socket);
    command
}

/// Is a cluster until its parent is gone, if that is what this process was started for.
pub(crate) fn run_if_asked() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let parent = std::os::unix::process::parent_id();
    std::thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(Duration::from_millis(500));
        }
        std::process::exit(0);
    });
    let cluster = MockCluster::new(BROKERS).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    for asked in listener.incoming() {
        let mut asked = BufReader::new(asked.unwrap());
        let mut line = String::new();
        asked.read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = obey(&cluster, &words);
        writeln!(asked.get_mut(), "{answer}").unwrap();
    }
}

fn obey<C: ClientContext>(cluster: &MockCluster<'_, C>, words: &[&str]) -> String {
    match words {
        ["address"] => return cluster.bootstrap_servers(),
        ["down"] => cluster.broker_down(-1).unwrap(),
        ["up"] => cluster.broker_up(-1).unwrap(),
        ["slow", millis] => {
            cluster.broker_round_trip_time(-1, Duration::from_millis(millis.parse().unwrap())).unwrap();
        }
        ["create", topic, partitions] => {
            cluster.create_topic(topic, partitions.parse().unwrap(), 1).unwrap();
        }
        ["refuse", topic, code] => cluster.topic_error(topic, error(code)).unwrap(),
        ["fail", codes @ ..] => {
            let codes: Vec<Error> = codes.iter().map(|code| error(code)).collect();
            cluster.request_errors(RDKafkaApiKey::Produce, &codes);
        }
        other => panic!("{other:?}"),
    }
    "done".to_owned()
}

fn error(code: &str) -> Error {
    match code {
        "none" => Error::RD_KAFKA_RESP_ERR_NO_ERROR,
        "unknown_topic" => Error::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        "not_allowed" => Error::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        "not_leader" => Error::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        "too_large" => Error::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        "invalid_record" => Error::RD_KAFKA_RESP_ERR_INVALID_RECORD,
        "out_of_order" => Error::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
        "unknown_producer" => Error::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
        "fenced" => Error::RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
        "old_epoch" => Error::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        other => panic!("{other}"),
    }
}

/// Tells a cluster what to do; none: it is not there yet.
pub(crate) fn tell(socket: &Path, order: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    writeln!(stream, "{order}").ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    Some(answer.trim_end().to_owned()).filter(|answer| !answer.is_empty())
}
