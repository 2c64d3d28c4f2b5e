//! A NATS server of our own, and a reader of its streams that speaks the protocol as it is written down, without any client's code.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// It does not outlive its test.
pub(crate) struct Nats {
    pub(crate) port: u16,
    program: String,
    directory: TempDir,
    server: Option<Child>,
}

/// A message of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) subject: String,
    pub(crate) payload: Value,
}

impl Nats {
    /// Runs on a port that nobody has.
    pub(crate) fn start(program: String) -> Self {
        loop {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let directory = tempfile::tempdir().unwrap();
            let mut nats = Self { port, program: program.clone(), directory, server: None };
            if nats.restart() {
                return nats;
            }
        }
    }

    /// False: it has ended, since somebody else was faster to take its port.
    pub(crate) fn restart(&mut self) -> bool {
        let mut command = Command::new(&self.program);
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        command.arg(self.directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = self.server.insert(command.spawn().expect("the NATS server is installed"));
        let began = Instant::now();
        while Reader::connect(self.port).is_none() {
            if server.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "the NATS server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            server.wait().unwrap();
        }
    }

    /// All that a stream holds, in its order.
    pub(crate) fn messages(&self, stream: &str) -> Vec<Message> {
        let mut reader = Reader::connect(self.port).expect("it runs");
        let info = reader.ask(&format!("$JS.API.STREAM.INFO.{stream}"), &json!({}));
        let last = info["state"]["last_seq"].as_u64().unwrap_or_default();
        let get = format!("$JS.API.STREAM.MSG.GET.{stream}");
        (1..=last).map(|number| message(&reader.ask(&get, &json!({ "seq": number })))).collect()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

fn message(answer: &Value) -> Message {
    let message = &answer["message"];
    let bytes = |name: &str| STANDARD.decode(message[name].as_str().unwrap_or_default()).unwrap();
    let headers = String::from_utf8(bytes("hdrs")).unwrap();
    let header = |name: &str| {
        let mut lines = headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    Message {
        id: header("ce-id"),
        key: header("ce-partitionkey"),
        subject: message["subject"].as_str().unwrap_or_default().to_owned(),
        payload: serde_json::from_slice(&bytes("data")).unwrap(),
    }
}

struct Reader(BufReader<TcpStream>);

impl Reader {
    fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut reader = Self(BufReader::new(stream));
        reader.line()?.strip_prefix("INFO ")?;
        reader.0.get_mut().write_all(b"CONNECT {\"verbose\":false}\r\nSUB answers 1\r\nPING\r\n").ok()?;
        (reader.line()? == "PONG").then_some(reader)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end().to_owned())
    }

    fn ask(&mut self, subject: &str, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!("PUB {subject} answers {}\r\n{body}\r\n", body.len());
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        loop {
            let line = self.line().expect("an answer");
            if line == "PING" {
                self.0.get_mut().write_all(b"PONG\r\n").unwrap();
            }
            let Some(head) = line.strip_prefix("MSG ") else { continue };
            let length: usize = head.rsplit(' ').next().unwrap().parse().unwrap();
            let mut body = vec![0; length + 2];
            self.0.read_exact(&mut body).unwrap();
            return serde_json::from_slice(&body[..length]).unwrap();
        }
    }
}
