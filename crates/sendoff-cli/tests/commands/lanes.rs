//! Relays with lanes of their own, and relays of which one works.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::every_store::on_every_store;
use crate::outbox::{Outbox, Relay};
use crate::program::{program, run};

/// A sink of its own, and the ids that it was given.
struct Journal(std::path::PathBuf);

impl Journal {
    fn new(outbox: &Outbox, name: &str) -> Self {
        Self(outbox.directory.path().join(name))
    }

    fn sink(&self) -> String {
        format!("file:{}", self.0.display())
    }

    /// Each as often as it came.
    fn ids(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// Events of so many keys; their ids with their lanes.
fn enqueue(outbox: &Outbox, count: usize) -> Vec<(String, u64)> {
    let lines: String =
        (0..count).map(|number| format!("{{\"topic\": \"t\", \"key\": \"key-{number}\"}}\n")).collect();
    assert_eq!(outbox.enqueue_lines(lines.as_bytes(), &[]).code, 0);
    let listed = outbox.json(&["list", "unprocessed", "--limit", "1000"]);
    let events = listed["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| (event["id"].as_str().unwrap().to_owned(), event["lane"].as_u64().unwrap()))
        .collect()
}

fn is_empty(outbox: &Outbox) -> bool {
    let counts = outbox.counts("default");
    ["unprocessed", "processing", "abandoned"].iter().all(|state| counts[state] == 0)
}

/// How many lanes each live worker has.
fn held(outbox: &Outbox) -> Vec<u64> {
    let workers = outbox.json(&["workers"]);
    let live = workers["workers"].as_array().unwrap().iter().filter(|worker| worker["expired"] == false);
    let mut held: Vec<u64> = live.map(|worker| worker["lanes"].as_u64().unwrap()).collect();
    held.sort_unstable();
    held
}

fn two_ranges(outbox: &Outbox) {
    let written = enqueue(outbox, 200);
    let journals = [Journal::new(outbox, "low.jsonl"), Journal::new(outbox, "high.jsonl")];
    let low = outbox.relay_with(&journals[0].sink(), &["--lanes", "0..31"]);
    let of_low: BTreeSet<String> =
        written.iter().filter(|(_, lane)| *lane <= 31).map(|(id, _)| id.clone()).collect();
    outbox.until("the first half is delivered", || journals[0].ids().len() >= of_low.len());
    let (waiting, lane) = written.iter().find(|(_, lane)| *lane > 31).unwrap();
    let text = outbox.ok(&["explain", waiting]);
    assert!(text.starts_with(&format!("Nobody has its lane, {lane}, and nobody will take it")), "{text}");
    assert_eq!(outbox.json(&["explain", waiting])["why"], "uncovered");
    assert!(outbox.ok(&["lanes"]).lines().last().unwrap().ends_with("no worker may have it"));
    let lanes = outbox.json(&["lanes"]);
    assert_eq!(
        (&lanes["lanes"][31]["covered"], &lanes["lanes"][32]["covered"]),
        (&true.into(), &false.into())
    );
    assert!(outbox.ok(&["workers"]).contains("0..31"));
    let high = outbox.relay_with(&journals[1].sink(), &["--lanes", "32..63"]);
    outbox.until("all is delivered", || is_empty(outbox));
    outbox.until("each has its half", || held(outbox) == [32, 32]);
    low.stop();
    high.stop();
    let [low, high] = journals.map(|journal| journal.ids());
    assert_eq!((low.len(), low.into_iter().collect::<BTreeSet<_>>()), (of_low.len(), of_low.clone()));
    let rest: BTreeSet<String> =
        written.into_iter().map(|(id, _)| id).filter(|id| !of_low.contains(id)).collect();
    assert_eq!((high.len(), high.into_iter().collect()), (rest.len(), rest));
}

fn one_of_two(outbox: &Outbox) {
    let journals: Vec<Journal> =
        (0..3).map(|number| Journal::new(outbox, &format!("{number}.jsonl"))).collect();
    let start = |number: usize, lease: &str| {
        outbox.relay_with(&journals[number].sink(), &["--exclusive", "--lease", lease])
    };
    let active = start(0, "2");
    outbox.until("the first works", || held(outbox) == [64]);
    let next = start(1, "30");
    outbox.until("the second stands by", || held(outbox) == [0, 64]);
    enqueue(outbox, 100);
    outbox.until("all is delivered", || journals[0].ids().len() == 100);
    // SIGKILL: nothing is given back.
    drop(active);
    enqueue(outbox, 100);
    outbox.until("the second takes over", || journals[1].ids().len() >= 100);
    outbox.until("nothing is left", || is_empty(outbox));
    let last = start(2, "2");
    outbox.until("the third stands by", || held(outbox) == [0, 64]);
    let stopped = Instant::now();
    next.stop();
    outbox.until("the third takes over", || held(outbox) == [64]);
    assert!(stopped.elapsed() < Duration::from_secs(15), "a lease that was given back was waited for");
    enqueue(outbox, 100);
    outbox.until("all is delivered", || journals[2].ids().len() == 100);
    last.stop();
    let came: Vec<BTreeSet<String>> =
        journals.iter().map(|journal| journal.ids().into_iter().collect()).collect();
    // What the killed one had in hand may come again from the second; nothing else comes twice.
    let all: BTreeSet<&String> = came.iter().flatten().collect();
    assert_eq!((all.len(), came[0].len(), came[2].len()), (300, 100, 100));
    assert!(came[2].is_disjoint(&came[1]), "a relay that stopped has its events repeated");
}

on_every_store!(two_ranges, one_of_two);

#[test]
fn lanes_that_are_none_are_refused_with_those_there_are() {
    let outbox = Outbox::new();
    for (lanes, expected) in [
        ("0..64", "there is no lane 64: a target has the lanes 0..63"),
        ("9..3", "ends before it begins: write 3..9"),
        ("0..=15", "names no lanes: write 0..15"),
    ] {
        let done = outbox.run(&["run", "--sink", "null:", "--lanes", lanes]);
        assert_eq!(done.code, 2, "{}", done.errors);
        assert!(done.errors.contains(expected), "{}", done.errors);
    }
    let done = outbox.run(&["run", "--sink", "null:", "--exclusive", "--workers", "2"]);
    assert_eq!(done.code, 2, "{}", done.errors);
    assert!(done.errors.contains("exclusive means one worker, and workers is 2"), "{}", done.errors);
}

#[test]
fn lanes_are_keys_of_a_target() {
    let outbox = Outbox::new();
    let path = outbox.directory.path().join("sendoff.toml");
    let file = path.to_str().unwrap();
    let write = |keys: &str| {
        let store = &outbox.store;
        let text = format!("[store]\nurl = \"{store}\"\n\n[targets.default]\nsink = \"null:\"\n{keys}\n");
        std::fs::write(&path, text).unwrap();
        run(&["config", "check", file])
    };
    for (keys, expected) in [
        ("lanes = \"0..99\"", "line 6: there is no lane 99: a target has the lanes 0..63"),
        ("lane = \"0..15\"", "did you mean `lanes`?"),
        ("exclusiv = true", "did you mean `exclusive`?"),
        ("exclusive = true\nworkers = 3", "exclusive means one worker, and workers is 3"),
    ] {
        let done = write(keys);
        assert!(done.code == 2 && done.errors.contains(expected), "{keys}: {}", done.errors);
    }
    assert_eq!(write("lanes = \"0..7,12\"\nexclusive = true").code, 0);
    let mut relay = program();
    relay.args(["run", "--config", file]);
    let _relay = Relay::of(relay);
    outbox.until("it has its lanes", || held(&outbox) == [9]);
    let worker = &outbox.json(&["workers"])["workers"][0];
    assert_eq!((&worker["range"], &worker["exclusive"]), (&"0..7,12".into(), &true.into()));
}
