//! What consumers have handled, by the library.

use sendoff::EventId;
use sendoff::inbox::Once;
use serde_json::{Value, json};

use crate::every_store::on_every_store;
use crate::outbox::Outbox;
use crate::service::Service;

fn consumer(outbox: &Outbox, name: &str) -> Value {
    let stats = outbox.json(&["inbox", "stats"]);
    let consumers = stats["consumers"].as_array().unwrap();
    consumers.iter().find(|one| one["consumer"] == name).cloned().unwrap_or(Value::Null)
}

fn what_is_remembered_is_shown_and_forgotten(outbox: &Outbox) {
    outbox.ok(&["inbox", "migrate"]);
    assert_eq!(outbox.ok(&["inbox", "stats"]), "no consumer has handled anything that is remembered\n");
    let service = Service::new(outbox);
    let events: Vec<EventId> = (0..5).map(|_| EventId::generate()).collect();
    for (number, event) in events.iter().enumerate() {
        let key = if number < 3 { "order-1" } else { "order-2" };
        let position = i64::try_from(number).unwrap();
        assert_eq!(service.handle("billing", *event, key, position), Once::First);
    }
    assert_eq!(service.handle("billing", events[0], "order-1", 0), Once::Seen);
    assert_eq!(service.handle("mailer", events[0], "order-1", 0), Once::First);
    let billing = consumer(outbox, "billing");
    assert_eq!((&billing["seen"], &billing["keys"]), (&5.into(), &2.into()));
    let ages = ["newest_seconds", "oldest_seconds"].map(|name| billing[name].as_f64().unwrap());
    assert!(0.0 <= ages[0] && ages[0] <= ages[1] && ages[1] < 3_000.0, "{ages:?}");
    let text = outbox.ok(&["inbox", "stats"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["CONSUMER", "EVENTS", "KEYS", "OLDEST", "NEWEST"]
    );
    assert!(lines[1].starts_with("billing ") && lines[2].starts_with("mailer "), "{text}");
    let knows_size = outbox.database() != "sqlite";
    assert_eq!(
        (lines.len() == 4, outbox.json(&["inbox", "stats"])["bytes"].is_u64()),
        (knows_size, knows_size)
    );

    // A month passes for two of them.
    let ids = &events[..2];
    let (quoted, ago): (fn(&EventId) -> String, _) = match outbox.database() {
        "postgres" => (|id| format!("'{id}'"), "seen_at - INTERVAL '30 days'"),
        "mysql" => (|id| format!("UNHEX(REPLACE('{id}', '-', ''))"), "seen_at - INTERVAL 30 DAY"),
        _ => (|id| format!("'{id}'"), "seen_at - 30 * 86400000000"),
    };
    let list: Vec<String> = ids.iter().map(quoted).collect();
    let (table, list) = (service.table("inbox_seen"), list.join(", "));
    outbox.sql(&format!(
        "UPDATE {table} SET seen_at = {ago} WHERE consumer = 'billing' AND event_id IN ({list})"
    ));
    assert!(consumer(outbox, "billing")["oldest_seconds"].as_f64().unwrap() > 29.0 * 86_400.0);
    assert_eq!(outbox.json(&["inbox", "purge", "--older-than", "60d"])["purged"], 0);
    assert_eq!(
        outbox.ok(&["inbox", "purge", "--older-than", "7d", "--batch", "1"]),
        "2 rows are forgotten\n"
    );
    assert_eq!(consumer(outbox, "billing")["seen"], 3);
    assert_eq!(
        service.handle("billing", events[0], "order-1", 0),
        Once::First,
        "a copy that comes so late is new"
    );
    assert_eq!(service.handle("billing", events[4], "order-2", 4), Once::Seen);

    let young = outbox.run(&["inbox", "purge", "--older-than", "0s"]);
    assert!(young.code == 2 && young.errors.contains("say --yes"), "{}", young.errors);
    assert_eq!(consumer(outbox, "billing")["seen"], 4, "nothing is forgotten unasked");
    let all = outbox.json(&["inbox", "purge", "--older-than", "0s", "--yes", "--batch", "2"]);
    assert_eq!(all["purged"], 8, "five events and three keys");
    assert_eq!(outbox.json(&["inbox", "stats"])["consumers"], json!([]));
}

fn tables_are_made_and_checked(outbox: &Outbox) {
    let missing = outbox.run(&["inbox", "migrate", "--check", "--json"]);
    assert_eq!((missing.code, missing.json()["tables"].as_str()), (4, Some("missing")));
    let done = outbox.run(&["inbox", "stats"]);
    assert!(done.code == 4 && done.errors.contains("`sendoff inbox migrate`"), "{}", done.errors);
    let script = outbox.ok(&["inbox", "migrate", "--print"]);
    assert_eq!(outbox.run(&["inbox", "migrate", "--check"]).code, 4, "printing makes none");
    outbox.sql(&script);
    for arguments in [&["inbox", "migrate", "--check"][..], &["inbox", "migrate"]] {
        assert_eq!(outbox.ok(arguments), "the inbox's tables are as this program needs them\n");
    }
    assert_eq!(outbox.json(&["inbox", "migrate"])["tables"], "current");
    let meta = Service::new(outbox).table("meta");
    outbox.sql(&format!("UPDATE {meta} SET value = '99' WHERE name = 'inbox_protocol_version'"));
    let newer = outbox.run(&["inbox", "purge", "--older-than", "7d"]);
    assert!(newer.code == 4 && newer.errors.contains("newer than this program"), "{}", newer.errors);
}

on_every_store!(what_is_remembered_is_shown_and_forgotten, tables_are_made_and_checked);

/// A consumer is a program, and its database may be another's: nobody has checked the name.
#[test]
fn hostile_names_stay_in_their_place() {
    let outbox = Outbox::new();
    outbox.ok(&["inbox", "migrate"]);
    let id = EventId::generate();
    outbox.sql(&format!(
        "INSERT INTO sendoff_inbox_seen (consumer, event_id, seen_at) VALUES (char(27) || '[2J' || char(10) || 'x'';--', '{id}', 0)"
    ));
    let text = outbox.ok(&["inbox", "stats"]);
    assert!(text.lines().count() == 2 && !text.contains('\u{1b}'), "{text}");
    assert_eq!(outbox.json(&["inbox", "stats"])["consumers"][0]["consumer"], "\u{1b}[2J\nx';--");
    assert_eq!(outbox.json(&["inbox", "purge", "--older-than", "7d"])["purged"], 1);
}

#[test]
fn bad_input_is_answered_with_what_would_be_right() {
    let outbox = Outbox::new();
    outbox.ok(&["inbox", "migrate"]);
    for (arguments, word) in [
        (&["inbox", "purge"][..], "--older-than"),
        (&["inbox", "purge", "--older-than", "soon"], "--older-than"),
        (&["inbox", "purge", "--older-than", "30m"], "--yes"),
        (&["inbox", "purge", "--older-than", "7d", "--batch", "0"], "--batch"),
        (&["inbox", "stat"], "stats"),
        (&["inbox"], "Usage: sendoff inbox"),
    ] {
        let done = outbox.run(arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.text, done.errors);
        assert!(done.errors.contains(word), "{arguments:?}: no {word:?} in {}", done.errors);
    }
}
