//! What can be done.

use crate::outbox::{Outbox, Receiver};

#[test]
fn what_waits_can_be_cancelled() {
    let outbox = Outbox::new();
    let (first, second) = (outbox.enqueue(&["t"]), outbox.enqueue(&["t"]));
    assert_eq!(outbox.ok(&["cancel", &first]), format!("event {first} is taken out\n"));
    assert_eq!(outbox.json(&["cancel", &second])["cancelled"], "yes");
    assert_eq!(outbox.run(&["cancel", &first]).code, 1);
    // One that a worker may be publishing stays.
    let third = outbox.enqueue(&["t"]);
    let _relay = outbox.run_relay(&["--sink", &Receiver::silent().url, "--lease", "60"]);
    outbox.until("a worker has it", || outbox.json(&["explain", &third])["why"] == "leased");
    let done = outbox.run(&["cancel", &third, "--json"]);
    assert_eq!((done.code, &done.json()["cancelled"]), (1, &"may_be_in_flight".into()));
    assert!(done.errors.contains("pause its target first"), "{}", done.errors);
}

#[test]
fn the_dead_come_back_or_go() {
    let outbox = Outbox::new();
    let mut ids: Vec<String> = Vec::new();
    for (topic, key) in [("a", "k"), ("a", "k"), ("a", "l"), ("b", "m"), ("b", "m"), ("b", "n")] {
        ids.push(outbox.enqueue(&[topic, "--key", key]));
    }
    outbox.bury(6);
    let dry = outbox.json(&["redrive", "--all", "--dry-run"]);
    assert_eq!((dry["dead"].as_u64(), dry["dry_run"].as_bool()), (Some(6), Some(true)));
    assert_eq!(outbox.counts("default")["dead"], 6, "a dry run changes nothing");
    assert!(outbox.ok(&["redrive", &ids[2]]).starts_with("1 dead and 0 parked"));
    assert_eq!(outbox.json(&["redrive", "--topic", "b", "--cause", "rejected", "--limit", "1"])["dead"], 1);
    let refused = outbox.run(&["discard", "--all"]);
    assert_eq!(refused.code, 2);
    assert!(refused.errors.contains("--dry-run") && refused.errors.contains("--yes"), "{}", refused.errors);
    assert_eq!(outbox.json(&["discard", "--all", "--dry-run"])["discarded"], 4);
    assert_eq!(outbox.json(&["discard", &ids[5]])["discarded"], 1, "one alone needs no --yes");
    assert_eq!(outbox.json(&["discard", "--key", "k", "--yes"])["discarded"], 2);
    let none = outbox.run(&["discard", "--topic", "a", "--dry-run", "--json"]);
    assert_eq!((none.code, &none.json()["discarded"]), (1, &0.into()), "nothing is left of it");
    let done = outbox.run(&["discard", "--error", "no such thing", "--yes"]);
    assert_eq!((done.code, done.text.as_str()), (1, "0 dead events are deleted\n"));
    assert_eq!(outbox.json(&["redrive", "--all", "--rate", "50"])["dead"], 1);
    assert_eq!(outbox.counts("default")["dead"], 0);
    let path = outbox.directory.path().join("out.jsonl");
    let _relay = outbox.relay(&format!("file:{}", path.display()));
    let delivered = || std::fs::read_to_string(&path).unwrap_or_default().lines().count();
    outbox.until("what came back is delivered", || delivered() == 3);
    assert_eq!(outbox.run(&["redrive", "--all"]).code, 1, "nothing is left");
}

#[test]
fn a_parked_key_is_shown_explained_and_redriven() {
    let outbox = Outbox::new();
    let first = outbox.enqueue(&["t", "--key", "k", "--header", "sendoff-retry=base=1h cap=1h"]);
    let second = outbox.enqueue(&["t", "--key", "k"]);
    let receiver = Receiver::start("503 Service Unavailable");
    let relay = outbox.relay(&receiver.url);
    outbox.until("it is parked", || outbox.counts("default")["failed"] == 2);
    drop(relay);
    let text = outbox.ok(&["parked"]);
    assert!(text.starts_with("KEY") && text.contains("retry"), "{text}");
    let parked = outbox.json(&["parked"]);
    assert_eq!((&parked["keys"][0]["key"], &parked["keys"][0]["behind"]), (&"k".into(), &1.into()));
    assert!(outbox.ok(&["explain", &first]).starts_with("It failed and is tried again at "));
    let text = outbox.ok(&["explain", &second]);
    assert!(text.starts_with(&format!("It waits behind event {first} of its key")), "{text}");
    assert_eq!(outbox.json(&["redrive", "--key", "k"])["parked"], 1);
    let path = outbox.directory.path().join("out.jsonl");
    let _relay = outbox.relay(&format!("file:{}", path.display()));
    let delivered = || std::fs::read_to_string(&path).unwrap_or_default();
    outbox.until("both are delivered", || delivered().lines().count() == 2);
    assert!(delivered().lines().next().unwrap().contains(&first), "in order");
}

#[test]
fn a_target_is_paused_and_goes_on() {
    let outbox = Outbox::new();
    let id = outbox.enqueue(&["t"]);
    assert!(outbox.ok(&["pause", "default"]).contains("is paused"));
    assert_eq!(outbox.counts("default")["paused"], true);
    assert!(outbox.ok(&["status"]).contains("paused"));
    assert!(outbox.ok(&["explain", &id]).starts_with("Its target is paused"));
    assert_eq!(outbox.ok(&["resume", "default"]), "target \"default\" goes on\n");
    assert_eq!(outbox.counts("default")["paused"], false);
    assert_eq!(
        outbox.json(&["pause", "default"]),
        serde_json::json!({ "target": "default", "paused": true })
    );
    assert_eq!(outbox.json(&["resume", "default"])["paused"], false);
    assert!(outbox.run(&["pause", "elsewhere"]).errors.contains("nothing was ever written"));
}

#[test]
fn what_is_old_is_purged() {
    let outbox = Outbox::new();
    (0..3).for_each(|_| drop(outbox.enqueue(&["t"])));
    outbox.bury(3);
    assert_eq!(outbox.json(&["purge", "dead", "--older-than", "1h"])["purged"], 0);
    assert_eq!(outbox.ok(&["purge", "dead", "--older-than", "0s", "--batch", "2"]), "3 events are deleted\n");
    assert_eq!(outbox.json(&["purge", "published", "--older-than", "0s"])["purged"], 0);
}
