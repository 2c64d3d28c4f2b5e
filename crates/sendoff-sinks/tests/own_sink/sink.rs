//! A sink for a server that takes a line of JSON for each event, and answers each with a line: `ok`, or what is wrong with it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// 1. What it is told.
#[derive(Debug)]
pub(crate) struct LineConfig {
    pub(crate) address: SocketAddr,
    /// A server that has not answered by then is taken to be down.
    pub(crate) timeout: Duration,
}

/// 2. What it holds: a connection, while nobody uses it.
#[derive(Debug)]
pub(crate) struct LineSink {
    config: LineConfig,
    idle: Mutex<Option<BufReader<TcpStream>>>,
}

impl LineSink {
    pub(crate) fn new(config: LineConfig) -> Self {
        Self { config, idle: Mutex::default() }
    }

    /// A connection is taken out for a call, and put back when the call has all its answers. A call that is dropped half-way takes it along: what it has not read
    /// would otherwise be read as the answer to something else.
    async fn connection(&self) -> io::Result<BufReader<TcpStream>> {
        match self.idle.lock().await.take() {
            Some(connection) => Ok(connection),
            None => Ok(BufReader::new(TcpStream::connect(self.config.address).await?)),
        }
    }

    /// Sends lines, and reads an answer to each.
    async fn send(&self, lines: &[String]) -> io::Result<Vec<String>> {
        let answered = timeout(self.config.timeout, async {
            let mut connection = self.connection().await?;
            connection.write_all(lines.concat().as_bytes()).await?;
            let mut answers = Vec::with_capacity(lines.len());
            for _ in lines {
                let mut answer = String::new();
                if connection.read_line(&mut answer).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                answers.push(answer.trim_end().to_owned());
            }
            *self.idle.lock().await = Some(connection);
            Ok(answers)
        });
        answered.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn down(&self, error: &io::Error) -> String {
        format!("{}: {error}; is it running, and can it be reached from here?", self.config.address)
    }
}

/// 3. From an event to what is sent. What can never be sent is said before anything is.
fn line(claimed: &Claimed) -> Result<String, String> {
    let event = &claimed.event;
    if let Some((name, _)) = event.headers.iter().find(|(_, value)| value.contains(['\r', '\n'])) {
        return Err(format!("its header `{name}` has a line break"));
    }
    let line = json!({
        "specversion": "1.0",
        "id": event.event_id,
        "type": event.topic,
        "source": format!("/sendoff/{}", event.target),
        "sendoffkey": event.key,
        "sendoffposition": event.position.to_string(),
        "sendoffepoch": claimed.token.epoch.to_string(),
        "headers": event.headers,
        "data_base64": STANDARD.encode(&event.payload),
    });
    Ok(format!("{line}\n"))
}

/// 4. What an answer means for its event.
fn delivery(answer: &str) -> Delivery {
    match answer {
        "ok" => Delivery::Delivered,
        "busy" => Delivery::retry("the server is busy"),
        other => Delivery::reject(format!("the server does not take it: {other}")),
    }
}

/// 5. The contract.
#[async_trait]
impl Sink for LineSink {
    fn capabilities(&self) -> Capabilities {
        // Few enough that a call has its answers well before its time is over. A line that is refused does not stop the next one: order is not kept within a call.
        Capabilities { events: 200, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let lines: Vec<Result<String, String>> = events.iter().map(line).collect();
        let good: Vec<String> = lines.iter().flatten().cloned().collect();
        let sent = if good.is_empty() { Ok(Vec::new()) } else { self.send(&good).await };
        let mut answers = match sent {
            Ok(answers) => answers.iter().map(|answer| delivery(answer)).collect::<Vec<_>>(),
            // Some may have arrived. All are sent again, and none of them is charged for it.
            Err(error) => vec![Delivery::down(self.down(&error)); good.len()],
        }
        .into_iter();
        let answer = |line: Result<String, String>| match line {
            Ok(_) => answers.next().unwrap_or(Delivery::Untried),
            Err(reason) => Delivery::reject(reason),
        };
        lines.into_iter().map(answer).collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        // Over a connection of its own: an old one says nothing of whether the server is there now.
        self.idle.lock().await.take();
        match self.send(&["ping\n".to_owned()]).await {
            Ok(_) => Ok(()),
            Err(error) => Err(SinkError::new("line", self.down(&error))),
        }
    }
}
