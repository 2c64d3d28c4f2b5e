//! `sendoff adopt`: what it makes of a table, and that it changes nothing.

use serde_json::Value;

use crate::host::{Host, KINDS, places};
use crate::outbox::Outbox;

/// A table whose columns have everything a claim needs, under names of its own.
const WHOLE: &str = "CREATE TABLE {table} (id VARCHAR(64) NOT NULL PRIMARY KEY, event_type VARCHAR(100) NOT NULL, order_id INTEGER, aggregate_id VARCHAR(100), \
    body TEXT NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, state VARCHAR(20) NOT NULL DEFAULT 'NEW', claimed_by VARCHAR(100), \
    claimed_until TIMESTAMP NULL, attempts INTEGER NOT NULL DEFAULT 0, last_error TEXT, sent_at TIMESTAMP NULL)";

fn on_sqlite(ddl: &str) -> Host {
    Host::with(places().remove(0), "own", ddl)
}

fn taken(found: &Value, column: &str) -> Option<String> {
    let columns = found["columns"].as_array().unwrap();
    let found = columns.iter().find(|found| found["name"] == column).unwrap();
    found["taken_for"].as_str().map(str::to_owned)
}

#[test]
fn each_preset_is_recognised_and_what_it_writes_can_be_run() {
    for kind in KINDS {
        for place in places() {
            let mut host = Host::of(place, kind);
            host.fill(3);
            let before = host.everything();
            let found = host.adopt(&["--json"]);
            assert_eq!(found.code, 0, "{}", found.errors);
            let found = found.json();
            assert_eq!(found["preset"], kind, "{found:#}");
            assert_eq!(found["rows"], 3);
            host.mend();
            let file = host.file("sendoff.toml");
            let done = host.adopt(&["--write", file.to_str().unwrap()]);
            assert_eq!(done.code, 0, "{}", done.errors);
            assert!(done.text.contains("The mapping fits: nothing has to be done"), "{}", done.text);
            assert_eq!(host.everything(), before, "the table is as it was");

            let again = host.adopt(&["--write", file.to_str().unwrap()]);
            assert!(again.code == 2 && again.errors.contains("--force"), "{}", again.errors);
            assert_eq!(host.adopt(&["--write", file.to_str().unwrap(), "--force"]).code, 0);
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(&format!("preset = \"{kind}\"")), "{text}");
            let mut check = host.command(&["config", "check", "--connect"]);
            let checked = crate::program::Done::of(check.env("SENDOFF_STORE", &host.outbox.store));
            assert_eq!(
                checked.text, "right: 1 store, 1 target, and all of them answer\n",
                "{}",
                checked.errors
            );
        }
    }
}

#[test]
fn a_table_with_names_of_its_own_is_mapped_by_names_types_and_words() {
    for place in places() {
        let host = Host::with(place, "own", WHOLE);
        for (id, state) in [("a", "NEW"), ("b", "SENT"), ("c", "FAILED"), ("d", "DEAD"), ("e", "NEW")] {
            host.outbox.sql(&format!("INSERT INTO {} (id, event_type, aggregate_id, body, state) VALUES ('{id}', 'placed', 'o-1', '{{}}', '{state}')", host.table));
        }
        let found = host.adopt(&["--json"]).json();
        assert_eq!((&found["preset"], &found["claims"]), (&Value::Null, &"table".into()), "{found:#}");
        for (column, role) in [
            ("id", "id"),
            ("event_type", "topic"),
            ("aggregate_id", "key"),
            ("body", "payload"),
            ("created_at", "created"),
            ("state", "status"),
            ("claimed_by", "owner"),
            ("claimed_until", "lease_end"),
            ("attempts", "attempts"),
            ("last_error", "error"),
            ("sent_at", "published_at"),
        ] {
            assert_eq!(taken(&found, column).as_deref(), Some(role), "{found:#}");
        }
        assert_eq!(taken(&found, "order_id"), None);
        let config = found["config"].as_str().unwrap();
        let words = r#"words = { pending = "NEW", published = "SENT", failed = "FAILED", dead = "DEAD" }"#;
        assert!(config.contains(words), "{config}");
        let task = &found["to_do"][0];
        assert!(task["what"].as_str().unwrap().contains("no index"), "{found:#}");
        assert!(task["run"].as_str().unwrap().starts_with("CREATE INDEX"), "{found:#}");
        host.mend();

        // What it writes delivers what waits, in the host's own words.
        let text = config.replace("{ env = \"SENDOFF_STORE\" }", &format!("{:?}", host.outbox.store));
        let text = text.replace("stdout:", &format!("file:{}", host.file("events.jsonl").display()));
        std::fs::write(host.file("sendoff.toml"), text).unwrap();
        let relay = host.relay();
        host.until("all is delivered", || host.counts()["published"] == 4);
        relay.stop();
        assert_eq!(host.delivered().len(), 3);
        assert_eq!(
            host.texts(&format!("SELECT state FROM {}", host.table)),
            ["DEAD", "SENT", "SENT", "SENT", "SENT"]
        );
    }
}

#[test]
fn what_cannot_be_told_is_not_guessed() {
    // Numbers: only rows of the usual one are read, and nothing is written.
    let numbers = on_sqlite(
        "CREATE TABLE {table} (id INTEGER PRIMARY KEY, topic TEXT, payload TEXT, status INTEGER NOT NULL DEFAULT 0, locked_by TEXT, locked_until TEXT, attempts INTEGER)",
    );
    numbers.outbox.sql(&format!(
        "INSERT INTO {} (topic, payload, status) VALUES ('t', 'x', 0), ('t', 'x', 1)",
        numbers.table
    ));
    let found = numbers.adopt(&["--json", "--shadow"]).json();
    assert_eq!(found["claims"], "beside_reading", "{found:#}");
    assert!(found["config"].as_str().unwrap().contains("only = { status = 0 }"), "{found:#}");
    assert!(found["notes"].to_string().contains("what they mean only the host's code says"), "{found:#}");
    assert_eq!(found["shadow"]["rows"], 1);

    let at =
        on_sqlite("CREATE TABLE {table} (id INTEGER PRIMARY KEY, type TEXT, data TEXT, processed_at TEXT)");
    let found = at.adopt(&["--json"]).json();
    assert!(
        found["notes"].to_string().contains("Rows cannot be chosen by whether processed_at is set"),
        "{found:#}"
    );

    let flag = on_sqlite(
        "CREATE TABLE {table} (id INTEGER PRIMARY KEY, type TEXT, data TEXT, processed BOOLEAN NOT NULL DEFAULT 0)",
    );
    assert!(
        flag.adopt(&["--json"]).json()["config"].as_str().unwrap().contains("only = { processed = false }")
    );

    let bare = on_sqlite("CREATE TABLE {table} (a TEXT, payload TEXT)");
    let done = bare.adopt(&[]);
    assert_eq!(done.code, 1, "{}{}", done.text, done.errors);
    assert!(
        done.text.contains("It cannot be adopted as it is") && done.text.contains("primary key"),
        "{}",
        done.text
    );
    assert_eq!(bare.adopt(&["--json"]).json()["config"], Value::Null);

    let odd = on_sqlite("CREATE TABLE {table} (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)");
    let done = odd.adopt(&[]);
    assert!(done.code == 1 && done.text.contains("content of an event"), "{}", done.text);
}

#[test]
fn enums_say_their_words_before_there_is_a_row() {
    for place in places() {
        let kind = match place.store.split(':').next().unwrap() {
            "postgres" => {
                let name = format!("words_{:x}", fastrand::u64(..));
                place.sql(&format!("CREATE TYPE {name} AS ENUM ('Pending', 'Sent', 'Dead')"));
                name
            }
            "mysql" => "ENUM('Pending', 'Sent', 'Dead')".to_owned(),
            _ => continue,
        };
        let ddl = WHOLE.replace(
            "state VARCHAR(20) NOT NULL DEFAULT 'NEW'",
            &format!("state {kind} NOT NULL DEFAULT 'Pending'"),
        );
        let found = Host::with(place, "own", &ddl).adopt(&["--json"]).json();
        assert_eq!(found["claims"], "table", "{found:#}");
        let words = r#"words = { pending = "Pending", published = "Sent", dead = "Dead" }"#;
        assert!(found["config"].as_str().unwrap().contains(words), "{found:#}");
    }
}

#[test]
fn a_shadow_says_what_would_be_delivered_and_what_would_not() {
    for place in places() {
        let mut host = Host::of(place, "adr003");
        host.fill(4);
        let table = &host.table;
        let row = |number: u32, kind: &str, event: &str| {
            format!(
                "('00000000-0000-4000-9000-{number:012}', '{kind}', 'k', '{event}', '1', '2024-01-01 00:00:00')"
            )
        };
        // A topic has no line breaks.
        let rows = [row(1, "shop", "Paid"), row(2, "\n", "Paid")];
        host.outbox.sql(&format!("INSERT INTO {table} (id, aggregate_type, aggregate_id, event_type, payload, created_at) VALUES {}", rows.join(", ")));
        host.outbox.sql(&format!("UPDATE {table} SET status = 'PUBLISHED' WHERE aggregate_id = 'k0'"));
        let before = host.everything();
        let done = host.adopt(&["--shadow", "--first", "2", "--json"]);
        assert_eq!(done.code, 0, "{}", done.errors);
        let found = done.json();
        let shadow = &found["shadow"];
        assert_eq!((&shadow["rows"], &shadow["whole"]), (&5.into(), &true.into()), "{shadow:#}");
        let topics = serde_json::json!([
            { "target": "default", "topic": "orders.Placed", "rows": 3, "served": true },
            { "target": "default", "topic": "shop.Paid", "rows": 1, "served": true }
        ]);
        assert_eq!(shadow["topics"], topics, "{shadow:#}");
        assert_eq!(shadow["refused"][0]["rows"], 1, "{shadow:#}");
        assert!(shadow["refused"][0]["why"].as_str().unwrap().contains("control character"), "{shadow:#}");
        assert_eq!(shadow["first"].as_array().unwrap().len(), 2);
        assert!(shadow["oldest_seconds"].as_f64().unwrap() > 1e7);
        let text = host.adopt(&["--shadow"]).text;
        assert!(text.contains("nothing was claimed") && text.contains("Would be given up at once"), "{text}");
        assert!(!text.contains('\u{1b}'), "colour is for terminals");
        assert_eq!(host.everything(), before);
    }
}

/// The proof that nothing is written: who looks could not.
#[test]
fn a_role_that_may_only_read_can_look_and_changes_nothing() {
    for place in places() {
        let mut host = Host::of(place, "framework");
        host.fill(5);
        let table = host.table.clone();
        let role = format!("reader_{:x}", fastrand::u32(..));
        let before = host.everything();
        let reader = match host.database() {
            "postgres" => {
                host.outbox.sql(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON {table} TO {role}"));
                host.outbox.store.replacen("sendoff@", &format!("{role}@"), 1)
            }
            "mysql" => {
                host.outbox.sql(&format!("CREATE USER '{role}'@'%' IDENTIFIED BY 'pw'"));
                host.outbox.sql(&format!("GRANT SELECT ON {table} TO '{role}'@'%'"));
                let rest = host.outbox.store.split_once('@').unwrap().1;
                format!("mysql://{role}:pw@{rest}")
            }
            _ => format!("{}?mode=ro", host.outbox.store),
        };
        let looking = Outbox { store: reader, names: None, directory: tempfile::tempdir().unwrap() };
        let done = looking.run(&["adopt", &table, "--shadow", "--json"]);
        assert_eq!(done.code, 0, "{}: {}", host.database(), done.errors);
        let found = done.json();
        if host.database() != "sqlite" {
            assert_eq!(found["rights"], serde_json::json!(["SELECT"]));
            assert_eq!(found["claims"], "beside_reading", "{found:#}");
            assert!(found["notes"].to_string().contains("may not UPDATE"), "{found:#}");
        }
        assert_eq!(found["shadow"]["rows"], 5, "{found:#}");
        // The mapping of who may write, looked at by who may not.
        host.configure_preset();
        let mut configured = host.command(&["adopt", "--shadow", "--json"]);
        let configured = crate::program::Done::of(configured.args(["--store", &looking.store]));
        assert_eq!(configured.code, 0, "{}: {}", host.database(), configured.errors);
        assert_eq!(configured.json()["shadow"]["rows"], 5);
        assert_eq!(host.everything(), before);
    }
}

#[test]
fn a_table_that_is_not_there_is_named() {
    for place in places() {
        let done = place.run(&["adopt", "no_such_table"]);
        assert_eq!(done.code, 4, "{}{}", done.text, done.errors);
        assert!(done.errors.contains("no such table"), "{}", done.errors);
        let done = place.run(&["adopt", "a.b.c"]);
        assert!(done.code == 2 && done.errors.contains("a.b.c"), "{}", done.errors);
        let done = place.run(&["adopt"]);
        assert!(done.code == 2 && done.errors.contains("which table?"), "{}", done.errors);
    }
}
