//! What an outbox can be found to suffer from, whatever it is in.

use crate::outbox::{Outbox, Receiver};
use crate::report::Report;

const HOUR: i64 = 3_600_000_000;

fn only(outbox: &Outbox, code: &str, severity: &str, words: &[&str]) {
    let report = Report::of(outbox, &[]);
    assert_eq!(report.codes(), [code], "{:#}", report.json);
    let (found, what, todo) = report.one(code);
    assert_eq!(found, severity);
    assert_eq!(report.code, if severity == "note" { 0 } else { 1 });
    for word in words {
        assert!(what.contains(word) || todo.contains(word), "{word} in {what} {todo}");
    }
}

#[test]
fn nobody_delivers() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t", "--target", "billing"]);
    only(&outbox, "no-worker", "problem", &["1 events of target billing", "sendoff run --target billing"]);
    assert_eq!(Report::of(&outbox, &["--target", "other"]).code, 0, "another target is healthy");
    outbox.ok(&["pause", "billing"]);
    only(&outbox, "paused", "warning", &["billing", "sendoff resume billing"]);
}

#[test]
fn dead_letters_are_a_note() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t"]);
    outbox.bury(1);
    let report = Report::of(&outbox, &[]);
    assert_eq!(report.one("dead-letters").0, "note");
    assert!(report.one("dead-letters").1.starts_with("1 events of target default are dead"));
}

#[test]
fn workers_that_are_lost_or_too_many() {
    let outbox = Outbox::new();
    outbox.sql(
        "INSERT INTO sendoff_worker VALUES ('0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001', 'default', 'old', 0, 0, 1000000)",
    );
    only(&outbox, "silent-worker", "warning", &["(old) of target default", "1970-01-01", "sendoff run"]);
    let _first = outbox.relay("null:");
    let _second = outbox.relay("null:");
    let live = |json: serde_json::Value| {
        json["workers"].as_array().unwrap().iter().filter(|worker| worker["expired"] == false).count()
    };
    outbox.until("both are there", || live(outbox.json(&["workers"])) == 2);
    let report = Report::of(&outbox, &["--workers", "2"]);
    assert_eq!(report.code, 0, "{:#}", report.json);
    let (severity, what, _) = report.one("same-name");
    assert_eq!((severity, what), ("note", "2 live workers of target default are called sendoff."));
    let report = Report::of(&outbox, &["--workers", "1", "--target", "default"]);
    assert_eq!((report.code, report.one("worker-count").0), (1, "warning"));
    assert!(
        report.one("worker-count").1.starts_with("2 workers of target default are there, and 1 should be")
    );
}

/// Not those of one relay, nor those that stand by.
#[test]
fn two_relays_of_one_range() {
    let outbox = Outbox::new();
    let are_there = |count: usize| outbox.json(&["workers"])["workers"].as_array().unwrap().len() == count;
    let _rest = outbox.relay_with("null:", &["--name", "rest", "--lanes", "16..63", "--workers", "2"]);
    let first = outbox.relay_with("null:", &["--name", "first", "--lanes", "0..15"]);
    outbox.until("they are there", || are_there(3));
    let report = Report::of(&outbox, &[]);
    assert_eq!((report.code, report.codes()), (0, vec!["same-name"]), "{:#}", report.json);
    let second = outbox.relay_with("null:", &["--name", "second", "--lanes", "0..15"]);
    outbox.until("it is there", || are_there(4));
    let report = Report::of(&outbox, &[]);
    let (severity, what, _) = report.one("same-range");
    assert_eq!((report.code, severity), (1, "warning"));
    assert_eq!(what, "2 live relays of target default were started for the lanes 0..15.");
    first.stop();
    second.stop();
    let exclusive = ["--name", "third", "--lanes", "0..15", "--exclusive"];
    let _standing_by = [outbox.relay_with("null:", &exclusive), outbox.relay_with("null:", &exclusive)];
    outbox.until("they are there", || are_there(4));
    let report = Report::of(&outbox, &[]);
    assert!(report.code == 0 && report.is_silent_about("same-range"), "{:#}", report.json);
    let _beside = outbox.relay_with("null:", &["--name", "beside", "--lanes", "8..15"]);
    outbox.until("it is there", || are_there(5));
    let report = Report::of(&outbox, &[]);
    let (severity, what, _) = report.one("exclusive-beside");
    assert_eq!((report.code, severity), (1, "warning"));
    assert!(
        what.contains("(third)") && what.contains("(beside) is not exclusive, for the lanes 8..15"),
        "{what}"
    );
}

#[test]
fn lanes_that_no_worker_may_have() {
    let outbox = Outbox::new();
    let _relay = outbox.relay_with("null:", &["--lanes", "0..15,20"]);
    outbox.until("it is there", || !outbox.json(&["workers"])["workers"].as_array().unwrap().is_empty());
    only(&outbox, "uncovered-lanes", "warning", &["may have the lanes 16..19,21..63", "0 events wait"]);
    // Without a key, an event's lane is its position's.
    for _ in 0..64 {
        outbox.enqueue(&["t"]);
    }
    let report = || Report::of(&outbox, &[]);
    outbox.until("the rest is delivered", || outbox.counts("default")["processing"] == 0);
    let found = report();
    let (severity, what, todo) = found.one("uncovered-lanes");
    assert_eq!((found.code, severity), (1, "problem"));
    assert!(
        what.ends_with("47 events wait in them.") && todo.contains("--lanes 16..19,21..63"),
        "{what} {todo}"
    );
    let _rest = outbox.relay("null:");
    outbox.until("all is delivered", || outbox.counts("default")["unprocessed"] == 0);
    assert!(report().is_silent_about("uncovered-lanes"));
}

#[test]
fn lanes_whose_owners_are_lost() {
    let outbox = Outbox::new();
    outbox
        .sql("INSERT INTO sendoff_lane (target, lane, crashes) VALUES ('default', 7, 3), ('default', 8, 1)");
    only(&outbox, "careful-lane", "warning", &["getting on: 7.", "Lane 7 has lost 3 in a row"]);
}

#[test]
fn what_is_late_though_a_worker_is_there() {
    let outbox = Outbox::new();
    // Down, for the relay: no attempt is spent.
    let receiver = Receiver::start("404 Not Found");
    let id = outbox.enqueue(&["t", "--key", "k"]);
    let _relay = outbox.relay(&receiver.url);
    outbox.until("it has the lanes", || outbox.json(&["workers"])["workers"][0]["lanes"] == 64);
    assert!(Report::of(&outbox, &[]).is_silent_about("late"), "it was written just now");
    outbox.sql("UPDATE sendoff_event SET created_at = created_at - 3600000000");
    let report = Report::of(&outbox, &[]);
    let late: Vec<_> =
        ["late", "late-key"].into_iter().filter(|code| !report.is_silent_about(code)).collect();
    assert_eq!(late, ["late"], "{:#}", report.json);
    assert!(report.one("late").1.contains(&id) && report.one("late").1.contains("1h"), "{:#}", report.json);
}

/// Rows as they are after failures: what brings them about is the relay's affair.
#[test]
fn keys_that_wait() {
    let outbox = Outbox::new();
    let now = i64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros(),
    )
    .unwrap();
    let park = |id: i64, key: &str, reason: &str, due: &str, written: i64| {
        outbox.sql(&format!(
            "INSERT INTO sendoff_parked VALUES ('default', 1, {id}, 't', '{key}', x'00', NULL, NULL, \
             '0190c2a4-7b5e-7c3a-9f00-5d2a61b7c00{id}', {written}, '{reason}', {due}, 4, 0, 'transient', 'no', {})",
            now - 2 * HOUR
        ));
    };
    park(1, "k-1", "blocked", "NULL", now);
    park(2, "k-1", "behind", "NULL", now);
    only(
        &outbox,
        "blocked-keys",
        "warning",
        &["1 keys", "1 events behind", "Key \"k-1\"", "2h", "--key KEY"],
    );
    outbox.sql("DELETE FROM sendoff_parked");
    park(3, "k-2", "retry", "1", now - 2 * HOUR);
    only(&outbox, "late-key", "warning", &["Key \"k-2\"", "2h", "4 times: no", "5d2a61b7c003"]);
    outbox.sql("DELETE FROM sendoff_parked");
    park(4, "k-3", "retry", "1", now);
    assert_eq!(Report::of(&outbox, &[]).codes(), [""; 0], "it has just failed");
}

/// One lane has most of what waits, and history has an id twice.
fn skew_and_ids(outbox: &Outbox, run: impl Fn(&str), event: &str, published: &str, numbers: &str, id: &str) {
    run(&format!("INSERT INTO {event} (topic, {}, payload) SELECT 't', 'hot', 'x' {numbers}", key(event)));
    let columns = "target, lane, id, topic, payload, event_id, created_at, published_at";
    for position in [1, 2] {
        let moment = if published.contains("sendoff_") { "0" } else { "CURRENT_TIMESTAMP" };
        run(&format!(
            "INSERT INTO {published} ({columns}) VALUES ('default', 0, {position}, 't', '', {id}, {moment}, {moment})"
        ));
    }
    let report = Report::of(outbox, &[]);
    let (severity, what, _) = report.one("lane-skew");
    assert!(severity == "warning" && what.contains("10001 or more of 10001"), "{what}");
    let (severity, what, _) = report.one("reused-event-id");
    assert!(severity == "warning" && what.contains("1 ids"), "{what}");
    assert!(report.is_silent_about("fetch-not-by-index"), "{:#}", report.json);
}

fn key(event: &str) -> &'static str {
    if event.contains('`') { "`key`" } else { "key" }
}

#[test]
fn skew_and_ids_on_sqlite() {
    let outbox = Outbox::new();
    let numbers = "FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT i FROM n)";
    let id = "'0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001'";
    skew_and_ids(&outbox, |sql| outbox.sql(sql), "sendoff_event", "sendoff_published", numbers, id);
}

#[test]
fn skew_and_ids_on_postgres() {
    let Some(outbox) = Outbox::on_server("SENDOFF_TEST_POSTGRES15") else { return };
    let table = |name: &str| format!("\"{}\".{name}", outbox.names.as_ref().unwrap());
    let id = "'0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001'";
    let numbers = "FROM generate_series(1, 10001)";
    skew_and_ids(&outbox, |sql| outbox.sql(sql), &table("event"), &table("published"), numbers, id);
}

#[test]
fn skew_and_ids_on_mariadb() {
    let Some(outbox) = Outbox::on_server("SENDOFF_TEST_MARIADB") else { return };
    let table = |name: &str| format!("`{}{name}`", outbox.names.as_ref().unwrap());
    let id = "UNHEX('0190c2a47b5e7c3a9f005d2a61b7c001')";
    skew_and_ids(
        &outbox,
        |sql| outbox.sql(sql),
        &table("event"),
        &table("published"),
        "FROM seq_1_to_10001",
        id,
    );
}

/// Workers of other machines, of which there is no more than the row.
fn add_worker(outbox: &Outbox, id: u8, minutes_ago: u32) {
    outbox.sql(&format!(
        "INSERT INTO sendoff_worker VALUES ('0190c2a4-7b5e-7c3a-9f00-5d2a61b7c0{id:02}', 'default', 'added-{id}', 0, \
         (unixepoch() - 60 * {minutes_ago}) * 1000000, (unixepoch() + 3600) * 1000000)"
    ));
}

#[test]
fn retries_that_began_when_workers_were_added() {
    let outbox = Outbox::new();
    let receiver = Receiver::start("500 Internal Server Error");
    for number in 0..30 {
        outbox.enqueue(&["t", "--key", &format!("key-{number}")]);
    }
    let relay = outbox.relay(&receiver.url);
    outbox.until("all have failed", || outbox.counts("default")["failed"] == 30);
    drop(relay);
    outbox.sql("DELETE FROM sendoff_worker");
    outbox.sql("UPDATE sendoff_parked SET parked_at = unixepoch() * 1000000");
    add_worker(&outbox, 1, 600);
    let is_silent = || Report::of(&outbox, &[]).is_silent_about("retries-after-scale-out");
    assert!(is_silent(), "nobody was added");
    add_worker(&outbox, 2, 10);
    let report = Report::of(&outbox, &[]);
    let (severity, what, _) = report.one("retries-after-scale-out");
    assert_eq!((report.code, severity), (1, "warning"), "{:#}", report.json);
    assert!(what.contains("(added-2) of target default came 10m") && what.contains("30 events"), "{what}");
    // As many failed before it came.
    outbox.sql("UPDATE sendoff_parked SET parked_at = (unixepoch() - 900) * 1000000 WHERE id % 2 = 0");
    assert!(is_silent(), "they fail as they did before");
}
