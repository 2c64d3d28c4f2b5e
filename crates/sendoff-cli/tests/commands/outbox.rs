//! An outbox to give commands about.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sqlx::Connection as _;
use tempfile::TempDir;

use crate::program::{Done, program};

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// An outbox of its own: in SQLite, or under names of its own on a server.
pub(crate) struct Outbox {
    pub(crate) store: String,
    pub(crate) names: Option<String>,
    pub(crate) directory: TempDir,
}

impl Outbox {
    /// One in SQLite, with its tables.
    pub(crate) fn new() -> Self {
        let outbox = Self::without_tables();
        outbox.ok(&["migrate"]);
        outbox
    }

    pub(crate) fn without_tables() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", directory.path().join("shop.db").display());
        Self { store, names: None, directory }
    }

    /// One on the server of a variable, if that is set; it stays there, under a name of its own.
    pub(crate) fn on_server(variable: &str) -> Option<Self> {
        let Ok(store) = std::env::var(variable) else {
            println!("skipped: {variable} is not set");
            return None;
        };
        let names = format!("cmd{:x}_", fastrand::u64(..));
        let outbox = Self { store, names: Some(names), directory: tempfile::tempdir().unwrap() };
        outbox.ok(&["migrate"]);
        Some(outbox)
    }

    /// As its URL says: `sqlite`, `postgres` or `mysql`.
    pub(crate) fn database(&self) -> &str {
        self.store.split(':').next().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments).env("SENDOFF_STORE", &self.store);
        if let Some(names) = &self.names {
            command.env("SENDOFF_NAMES", names);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(arguments))
    }

    /// What it prints, if it does what it is told.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}{}", done.text, done.errors);
        done.text
    }

    /// What it prints as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(done.code, 0, "{arguments:?}: {}{}", done.text, done.errors);
        done.json()
    }

    /// Writes an event; its id.
    pub(crate) fn enqueue(&self, arguments: &[&str]) -> String {
        self.ok(&[&["enqueue"], arguments].concat()).trim().to_owned()
    }

    /// The same, with lines on standard input.
    pub(crate) fn enqueue_lines(&self, lines: &[u8], arguments: &[&str]) -> Done {
        let mut command = self.command(&[&["enqueue", "--lines"], arguments].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may end before it has read all.
        let _ = child.stdin.take().unwrap().write_all(lines);
        let output = child.wait_with_output().unwrap();
        Done::ended(&command, output)
    }

    /// The counts of a target.
    pub(crate) fn counts(&self, target: &str) -> Value {
        let status = self.json(&["status"]);
        let targets = status["targets"].as_array().unwrap();
        targets.iter().find(|counts| counts["target"] == target).cloned().unwrap_or(Value::Null)
    }

    /// What a host does by itself.
    pub(crate) fn sql(&self, statement: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sql = sqlx::AssertSqlSafe(statement);
            macro_rules! execute {
                ($connection:ty) => {{
                    let mut connection = <$connection>::connect(&self.store).await.unwrap();
                    let done = sqlx::raw_sql(sql).execute(&mut connection).await;
                    done.unwrap_or_else(|error| panic!("{error}: {statement}"));
                    connection.close().await.unwrap();
                }};
            }
            match self.database() {
                "postgres" => execute!(sqlx::PgConnection),
                "mysql" => execute!(sqlx::MySqlConnection),
                _ => execute!(sqlx::SqliteConnection),
            }
        });
    }

    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < PATIENCE, "{what}: {}", self.ok(&["status"]));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A relay of this outbox, which relays when this returns.
    pub(crate) fn relay(&self, sink: &str) -> Relay {
        self.run_relay(&["--sink", sink, "--lease", "2"])
    }

    /// The same, as these arguments say.
    pub(crate) fn run_relay(&self, arguments: &[&str]) -> Relay {
        Relay::of(self.command(&[&["run"], arguments].concat()))
    }

    /// The same, to this sink.
    pub(crate) fn relay_with(&self, sink: &str, arguments: &[&str]) -> Relay {
        self.run_relay(&[&["--sink", sink], arguments].concat())
    }

    /// Lets every event be rejected, until so many of the default target are dead.
    pub(crate) fn bury(&self, count: u64) {
        let receiver = Receiver::start("400 Bad Request");
        let relay = self.relay(&receiver.url);
        self.until("all is dead", || self.counts("default")["dead"].as_u64() == Some(count));
        drop(relay);
    }
}

/// A relay, which does not outlive its test. Dropped, it is killed.
pub(crate) struct Relay(Child);

impl Relay {
    /// What this command starts, when it relays.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.starts_with("relaying"), "{line}");
        std::thread::spawn(move || errors.lines().count());
        Self(child)
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A webhook that always answers the same.
pub(crate) struct Receiver {
    pub(crate) url: String,
}

impl Receiver {
    pub(crate) fn start(status: &'static str) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), status)
    }

    pub(crate) fn on(listener: TcpListener, status: &'static str) -> Self {
        Self::reply(listener, move |_| Some(status))
    }

    /// One that is there, and never answers to an event.
    pub(crate) fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::reply(listener, |request| (!request.starts_with("POST ")).then_some("200 OK"))
    }

    /// What is answered to the first line of a request, if anything.
    fn reply(
        listener: TcpListener,
        reply: impl Fn(&str) -> Option<&'static str> + Copy + Send + 'static,
    ) -> Self {
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(stream, reply));
            }
        });
        Self { url }
    }
}

fn answer(stream: TcpStream, reply: impl Fn(&str) -> Option<&'static str>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut request, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            if request.is_empty() {
                request = line;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        // Without an answer the line stays open until the other side has had enough.
        let Some(status) = reply(&request) else { continue };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
