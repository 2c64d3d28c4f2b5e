//! Why an event has not been delivered: each case as it comes about, with its sentence.

use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::outbox::{Outbox, Receiver};

/// A few leases of the relays here.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// A word, and how the sentence begins. It stays so, but for a moment in which a relay that got no processor is taken for lost.
#[track_caller]
fn says(outbox: &Outbox, id: &str, why: &str, begins: &str) -> Value {
    let said = || (outbox.run(&["explain", id, "--json"]).json(), outbox.run(&["explain", id]).text);
    let (mut explained, mut text) = said();
    let began = Instant::now();
    while (explained["why"] != why || !text.starts_with(begins)) && began.elapsed() < SETTLES_WITHIN {
        std::thread::sleep(Duration::from_millis(50));
        (explained, text) = said();
    }
    assert_eq!((&explained["why"], &explained["event_id"]), (&why.into(), &id.into()), "{explained:#}");
    assert!(text.starts_with(begins), "{text}");
    let begins = begins.lines().next().unwrap();
    assert!(explained["sentence"].as_str().unwrap().starts_with(begins), "{explained:#}");
    explained
}

fn is(outbox: &Outbox, id: &str, why: &str) -> bool {
    outbox.run(&["explain", id, "--json"]).json()["why"] == why
}

/// A moment about so far from now: the sentence has the database's time, and both are on this machine.
#[track_caller]
fn is_about(moment: &Value, from_now: Duration) {
    let at = humantime::parse_rfc3339(moment.as_str().unwrap()).unwrap();
    let expected = SystemTime::now() + from_now;
    let apart = at.duration_since(expected).unwrap_or_else(|early| early.duration());
    assert!(apart < Duration::from_secs(120), "{moment} is not about {from_now:?} from now");
}

/// As soon as no worker can have them in hand any more.
fn take_out(outbox: &Outbox, ids: &[&str]) {
    for id in ids {
        outbox.until("it is taken out", || outbox.run(&["cancel", id]).code == 0);
    }
}

fn what_waits(outbox: &Outbox) {
    let later = outbox.enqueue(&["t", "--deliver-at", "2126-01-31T12:00:00Z"]);
    let explained = says(
        outbox,
        &later,
        "not_due",
        "It is to be delivered at 2126-01-31T12:00:00.000Z, which is not yet.\n",
    );
    assert_eq!(explained["at"], "2126-01-31T12:00:00.000Z");
    let id = outbox.enqueue(&["t", "--key", "k"]);
    says(outbox, &id, "no_worker", "No worker is there for its target.\n`sendoff run`");
    outbox.ok(&["pause", "default"]);
    says(outbox, &id, "target_paused", "Its target is paused by an operator.\n`sendoff resume");
    outbox.ok(&["resume", "default"]);
    let second = outbox.enqueue(&["t", "--key", "k"]);
    // Long enough that no call of the sink is given up meanwhile.
    let _relay = outbox.run_relay(&["--sink", &Receiver::silent().url, "--lease", "60"]);
    outbox.until("a worker has it", || is(outbox, &id, "leased"));
    let explained = says(outbox, &id, "leased", "Worker ");
    let worker = outbox.json(&["workers"])["workers"][0]["worker"].as_str().unwrap().to_owned();
    let begins = format!("Worker {worker} (sendoff) has its lane, {}, until 20", explained["lane"]);
    let explained = says(outbox, &id, "leased", &begins);
    assert_eq!((&explained["worker"], &explained["before"]), (&worker.as_str().into(), &0.into()));
    is_about(&explained["until"], Duration::from_secs(60));
    let explained = says(outbox, &second, "leased", "Worker ");
    assert!(
        explained["sentence"].as_str().unwrap().ends_with("one event of the lane goes first."),
        "{explained}"
    );
}

fn what_lost_its_worker(outbox: &Outbox) {
    let relay = outbox.relay("null:");
    let worker = || outbox.json(&["workers"])["workers"][0].clone();
    outbox.until("it has the lanes", || worker()["lanes"] == 64);
    let worker = worker()["worker"].as_str().unwrap().to_owned();
    drop(relay);
    let id = outbox.enqueue(&["t"]);
    outbox.until("its worker is known to be lost", || is(outbox, &id, "abandoned"));
    let explained = says(outbox, &id, "abandoned", &format!("Worker {worker} had its lane, "));
    is_about(&explained["since"], Duration::ZERO);
}

fn what_failed(outbox: &Outbox) {
    let receiver = Receiver::start("503 Service Unavailable");
    let first = outbox.enqueue(&["t", "--key", "k", "--header", "sendoff-retry=base=1h cap=1h"]);
    let second = outbox.enqueue(&["t", "--key", "k"]);
    let relay = outbox.relay(&receiver.url);
    outbox.until("it is parked", || outbox.counts("default")["failed"] == 2);
    let explained = says(outbox, &first, "parked", "It failed and is tried again at 20");
    assert_eq!((&explained["failures"], &explained["failure"]["cause"]), (&1.into(), &"transient".into()));
    let sentence = explained["sentence"].as_str().unwrap();
    assert!(sentence.contains(", after failing once: transient, "), "{sentence}");
    let behind = format!("It waits behind event {first} of its key, at position ");
    let explained = says(outbox, &second, "behind", &behind);
    assert_eq!(explained["behind"], first.as_str());
    drop(relay);
    take_out(outbox, &[&second, &first]);
    // Blocked: the policy is the target's.
    let config = outbox.directory.path().join("sendoff.toml");
    let target = format!(
        "[relay]\nlease = \"2s\"\n[targets.default]\nsink = {:?}\non_exhausted = \"block\"\nretry = {{ attempts = 1 }}\n",
        receiver.url
    );
    std::fs::write(&config, target).unwrap();
    let blocked = outbox.enqueue(&["t", "--key", "k"]);
    let relay = outbox.run_relay(&["--config", config.to_str().unwrap()]);
    outbox.until("it is blocked", || outbox.counts("default")["failed"] == 1);
    let begins =
        "Its attempts ran out after failing once, and it waits for an operator, as its key does: transient, ";
    let explained = says(outbox, &blocked, "parked", begins);
    assert_eq!(explained["until"], Value::Null);
    drop(relay);
    take_out(outbox, &[&blocked]);
    let dead = outbox.enqueue(&["t"]);
    outbox.bury(1);
    let explained = says(outbox, &dead, "dead", "It is dead since 20");
    assert!(
        explained["sentence"].as_str().unwrap().contains(", after failing once: rejected, "),
        "{explained}"
    );
    is_about(&explained["since"], Duration::ZERO);
}

fn what_is_over_or_held_up_by_its_sink(outbox: &Outbox) {
    let unknown = "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001";
    says(
        outbox,
        unknown,
        "no_such_event",
        &format!("There is no event {unknown}: it was delivered and is not kept"),
    );
    let id = outbox.enqueue(&["t"]);
    // For the relay, a path that is not there is a sink that is down.
    let relay = outbox.relay(&Receiver::start("404 Not Found").url);
    outbox.until("it is known to be down", || is(outbox, &id, "sink_down"));
    let explained = says(outbox, &id, "sink_down", "Its sink is down since 20");
    is_about(&explained["since"], Duration::ZERO);
    let sentence = explained["sentence"].as_str().unwrap();
    assert!(sentence.contains("404") && sentence.contains("no attempt is spent"), "{sentence}");
    assert!(outbox.ok(&["workers"]).contains("sink down since 20"));
    assert_eq!(outbox.json(&["show", &id])["failures"], 0);
    drop(relay);
    let config = outbox.directory.path().join("kept.toml");
    std::fs::write(
        &config,
        "[relay]\nlease = \"2s\"\n[targets.default]\nsink = \"null:\"\n[retention]\npublished = \"1h\"\n",
    )
    .unwrap();
    let _relay = outbox.run_relay(&["--config", config.to_str().unwrap()]);
    outbox.until("it is history", || is(outbox, &id, "published"));
    let explained = says(outbox, &id, "published", "It was delivered at 20");
    is_about(&explained["at"], Duration::ZERO);
    let live = || {
        outbox.json(&["workers"])["workers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["expired"] == true || one["sink_down"].is_null())
    };
    outbox.until("the sink that is there is not said to be down", live);
}

macro_rules! cases {
    ($($name:ident: $case:ident, $outbox:expr;)*) => {
        $(#[test]
        fn $name() {
            if let Some(outbox) = $outbox {
                $case(&outbox);
            }
        })*
    };
}

cases! {
    what_waits_on_sqlite: what_waits, Some(Outbox::new());
    what_waits_on_postgres: what_waits, Outbox::on_server("SENDOFF_TEST_POSTGRES15");
    what_lost_its_worker_on_sqlite: what_lost_its_worker, Some(Outbox::new());
    what_lost_its_worker_on_postgres: what_lost_its_worker, Outbox::on_server("SENDOFF_TEST_POSTGRES15");
    what_failed_on_sqlite: what_failed, Some(Outbox::new());
    what_failed_on_postgres: what_failed, Outbox::on_server("SENDOFF_TEST_POSTGRES15");
    what_is_over_on_sqlite: what_is_over_or_held_up_by_its_sink, Some(Outbox::new());
    what_is_over_on_mariadb: what_is_over_or_held_up_by_its_sink, Outbox::on_server("SENDOFF_TEST_MARIADB");
    what_is_over_on_postgres: what_is_over_or_held_up_by_its_sink, Outbox::on_server("SENDOFF_TEST_POSTGRES15");
}
