//! The inbox of another database, read back by drivers of another language.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libtest_mimic::Trial;
use sendoff::testkit::{FaultProxy, Received, SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{Inbox, InboxConfig};
use serde::Deserialize;
use tempfile::TempDir;

use crate::broker::{self, program};
use crate::certificates::Authority;
use crate::trial;

const PYTHON: &str = "SENDOFF_TEST_PYTHON";

/// A server, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    kind: &'static str,
    variable: &'static str,
}

pub(crate) const POSTGRES: Server = Server { kind: "postgres", variable: "SENDOFF_TEST_POSTGRES15" };
pub(crate) const MARIADB: Server = Server { kind: "mysql", variable: "SENDOFF_TEST_MARIADB" };

pub(crate) fn is_missing() -> bool {
    [("postgres15", POSTGRES.variable), ("mariadb", MARIADB.variable), ("python", PYTHON)]
        .into_iter()
        .any(|(name, variable)| broker::is_missing(name, &[variable]))
}

/// A table of its own in a server that others use too: what happens to the server happens to the line that leads there.
pub(crate) struct Database {
    kind: &'static str,
    url: String,
    table: String,
    proxy: FaultProxy,
}

impl Database {
    pub(crate) async fn open(server: Server) -> Self {
        let url = program(server.variable);
        let proxy = FaultProxy::start(address_of(&url).parse().unwrap()).await.unwrap();
        let table = format!("inbox_{:08x}", fastrand::u32(..));
        let database = Self { kind: server.kind, url, table, proxy };
        assert_eq!(database.sink().publish(&[]).await, []);
        database.sink().check().await.unwrap();
        database
    }

    /// As the program takes it.
    pub(crate) fn url(&self) -> String {
        format!("inbox:{}#{}", self.url, self.table)
    }

    fn config(&self, address: SocketAddr) -> InboxConfig {
        let url = self.url.replace(address_of(&self.url), &address.to_string());
        InboxConfig {
            table: self.table.clone(),
            create: true,
            timeout: Duration::from_secs(1),
            ..InboxConfig::new(url)
        }
    }

    fn execute(&self, sql: &str) {
        reader(self.kind, &self.url, &self.table, &[sql]);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.execute(&format!("DROP TABLE IF EXISTS {}", self.table));
    }
}

/// Host and port.
fn address_of(url: &str) -> &str {
    let server = url.rsplit_once('@').or_else(|| url.split_once("://")).unwrap().1;
    server.split('/').next().unwrap()
}

fn reader(kind: &str, url: &str, table: &str, sql: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/brokers/inbox_reader.py");
    let mut command = Command::new(program(PYTHON));
    let output = command.args(["-I", script, kind, url, table]).args(sql).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the reader prints.
#[derive(Deserialize)]
struct Line {
    id: String,
    key: Option<String>,
    payload: String,
    headers: std::collections::BTreeMap<String, String>,
}

fn rows(kind: &str, url: &str, table: &str) -> Vec<Received> {
    let text = reader(kind, url, table, &[]);
    let received = |line: &str| {
        let Line { id, key, payload, headers } = serde_json::from_str(line).unwrap();
        Received { id, key, payload: STANDARD.decode(payload).unwrap(), headers }
    };
    text.lines().map(received).collect()
}

impl SinkHarness for Database {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        Arc::new(Inbox::new(self.config(address)).unwrap())
    }

    fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    async fn received(&self) -> Vec<Received> {
        rows(self.kind, &self.url, &self.table)
    }

    async fn kill(&self) {
        self.proxy.shut(true);
    }

    async fn restart(&self) {
        self.proxy.shut(false);
    }

    async fn freeze(&self, frozen: bool) {
        self.proxy.hold(frozen);
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {$(
            for (name, server) in [("inbox_postgres", POSTGRES), ("inbox_mariadb", MARIADB)] {
                let name = format!("{name}::{}", stringify!($case));
                trials.push(trial(name, is_missing(), move || $case(server)));
            }
        )*};
    }
    cases![
        a_row_that_the_table_refuses_stops_its_key_alone,
        a_table_that_is_not_there_is_said,
        a_wrong_password_is_said_and_not_shown,
        a_server_that_does_not_encrypt_is_not_spoken_to,
    ];
    let is_missing = broker::is_missing("python", &[PYTHON]);
    trials.push(trial("inbox_sqlite::a_file_takes_each_event_once".to_owned(), is_missing, file));
    trials.push(trial("inbox_sqlite::a_lock_is_waited_for".to_owned(), is_missing, locked));
    trials
}

/// Two keys, three events each; the second of one is refused.
async fn a_row_that_the_table_refuses_stops_its_key_alone(server: Server) {
    let database = Database::open(server).await;
    database.execute(&format!("ALTER TABLE {} ADD CONSTRAINT no_7 CHECK (position <> 7)", database.table));
    let sink = database.sink();
    let event = |position, key| claimed(position, Some(key), position.to_string());
    let events = [event(1, "a"), event(2, "b"), event(7, "a"), event(8, "b"), event(9, "a"), event(10, "b")];
    let deliveries = sink.publish(&events).await;
    let is_refused = matches!(&deliveries[2], Delivery::Reject { error } if error.contains("no_7"));
    assert!(is_refused, "{:?}", deliveries[2]);
    assert_eq!(deliveries[4], Delivery::Untried, "its key stops there");
    for index in [0, 1, 3, 5] {
        assert_eq!(deliveries[index], Delivery::Delivered, "event {index}");
    }
    let payloads: Vec<Vec<u8>> = database.received().await.into_iter().map(|one| one.payload).collect();
    assert_eq!(payloads, [b"1".to_vec(), b"2".to_vec(), b"8".to_vec(), b"10".to_vec()]);
}

async fn a_table_that_is_not_there_is_said(server: Server) {
    let database = Database::open(server).await;
    let config = InboxConfig {
        table: "no_such_inbox".to_owned(),
        create: false,
        ..database.config(database.address())
    };
    let sink = Inbox::new(config).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("no_such_inbox") && error.contains("let it be made with `create`"), "{error}");
    let deliveries = sink.publish(&[claimed(1, None, "x")]).await;
    assert!(matches!(&deliveries[0], Delivery::Down { error } if error.contains("no_such_inbox")));
}

async fn a_wrong_password_is_said_and_not_shown(server: Server) {
    let database = Database::open(server).await;
    let scheme = database.url.split(':').next().unwrap();
    let url = format!("{scheme}://nobody:wr0ng@{}/x", database.address());
    let sink = Inbox::new(InboxConfig { url, ..database.config(database.address()) }).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains(&database.address().to_string()), "{error}");
    assert!(error.contains("user or password are wrong") && !error.contains("wr0ng"), "{error}");
}

/// Who names an authority wants to know whom it speaks to, whatever the URL says.
async fn a_server_that_does_not_encrypt_is_not_spoken_to(server: Server) {
    let database = Database::open(server).await;
    let authority = Authority::new();
    let address = database.address();
    let mode = if server.kind == "mysql" { "ssl-mode=PREFERRED" } else { "sslmode=prefer" };
    let plain = database.config(address);
    let url = format!("{}?{mode}", plain.url);
    Inbox::new(InboxConfig { url: url.clone(), ..plain.clone() }).unwrap().check().await.unwrap();
    let sink = Inbox::new(InboxConfig { url, ca_file: Some(authority.file()), ..plain }).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("does it speak TLS there?") && error.contains(&address.to_string()), "{error}");
    let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
    assert!(matches!(&delivery, Delivery::Down { error } if error.contains("speak TLS")), "{delivery:?}");
    assert_eq!(database.received().await.len(), 0);
}

fn file_config(directory: &TempDir) -> InboxConfig {
    let url = format!("sqlite:{}", directory.path().join("consumer.db").display());
    std::fs::File::create(directory.path().join("consumer.db")).unwrap();
    InboxConfig { create: true, timeout: Duration::from_secs(1), ..InboxConfig::new(url) }
}

async fn file() {
    let directory = tempfile::tempdir().unwrap();
    let config = file_config(&directory);
    let url = config.url.clone();
    let sink = Inbox::new(config).unwrap();
    let key = |number: i64| format!("key-{}", number % 20);
    let events: Vec<_> =
        (0..2_000).map(|number| claimed(number, Some(&key(number)), number.to_string())).collect();
    for _ in 0..2 {
        for call in events.chunks(500) {
            assert_eq!(sink.publish(call).await, vec![Delivery::Delivered; call.len()]);
        }
    }
    let received = rows("sqlite", &url, "inbox");
    let ids: Vec<String> = received.into_iter().map(|one| one.id).collect();
    assert_eq!(ids, events.iter().map(|event| event.event.event_id.to_string()).collect::<Vec<_>>());
}

/// By a consumer that writes to the same file.
async fn locked() {
    let directory = tempfile::tempdir().unwrap();
    let config = file_config(&directory);
    let url = config.url.clone();
    let sink = Inbox::new(config).unwrap();
    assert_eq!(sink.publish(&[claimed(1, None, "x")]).await, [Delivery::Delivered]);
    let hold = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); \
                c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()";
    let mut holder = Command::new(program(PYTHON))
        .args(["-c", hold, url.trim_start_matches("sqlite:")])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut said).unwrap();
    let event = claimed(2, None, "y");
    let delivery = sink.publish(std::slice::from_ref(&event)).await.remove(0);
    assert!(matches!(&delivery, Delivery::Retry { .. }), "{delivery:?}");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(sink.publish(&[event]).await, [Delivery::Delivered]);
    assert_eq!(rows("sqlite", &url, "inbox").len(), 2);
}
