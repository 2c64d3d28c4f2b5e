//! Somebody with a Python service on PostgreSQL and a NATS server, who has ten minutes: by commands only, from the starter configuration to an outage of the broker and back.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod nats;
#[allow(dead_code)]
#[path = "../commands/program.rs"]
mod program;
#[path = "../commands/schema.rs"]
mod schema;
mod service;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use self::nats::{Message, Nats};
use self::program::{Done, program};
use self::service::Database;

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_secs(60);

const STREAM: &str = "ORDERS";

/// The value of a variable, or nothing if the server that it is of is neither there nor required.
fn given(server: &str, variable: &str) -> Option<String> {
    let required = std::env::var("SENDOFF_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name == server || name == "all");
    match std::env::var(variable) {
        Ok(value) => Some(value),
        Err(_) if is_required => panic!("{server} is required, but {variable} is not set"),
        Err(_) => {
            println!("skipped: {variable} is not set");
            None
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The directory that the newcomer works in.
struct Desk {
    directory: TempDir,
    file: PathBuf,
}

impl Desk {
    /// With the starter configuration in it.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sendoff.toml");
        let desk = Self { directory, file };
        std::fs::write(&desk.file, desk.ok(&["config", "init"])).unwrap();
        desk
    }

    /// Puts one line in the place of another, as an editor does.
    fn edit(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.file).unwrap();
        assert_eq!(text.matches(&format!("\n{from}\n")).count(), 1, "the line {from} in:\n{text}");
        std::fs::write(&self.file, text.replace(&format!("\n{from}\n"), &format!("\n{to}\n"))).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments).current_dir(self.directory.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(arguments))
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}{}", done.text, done.errors);
        done.text
    }

    /// Of the outbox that the configuration names.
    fn asked(&self, arguments: &[&str]) -> Done {
        self.run(&[arguments, &["--config", "sendoff.toml"]].concat())
    }

    fn counts(&self) -> Value {
        self.asked(&["status", "--json"]).json()["targets"][0].clone()
    }

    /// The relay, which relays when this returns.
    fn relay(&self) -> Relay {
        let mut command = self.command(&["run", "--config", "sendoff.toml"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.starts_with("relaying target \"default\" to nats://"), "{line}");
        // Read on, or the pipe ends and its next word kills it.
        std::thread::spawn(move || errors.lines().count());
        Relay(child)
    }
}

/// It does not outlive its test.
struct Relay(Child);

impl Relay {
    fn stop(mut self) {
        kill_process(Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
        let mut status = None;
        until("it ends when it is told to", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(0));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// From the starter to a configuration that is right, step by step, as its messages say.
fn configure(desk: &Desk, database: &Database, nats: &Nats) {
    desk.edit("url = \"sqlite:sendoff.db\"", &format!("url = {:?}", database.url));
    desk.edit("sink = \"stdout:\"", &format!("sink = \"nats://127.0.0.1:{}\"", nats.port));
    let done = desk.run(&["config", "check", "sendoff.toml"]);
    assert!(done.code == 2 && done.errors.contains("nats://HOST:PORT/STREAM"), "{}", done.errors);
    desk.edit(
        &format!("sink = \"nats://127.0.0.1:{}\"", nats.port),
        &format!("sink = \"nats://127.0.0.1:{}/{STREAM}\"", nats.port),
    );
    assert_eq!(desk.ok(&["config", "check", "sendoff.toml"]), "right: 1 store, 1 target\n");
    let done = desk.run(&["config", "check", "sendoff.toml", "--connect"]);
    assert!(done.code == 4 && done.errors.contains("`sendoff migrate`"), "{}", done.errors);
    desk.ok(&["migrate", "--config", "sendoff.toml"]);
    let done = desk.run(&["config", "check", "sendoff.toml", "--connect"]);
    assert!(done.code == 3 && done.errors.contains("there is no stream `ORDERS`"), "{}", done.errors);
    assert!(done.errors.contains("?create="), "and it says how to have it made: {}", done.errors);
    desk.edit(
        &format!("sink = \"nats://127.0.0.1:{}/{STREAM}\"", nats.port),
        &format!("sink = \"nats://127.0.0.1:{}/{STREAM}?create=orders.>\"", nats.port),
    );
    let checked = desk.ok(&["config", "check", "sendoff.toml", "--connect"]);
    assert_eq!(checked, "right: 1 store, 1 target, and all of them answer\n");
}

/// What arrived is what was committed, each once, and of each key in its order.
fn are_exactly(messages: &[Message], committed: &[Message]) {
    let by_key = |messages: &[Message]| {
        let mut keys: HashMap<String, Vec<Message>> = HashMap::new();
        for message in messages {
            keys.entry(message.key.clone()).or_default().push(message.clone());
        }
        keys
    };
    assert_eq!(by_key(messages), by_key(committed));
}

#[test]
fn from_the_starter_to_an_outage_and_back() {
    let (Some(server), Some(program), Some(python)) = (
        given("postgres15", "SENDOFF_TEST_POSTGRES15"),
        given("nats", "SENDOFF_TEST_NATS"),
        given("python", "SENDOFF_TEST_PYTHON"),
    ) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newcomer/service.py");
    let (database, mut nats, desk) = (Database::new(&server), Nats::start(program), Desk::new());
    configure(&desk, &database, &nats);

    let mut committed = database.serve(&python, &script, 1, 40);
    assert_eq!(committed.len(), 30, "ten were rolled back");
    assert_eq!(desk.counts()["unprocessed"], 30);
    let relay = desk.relay();
    until("all that was committed is delivered", || nats.messages(STREAM).len() >= committed.len());
    until("and settled", || desk.counts()["oldest_seconds"].is_null());
    are_exactly(&nats.messages(STREAM), &committed);

    nats.kill();
    let more = database.serve(&python, &script, 41, 60);
    let waiting = &more[4].id;
    until("it is known that the broker is gone", || {
        desk.asked(&["explain", waiting, "--json"]).json()["why"] == "sink_down"
    });
    let counts = desk.counts();
    assert_eq!(
        (&counts["processing"], &counts["failed"], &counts["dead"]),
        (&15.into(), &0.into(), &0.into())
    );
    let text = desk.asked(&["status"]).text;
    assert!(text.contains("15") && text.contains("its sink is down since 20"), "{text}");
    let text = desk.asked(&["explain", waiting]).text;
    assert!(text.starts_with("Its sink is down since 20") && text.contains("no attempt is spent"), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{}", nats.port)), "it names the server: {text}");
    assert!(desk.asked(&["workers"]).text.contains("sink down since 20"));

    assert!(nats.restart(), "its port was taken");
    committed.extend(more.iter().cloned());
    until("all is delivered", || nats.messages(STREAM).len() >= committed.len());
    until("and settled", || desk.counts()["oldest_seconds"].is_null());
    are_exactly(&nats.messages(STREAM), &committed);
    let counts = desk.counts();
    assert_eq!((&counts["failed"], &counts["dead"]), (&0.into(), &0.into()), "no attempt was spent");
    until("the broker is known to be back", || !desk.asked(&["status"]).text.contains("sink is down"));
    assert_eq!(desk.asked(&["explain", waiting]).code, 1, "it was delivered, and is not kept");
    relay.stop();
    assert_eq!(desk.asked(&["workers"]).text, "no worker is there: `sendoff run` starts one\n");
}
