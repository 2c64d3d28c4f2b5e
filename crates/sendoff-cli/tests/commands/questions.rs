//! What can be asked.

use serde_json::Value;

use crate::outbox::Outbox;
use crate::program::run;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn a_tour(outbox: &Outbox) {
    let id = outbox.enqueue(&[
        "orders.placed",
        "--key",
        "o-1",
        "--payload",
        r#"{"total": 1.10}"#,
        "--header",
        "tenant=acme",
    ]);
    let text = outbox.ok(&["status"]);
    assert!(text.starts_with("TARGET") && text.contains("default"), "{text}");
    let counts = outbox.counts("default");
    let mut expected = [
        "abandoned",
        "dead",
        "failed",
        "oldest_seconds",
        "paused",
        "processing",
        "published",
        "sink_down",
        "target",
        "unprocessed",
    ];
    expected.sort_unstable();
    assert_eq!(keys(&counts), expected);
    assert_eq!(counts["unprocessed"], 1);

    let listed = outbox.json(&["list", "unprocessed"]);
    assert_eq!(listed["events"][0]["id"], id);
    assert_eq!(listed["next_after"], Value::Null);
    let text = outbox.ok(&["list", "unprocessed"]);
    assert!(text.contains("POSITION") && text.contains(&id) && text.contains("o-1"), "{text}");

    let shown = outbox.json(&["show", &id]);
    assert_eq!(
        (&shown["state"], &shown["topic"], &shown["key"]),
        (&"unprocessed".into(), &"orders.placed".into(), &"o-1".into())
    );
    assert_eq!(
        (&shown["headers"]["tenant"], shown["payload"]["total"].as_f64()),
        (&"acme".into(), Some(1.1))
    );
    let text = outbox.ok(&["show", &id]);
    assert!(text.contains("tenant: acme") && text.ends_with("{\"total\": 1.10}\n"), "{text}");

    let text = outbox.ok(&["explain", &id]);
    assert!(text.starts_with("No worker is there for its target."), "{text}");
    let explained = outbox.json(&["explain", &id]);
    assert_eq!((&explained["why"], &explained["event_id"]), (&"no_worker".into(), &id.as_str().into()));

    outbox.bury(1);
    let text = outbox.ok(&["explain", &id]);
    assert!(
        text.starts_with("It is dead since 20") && text.contains("after failing once: rejected"),
        "{text}"
    );
    assert!(text.contains(&format!("`sendoff redrive {id}`")), "{text}");
    let dead = outbox.json(&["list", "dead"]);
    assert_eq!(dead["events"][0]["failure"]["cause"], "rejected");
}

#[test]
fn a_tour_on_sqlite() {
    a_tour(&Outbox::new());
}

#[test]
fn a_tour_on_postgres() {
    if let Some(outbox) = Outbox::on_server("SENDOFF_TEST_POSTGRES15") {
        a_tour(&outbox);
    }
}

#[test]
fn a_tour_on_mariadb() {
    if let Some(outbox) = Outbox::on_server("SENDOFF_TEST_MARIADB") {
        a_tour(&outbox);
    }
}

#[test]
fn lists_are_paged() {
    let outbox = Outbox::new();
    let ids: Vec<String> = (0..3).map(|_| outbox.enqueue(&["t"])).collect();
    let first = outbox.json(&["list", "unprocessed", "--limit", "2"]);
    assert_eq!(
        (&first["events"][0]["id"], &first["events"][1]["id"]),
        (&ids[0].as_str().into(), &ids[1].as_str().into())
    );
    let after = first["next_after"].to_string();
    let second = outbox.json(&["list", "unprocessed", "--limit", "2", "--after", &after]);
    assert_eq!(
        (second["events"].as_array().unwrap().len(), &second["events"][0]["id"]),
        (1, &ids[2].as_str().into())
    );
}

#[test]
fn what_is_not_there_is_answered_with_no() {
    let outbox = Outbox::new();
    let unknown = "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001";
    for command in ["redrive", "discard"] {
        let done = outbox.run(&[command, unknown]);
        assert!(done.code == 1 && done.errors.contains("nothing that was asked for is dead"), "{command}");
        assert_eq!(outbox.run(&[command, unknown, "--json"]).json()["dry_run"], false);
    }
    for command in ["show", "explain", "cancel"] {
        let done = outbox.run(&[command, unknown]);
        assert_eq!(done.code, 1, "{command}: {}", done.text);
        assert!((done.text + &done.errors).to_lowercase().contains("there is no event"), "{command}");
        let done = outbox.run(&[command, unknown, "--json"]);
        assert_eq!(done.code, 1);
        assert!(done.json().is_object());
    }
    assert_eq!(outbox.ok(&["status"]), "nothing was ever written here\n");
    assert_eq!(outbox.ok(&["workers"]), "no worker is there: `sendoff run` starts one\n");
    assert_eq!(outbox.ok(&["lanes"]), "no worker has ever come for target \"default\"\n");
    assert_eq!(outbox.ok(&["parked"]), "no key of target \"default\" waits\n");
    assert_eq!(outbox.json(&["workers"])["workers"], serde_json::json!([]));
    assert_eq!(outbox.json(&["parked"])["keys"], serde_json::json!([]));
}

#[test]
fn workers_and_lanes_are_shown_while_a_relay_runs() {
    let outbox = Outbox::new();
    let _relay = outbox.relay("null:");
    outbox.until("the lanes are leased", || outbox.json(&["workers"])["workers"][0]["lanes"] == 64);
    let text = outbox.ok(&["workers"]);
    assert!(text.starts_with("TARGET") && text.contains("default"), "{text}");
    let lanes = outbox.json(&["lanes"]);
    assert_eq!(lanes["lanes"].as_array().unwrap().len(), 64);
    assert_eq!(lanes["lanes"][0]["name"], "sendoff");
    assert_eq!(outbox.ok(&["lanes"]).lines().count(), 65);
    let id = outbox.enqueue(&["t"]);
    outbox.until("it is delivered", || outbox.run(&["explain", &id]).code == 1);
}

/// What is written by plain SQL may hold anything; a terminal is not moved by it.
#[test]
fn hostile_names_stay_in_their_place() {
    let outbox = Outbox::new();
    outbox.sql("INSERT INTO sendoff_event (topic, key, payload) VALUES ('t', char(27) || '[2Jwiped' || char(10) || 'out', x'00')");
    let text = outbox.ok(&["list", "unprocessed"]);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("wiped\\nout"), "{text}");
}

#[test]
fn help_completions_and_manual_come_from_one_source() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.text.lines().count() <= 40, "{}", help.text);
    assert!(help.text.lines().all(|line| line.chars().count() <= 100), "{}", help.text);
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).text.contains("redrive"), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("man1");
    assert_eq!(run(&["man", path.to_str().unwrap()]).code, 0);
    let page = std::fs::read_to_string(path.join("sendoff-redrive.1")).unwrap();
    assert!(page.contains("dry\\-run"), "{page}");
    assert!(!path.join("sendoff-demo-worker.1").exists(), "hidden");
}
