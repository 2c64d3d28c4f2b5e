//! Events written without any code of ours: from Python, by SQL functions, by the examples of `docs/table.md` as they stand there.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod outboxes;
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "conformance/servers.rs"]
mod servers;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sendoff::Event;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use self::outboxes::{Host, TestOutbox};
use self::servers::Server;

/// Text that breaks out of whatever is not bound.
const HOSTILE: &str = r#"it's; "quoted" \ `x` -- $1 ? %s {event} 😀"#;
/// 2100-01-01 00:00:00.123456.
const LATER: i64 = 4_102_444_800_123_456;

fn python() -> Option<String> {
    if Server::Python.is_missing() && !Server::Python.is_required() {
        eprintln!("skipped: python");
        return None;
    }
    Some(Server::Python.url())
}

/// Runs a program with this input; its environment is ours and `variables`.
async fn run(command: &mut Command, input: &str) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
}

impl TestOutbox {
    fn kind(&self) -> &'static str {
        match self.host {
            Host::Postgres(_) => "postgres",
            Host::Mysql(_) => "mysql",
            Host::Sqlite(..) => "sqlite",
        }
    }

    /// What a program of another language connects to.
    fn address(&self) -> String {
        match &self.host {
            Host::Sqlite(_, dir) => dir.path().join("outbox.db").display().to_string(),
            _ => self.url.clone(),
        }
    }

    fn postgres_pool(&self) -> &PgPool {
        let Host::Postgres(pool) = &self.host else { panic!("not PostgreSQL") };
        pool
    }
}

fn events() -> Vec<Value> {
    let id = "0190a0b0-c0d0-7e0f-8a1b-2c3d4e5f6071";
    let bytes: String = (0..=255).map(|byte: u8| format!("{byte:02x}")).collect();
    vec![
        json!({ "topic": HOSTILE, "key": HOSTILE, "payload": bytes, "content_type": HOSTILE,
            "headers": { HOSTILE: HOSTILE }, "event_id": id }),
        json!({ "topic": "bare", "payload": "" }),
        json!({ "topic": "elsewhere", "key": "k", "payload": "00", "target": "other" }),
        json!({ "topic": "later", "key": "k", "payload": "", "deliver_at": LATER }),
        json!({ "topic": "last", "key": "k", "payload": "ff" }),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn assert_same(found: &Event, sent: &Value) {
    let text = |name: &str| sent.get(name).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(Some(&found.topic), text("topic").as_ref());
    assert_eq!(found.key, text("key"));
    assert_eq!(Some(hex(&found.payload)), text("payload"));
    assert_eq!(found.content_type, text("content_type"));
    assert_eq!(json!(found.headers), sent.get("headers").cloned().unwrap_or(json!({})));
    match text("event_id") {
        Some(id) => assert_eq!(found.event_id.to_string(), id),
        None => assert_eq!(found.event_id.0.get_version_num(), 7, "made by the database: {}", found.event_id),
    }
}

async fn python_writes_and_a_worker_finds(outbox: Option<TestOutbox>) {
    let (Some(outbox), Some(python)) = (outbox, python()) else { return };
    outbox
        .with(async {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/enqueue.py");
            let mut command = Command::new(&python);
            command.arg(script).args([outbox.kind(), &outbox.address(), &outbox.table]);
            run(&mut command, &json!(events()).to_string()).await;

            let sent = events();
            assert_eq!(outbox.rows().await, sent.len() as i64, "the rolled back ones are not there");
            let [hostile, bare, elsewhere, _later, last] = &sent[..] else { unreachable!() };
            let found = outbox.drain("default").await;
            assert_eq!(found.len(), 3, "{found:?}");
            for (found, sent) in found.iter().zip([hostile, bare, last]) {
                assert_same(found, sent);
            }
            let found = outbox.drain("other").await;
            assert_eq!(found.len(), 1);
            assert_same(&found[0], elsewhere);
        })
        .await;
}

#[tokio::test]
async fn python_on_postgres15() {
    python_writes_and_a_worker_finds(TestOutbox::postgres(Server::Postgres15).await).await;
}

#[tokio::test]
async fn python_on_postgres18() {
    python_writes_and_a_worker_finds(TestOutbox::postgres(Server::Postgres18).await).await;
}

#[tokio::test]
async fn python_on_mariadb() {
    python_writes_and_a_worker_finds(TestOutbox::mysql(Server::Mariadb).await).await;
}

#[tokio::test]
async fn python_on_sqlite() {
    python_writes_and_a_worker_finds(Some(TestOutbox::sqlite().await)).await;
}

/// The examples of `docs/table.md` that are marked so, with the names of this outbox.
fn examples(mark: &str, outbox: &TestOutbox) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/table.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once(&format!("<!-- example: {mark} -->\n")).expect(mark);
    let (_, body) = after.split_once('\n').unwrap();
    let (example, _) = body.split_once("\n```").unwrap();
    // Names of tests need no quotes, and Python's strings would end at them.
    let table = outbox.table.replace('"', "");
    let function = table.replace(".event", ".enqueue");
    example
        .replace("sendoff.event", &table)
        .replace("sendoff_event", &table)
        .replace("sendoff.enqueue", &function)
}

/// An example runs as it stands, and these topics arrive.
async fn example_works(program: &str, outbox: Option<TestOutbox>, arrives: &[&str], rows: i64) {
    let Some(outbox) = outbox else { return };
    outbox
        .with(async {
            let mark = format!("{program} {}", outbox.kind());
            let example = examples(&mark, &outbox);
            let mut command = match program {
                "python" => {
                    let Some(python) = python() else { return };
                    let mut command = Command::new(python);
                    command.arg("-");
                    command
                }
                "psql" => {
                    let mut command = Command::new("psql");
                    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", &outbox.url]);
                    command
                }
                _ => mariadb_client(&outbox.url),
            };
            command.env("DATABASE_URL", &outbox.url).env("DATABASE_FILE", outbox.address());
            run(&mut command, &example).await;
            assert_eq!(outbox.rows().await, rows);
            let found = outbox.drain("default").await;
            let topics: Vec<&str> = found.iter().map(|event| event.topic.as_str()).collect();
            assert_eq!(topics, arrives);
            assert_eq!(found[0].key.as_deref(), Some("order-4711"));
            serde_json::from_slice::<Value>(&found[0].payload).unwrap();
        })
        .await;
}

/// `mysql://user:password@host:port/database`, in the words of the client.
fn mariadb_client(url: &str) -> Command {
    let rest = url.trim_start_matches("mysql://");
    let (user, rest) = rest.split_once('@').unwrap();
    let (host, database) = rest.split_once('/').unwrap();
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let (host, port) = host.split_once(':').unwrap();
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "-h", host, "-P", port, "-u", user, database]).env("MYSQL_PWD", password);
    command
}

#[tokio::test]
async fn the_examples_for_postgres_work() {
    for server in [Server::Postgres15, Server::Postgres18] {
        let both = ["orders.placed", "orders.paid"];
        example_works("python", TestOutbox::postgres(server).await, &both, 2).await;
        example_works("psql", TestOutbox::postgres(server).await, &both, 3).await;
    }
}

#[tokio::test]
async fn the_examples_for_mariadb_work() {
    let placed = ["orders.placed"];
    example_works("python", TestOutbox::mysql(Server::Mariadb).await, &placed, 1).await;
    example_works("mariadb", TestOutbox::mysql(Server::Mariadb).await, &placed, 2).await;
}

#[tokio::test]
async fn the_example_for_sqlite_works() {
    example_works("python", Some(TestOutbox::sqlite().await), &["orders.placed"], 2).await;
}

/// Every way to call the function, and a role that may do nothing else.
async fn the_function_writes_events(server: Server) {
    // Whatever a schema may be called, also what would end a quoted text.
    let schema = format!("we\"i$$rd {{event}} {:08x}", fastrand::u32(..));
    let Some(outbox) = TestOutbox::postgres_named(server, &schema).await else { return };
    let quoted = outbox.table.trim_end_matches(".event").to_owned();
    let role = format!("t_host_{:08x}", fastrand::u32(..));
    let pool = outbox.postgres_pool();
    outbox
        .with(async {
            let setup = format!(
                "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {quoted} TO {role}; GRANT INSERT ON {quoted}.event TO {role}"
            );
            pool.execute(AssertSqlSafe(setup)).await.unwrap();
            let mut host = pool.acquire().await.unwrap();
            let mut call = async |sql: String| -> Result<sqlx::types::Uuid, sqlx::Error> {
                let sql = sql.replace("enqueue(", &format!("{quoted}.enqueue("));
                sqlx::query_scalar(AssertSqlSafe(sql)).persistent(false).fetch_one(&mut *host).await
            };
            call(format!("SET ROLE {role}")).await.unwrap_err();
            let mut ids = Vec::new();
            for sql in [
                r"SELECT enqueue('untyped', 'k', 'a\x00b')",
                r"SELECT enqueue('typed'::varchar, 'k', 'ü'::text, 'default', 'text/plain')",
                r#"SELECT enqueue('json', NULL, '{"a":1}'::jsonb)"#,
                r#"SELECT enqueue('own type', 'k', '1'::jsonb, content_type => 'text/x')"#,
                r"SELECT enqueue('bytes', 'k', '\x00ff'::bytea)",
                r#"SELECT enqueue(payload => 'p', key => 'k', topic => 'named', headers => '{"h": "v"}')"#,
                r"SELECT enqueue('null', 'k', '', NULL, NULL, NULL, NULL, NULL)",
                r"SELECT enqueue('own id', 'k', 'p', event_id => '0190a0b0-c0d0-7e0f-8a1b-2c3d4e5f6071')",
                r"SELECT enqueue('later', 'k', 'p', deliver_at => now() + interval '1 day')",
            ] {
                ids.push(call(sql.to_owned()).await.unwrap_or_else(|error| panic!("{sql}: {error}")));
            }
            for refused in [
                "SELECT enqueue('', 'k', 'p')",
                "SELECT enqueue('t', '', 'p')",
                "SELECT enqueue('t', 'k', NULL)",
                "SELECT enqueue('t', 'k', 'p', headers => '[]')",
                "SELECT enqueue('t', 'k', 'p', event_id => '0190a0b0-c0d0-7e0f-8a1b-2c3d4e5f6071')",
                "SELECT event_id FROM event",
            ] {
                call(refused.to_owned()).await.expect_err(refused);
            }
            let found = outbox.drain("default").await;
            let seen: Vec<_> =
                found.iter().map(|e| (e.topic.as_str(), e.payload.as_slice(), e.content_type.as_deref())).collect();
            let expected: [(&str, &[u8], Option<&str>); 8] = [
                ("untyped", br"a\x00b", None),
                ("typed", "ü".as_bytes(), Some("text/plain")),
                ("json", br#"{"a": 1}"#, Some("application/json")),
                ("own type", b"1", Some("text/x")),
                ("bytes", b"\x00\xff", None),
                ("named", b"p", None),
                ("null", b"", None),
                ("own id", b"p", None),
            ];
            assert_eq!(seen, expected);
            assert_eq!(found[5].headers["h"], "v");
            assert_eq!(found.iter().map(|e| e.event_id.0).collect::<Vec<_>>(), ids[..8]);
            host.execute("RESET ROLE").await.unwrap();
            pool.execute(AssertSqlSafe(format!("DROP OWNED BY {role}; DROP ROLE {role}"))).await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn the_function_on_postgres15() {
    the_function_writes_events(Server::Postgres15).await;
}

#[tokio::test]
async fn the_function_on_postgres18() {
    the_function_writes_events(Server::Postgres18).await;
}

/// A row that a worker could not read would stop its lane for good: the table itself refuses it.
#[tokio::test]
async fn sqlite_refuses_what_no_worker_can_read() {
    let outbox = TestOutbox::sqlite().await;
    let Host::Sqlite(pool, _) = &outbox.host else { unreachable!() };
    for (columns, values) in [
        ("topic, payload", "'t', 42"),
        ("topic, payload", "x'00', ''"),
        ("topic, payload, key", "'t', '', x'00'"),
        ("topic, payload, headers", "'t', '', '[]'"),
        ("topic, payload, headers", "'t', '', x'7b7d'"),
        ("topic, payload, event_id", "'t', '', 'abc'"),
        ("topic, payload, event_id", "'t', '', '0190A0B0-C0D0-7E0F-8A1B-2C3D4E5F6071'"),
        ("topic, payload, deliver_at", "'t', '', '2100-01-01'"),
    ] {
        let insert = format!("INSERT INTO {} ({columns}) VALUES ({values})", outbox.table);
        pool.execute(AssertSqlSafe(insert)).await.expect_err(values);
    }
    let text = format!("INSERT INTO {} (topic, payload) VALUES ('t', 'text')", outbox.table);
    pool.execute(AssertSqlSafe(text)).await.unwrap();
    assert_eq!(outbox.drain("default").await[0].payload, b"text");
}

/// A moment beyond the calendar of a worker, or of its driver.
#[tokio::test]
async fn postgres_refuses_a_moment_that_no_worker_can_read() {
    let Some(outbox) = TestOutbox::postgres(Server::Postgres18).await else { return };
    outbox
        .with(async {
            let insert = |at: &str| {
                format!("INSERT INTO {} (topic, payload, deliver_at) VALUES ('t', '', '{at}')", outbox.table)
            };
            for at in ["infinity", "20000-01-01"] {
                outbox.postgres_pool().execute(AssertSqlSafe(insert(at))).await.expect_err(at);
            }
            let written = format!(
                "INSERT INTO {} (topic, payload, created_at) VALUES ('t', '', '-infinity')",
                outbox.table
            );
            outbox.postgres_pool().execute(AssertSqlSafe(written)).await.unwrap_err();
            outbox.postgres_pool().execute(AssertSqlSafe(insert("-infinity"))).await.unwrap();
            assert_eq!(outbox.drain("default").await.len(), 1, "long past is due");
        })
        .await;
}
