//! Hosts that have an outbox table of their own: on SQLite, and on the servers that are there.

use std::path::PathBuf;
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use crate::outbox::{Outbox, Relay};
use crate::program::{Done, program};

/// The tables of the library's tests, by the names of their presets.
pub(crate) const KINDS: [&str; 4] = ["framework", "governance", "adr003", "debezium"];

/// A host with a table of its own.
pub(crate) struct Host {
    pub(crate) outbox: Outbox,
    pub(crate) table: String,
    pub(crate) kind: &'static str,
    /// How many rows it wrote.
    written: usize,
}

macro_rules! ddl {
    ($kind:literal, $store:expr) => {
        match $store {
            "postgres" => include_str!(concat!("../../../sendoff/tests/hosts/", $kind, "/postgres.sql")),
            "mysql" => include_str!(concat!("../../../sendoff/tests/hosts/", $kind, "/mysql.sql")),
            _ => include_str!(concat!("../../../sendoff/tests/hosts/", $kind, "/sqlite.sql")),
        }
    };
}

/// A place on each database that is there: SQLite always.
pub(crate) fn places() -> Vec<Outbox> {
    let on_server = |variable: &str| match std::env::var(variable) {
        Ok(store) => Some(Outbox { store, names: None, directory: tempfile::tempdir().unwrap() }),
        Err(_) => {
            println!("skipped: {variable} is not set");
            None
        }
    };
    let sqlite = Outbox::without_tables();
    std::fs::write(sqlite.directory.path().join("shop.db"), "").unwrap();
    [Some(sqlite), on_server("SENDOFF_TEST_POSTGRES15"), on_server("SENDOFF_TEST_MARIADB")]
        .into_iter()
        .flatten()
        .collect()
}

impl Host {
    /// A table of this DDL, in which `{table}` stands for its name.
    pub(crate) fn with(outbox: Outbox, kind: &'static str, ddl: &str) -> Self {
        let table = format!("host_{:012x}", fastrand::u64(..1 << 48));
        outbox.sql(&ddl.replace("{table}", &table));
        Self { outbox, table, kind, written: 0 }
    }

    /// A table of a preset, empty.
    pub(crate) fn of(outbox: Outbox, kind: &'static str) -> Self {
        let store = outbox.database().to_owned();
        let ddl = match kind {
            "framework" => ddl!("framework", store.as_str()),
            "governance" => ddl!("governance", store.as_str()),
            "adr003" => ddl!("adr003", store.as_str()),
            _ => ddl!("debezium", store.as_str()),
        };
        Self::with(outbox, kind, ddl)
    }

    pub(crate) fn database(&self) -> &str {
        self.outbox.database()
    }

    /// Writes so many more rows, numbered from where the last ones ended.
    pub(crate) fn fill(&mut self, count: usize) {
        let quote = |name: &&str| match self.database() {
            "mysql" => format!("`{name}`"),
            _ => format!("\"{name}\""),
        };
        let columns: &[&str] = match self.kind {
            "framework" => &[
                "id",
                "message_id",
                "stream_name",
                "type",
                "data",
                "metadata_",
                "created_at",
                "target_broker",
            ],
            "governance" => &[
                "OutboxEntryId",
                "EnvelopeId",
                "CorrelationId",
                "EventType",
                "EnvelopeJson",
                "Status",
                "CreatedUtc",
                "ConcurrencyStamp",
            ],
            "adr003" => &["id", "aggregate_type", "aggregate_id", "event_type", "payload", "created_at"],
            _ => &["id", "aggregatetype", "aggregateid", "type", "payload"],
        };
        let row = |number: usize| {
            let id = format!("00000000-0000-4000-8000-{number:012}");
            let at = format!("'2024-01-01 00:{:02}:{:02}.000000'", number / 60 % 60, number % 60);
            match self.kind {
                "framework" => {
                    format!("('{id}', 'm-{id}', 's{number}', 'orders', '\"p{number}\"', '', {at}, 'default')")
                }
                "governance" => {
                    format!("('{id}', 'e-{id}', 'k{number}', 'orders', '{{}}', 'Pending', {at}, 'x')")
                }
                "adr003" => format!("('{id}', 'orders', 'k{number}', 'Placed', '\"p{number}\"', {at})"),
                _ => format!("('{id}', 'orders', 'k{number}', 'Placed', '\"p{number}\"')"),
            }
        };
        let rows: Vec<String> = (self.written..self.written + count).map(row).collect();
        let columns: Vec<String> = columns.iter().map(quote).collect();
        let insert =
            format!("INSERT INTO {} ({}) VALUES {}", self.table, columns.join(", "), rows.join(", "));
        self.outbox.sql(&insert);
        self.written += count;
    }

    /// What a query of texts answers, in the order of the texts.
    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sql = AssertSqlSafe(sql.to_owned());
        macro_rules! read {
            ($connection:ty) => {{
                let mut connection = <$connection>::connect(&self.outbox.store).await.unwrap();
                let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
                let texts: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
                connection.close().await.unwrap();
                texts
            }};
        }
        let mut texts = runtime.block_on(async {
            match self.database() {
                "postgres" => read!(sqlx::PgConnection),
                "mysql" => read!(sqlx::MySqlConnection),
                _ => read!(sqlx::SqliteConnection),
            }
        });
        texts.sort_unstable();
        texts
    }

    /// Every column of every row, as text.
    pub(crate) fn everything(&self) -> Vec<String> {
        let table = &self.table;
        match self.database() {
            "postgres" => self.texts(&format!("SELECT t::text FROM {table} AS t")),
            "mysql" => {
                let columns = self.texts(&format!(
                    "SELECT CAST(column_name AS CHAR) FROM information_schema.columns WHERE table_name = '{table}'"
                ));
                let columns: Vec<String> = columns
                    .iter()
                    .map(|column| format!("COALESCE(CAST(`{column}` AS CHAR), 'null')"))
                    .collect();
                self.texts(&format!("SELECT CONCAT_WS('|', {}) FROM {table}", columns.join(", ")))
            }
            _ => {
                let columns = self.texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
                let columns: Vec<String> = columns
                    .iter()
                    .map(|column| format!("COALESCE(CAST(\"{column}\" AS TEXT), 'null')"))
                    .collect();
                self.texts(&format!("SELECT {} FROM {table}", columns.join(" || '|' || ")))
            }
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.outbox.directory.path().join(name)
    }

    /// `sendoff adopt` of its table.
    pub(crate) fn adopt(&self, arguments: &[&str]) -> Done {
        self.outbox.run(&[&["adopt", &self.table], arguments].concat())
    }

    /// Does what `sendoff adopt` says has to be done first, until there is nothing left.
    pub(crate) fn mend(&self) {
        for _ in 0..3 {
            let found = self.adopt(&["--json"]).json();
            let to_do = found["to_do"].as_array().unwrap();
            if to_do.is_empty() {
                return;
            }
            for task in to_do {
                // Beside other tests it would wait for all of their transactions.
                self.outbox.sql(&task["run"].as_str().unwrap().replace(" CONCURRENTLY", ""));
            }
        }
        panic!("what it says does not mend it: {}", self.adopt(&[]).text);
    }

    /// Writes a configuration for it, with a file as its sink and a short lease.
    pub(crate) fn configure(&self, table: &str) {
        let text = format!(
            "[store]\nurl = {:?}\n[relay]\nlease = \"2s\"\ngrace = \"1s\"\n[table]\nname = {:?}\n{table}\n[targets.default]\nsink = \"file:{}\"\n",
            self.outbox.store,
            self.table,
            self.file("events.jsonl").display()
        );
        std::fs::write(self.file("sendoff.toml"), text).unwrap();
    }

    /// The same configuration with another sink, in a file of its own.
    pub(crate) fn with_sink(&self, url: &str) -> Command {
        let text = std::fs::read_to_string(self.file("sendoff.toml")).unwrap();
        let sink = format!("\"file:{}\"", self.file("events.jsonl").display());
        std::fs::write(self.file("other.toml"), text.replace(&sink, &format!("{url:?}"))).unwrap();
        let mut command = program();
        command.args(["run"]).env("SENDOFF_CONFIG", self.file("other.toml"));
        command
    }

    /// As the preset of its kind.
    pub(crate) fn configure_preset(&self) {
        self.configure(&format!("preset = {:?}", self.kind));
    }

    /// A command by its configuration.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments).env("SENDOFF_CONFIG", self.file("sendoff.toml"));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(arguments))
    }

    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(
            done.code,
            0,
            "{} on {}: {arguments:?}: {}{}",
            self.kind,
            self.database(),
            done.text,
            done.errors
        );
        done.text
    }

    /// The counts of its only target.
    pub(crate) fn counts(&self) -> serde_json::Value {
        let status = self.run(&["status", "--json"]).json();
        status["targets"][0].clone()
    }

    /// A relay by its configuration, which relays when this returns.
    pub(crate) fn relay(&self) -> Relay {
        Relay::of(self.command(&["run"]))
    }

    /// How often each row's id came to the sink.
    pub(crate) fn delivered(&self) -> std::collections::HashMap<String, usize> {
        let text = std::fs::read_to_string(self.file("events.jsonl")).unwrap_or_default();
        let mut counts = std::collections::HashMap::new();
        for line in text.lines() {
            // The last line of a relay that was killed may be half a line.
            let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            *counts.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
        counts
    }

    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = std::time::Instant::now();
        while !is_so() {
            let patience = std::time::Duration::from_secs(60);
            assert!(
                started.elapsed() < patience,
                "{} on {}: {what}: {}",
                self.kind,
                self.database(),
                self.ok(&["status"])
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
