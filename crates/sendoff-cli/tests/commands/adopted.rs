//! A relay, and the operator's commands, on a table that the host has.

use rustix::process::Signal;

use crate::host::{Host, KINDS, places};
use crate::outbox::{Receiver, Relay};

#[test]
fn each_preset_is_drained_and_counted() {
    for kind in KINDS {
        for place in places() {
            let mut host = Host::of(place, kind);
            host.configure_preset();
            host.mend();
            host.fill(60);
            assert_eq!(host.counts()["unprocessed"], 60, "{kind}");
            assert_eq!(
                host.run(&["list", "unprocessed", "--json"]).json()["events"].as_array().unwrap().len(),
                50
            );
            let relay = host.relay();
            host.until("all is delivered", || host.delivered().len() == 60);
            host.until("all is settled", || {
                let counts = host.counts();
                counts["processing"] == 0 && counts["unprocessed"] == 0 && counts["published"] == 60
            });
            relay.stop();
            assert!(host.delivered().values().all(|times| *times == 1), "{kind}: each once");
            let text = host.ok(&["list", "published", "--limit", "2"]);
            assert!(text.starts_with("ROW") && text.contains("00000000-0000-4000-8000-"), "{text}");
            let shown = host.run(&["show", "00000000-0000-4000-8000-000000000007", "--json"]).json();
            assert_eq!(shown["state"], "published", "{shown:#}");
        }
    }
}

#[test]
fn what_failed_and_what_is_dead_is_listed_with_its_reason() {
    for place in places() {
        let mut host = Host::of(place, "governance");
        host.configure_preset();
        host.mend();
        host.fill(2);
        let receiver = Receiver::start("400 Bad Request");
        let relay = Relay::of(host.with_sink(&receiver.url));
        host.until("both are dead", || host.counts()["dead"] == 2);
        relay.stop();
        let listed = host.run(&["list", "dead", "--json"]).json();
        let row = &listed["events"][0]["row"];
        assert!(row["error"].as_str().unwrap().contains("400"), "{listed:#}");
        assert_eq!(row["attempts"], 1);
        let text = host.ok(&["list", "dead"]);
        assert!(text.contains("400 Bad Request") || text.contains("400"), "{text}");
    }
}

#[test]
fn what_is_for_own_tables_says_what_to_do_instead() {
    let mut host = Host::of(places().remove(0), "governance");
    host.configure_preset();
    host.mend();
    host.fill(1);
    let event = "00000000-0000-4000-8000-000000000000";
    for (arguments, word) in [
        (&["lanes"][..], "sendoff list processing"),
        (&["workers"], "sendoff list processing"),
        (&["parked"], "sendoff list failed"),
        (&["explain", event], "sendoff show"),
        (&["redrive", "--all"], "its word for pending"),
        (&["cancel", event], "only its owner"),
        (&["discard", "--all", "--yes"], "only its owner"),
        (&["purge", "dead", "--older-than", "1d"], "only its owner"),
        (&["pause", "default"], "stop the relay"),
        (&["resume", "default"], "start it again"),
        (&["enqueue", "t"], "its owner writes"),
        (&["doctor"], "sendoff adopt"),
    ] {
        let done = host.run(arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.text, done.errors);
        assert!(
            done.errors.contains(word) && done.errors.contains(&host.table),
            "{arguments:?}: {}",
            done.errors
        );
    }
    let after = host.run(&["list", "dead", "--after", "7"]);
    assert!(after.code == 2 && after.errors.contains("--limit"), "{}", after.errors);
    let target = host.run(&["list", "dead", "--target", "x"]);
    assert!(target.code == 2 && target.errors.contains("there are: default"), "{}", target.errors);
    assert_eq!(host.ok(&["migrate"]), format!("nothing is made: the mapping fits {}\n", host.table));
    for flags in [&["--lanes", "0..3"][..], &["--exclusive"], &["--listen"]] {
        let done = host.run(&[&["run"], flags].concat());
        assert!(done.code == 2 && done.errors.contains("[table]"), "{flags:?}: {}", done.errors);
    }
}

#[test]
fn a_mapping_that_does_not_fit_is_refused_with_the_statement_that_mends_it() {
    for place in places() {
        let host = Host::of(place, "governance");
        for (table, words) in [
            (
                "preset = \"governance\"\npayload = \"EnvelopJson\"",
                &["no column `EnvelopJson`", "EnvelopeJson"][..],
            ),
            ("preset = \"governance\"\norder_by = [\"DeliveredUtc\"]", &["no index", "run: CREATE INDEX"]),
            ("preset = \"governance\"\nid = \"EnvelopeId\"", &["is not unique", "run: CREATE UNIQUE INDEX"]),
            ("preset = \"governance\"\nonly = { AttemptCount = \"many\" }", &["AttemptCount", "its type"]),
            ("preset = \"debezium\"", &["no column"]),
        ] {
            host.configure(table);
            let done = host.run(&["run"]);
            assert_eq!(done.code, 2, "{table}: {}{}", done.text, done.errors);
            for word in words {
                assert!(done.errors.contains(word), "{table}: no {word:?} in {}", done.errors);
            }
            assert_eq!(host.run(&["config", "check", "--connect"]).code, 2, "{table}");
        }
        host.configure("id = \"OutboxEntryId\"\ntopic = \"{EventType}\"\npayload = \"EnvelopeJson\"\n[table.beside]\nat_end = \"leave\"\n");
        let done = host.run(&["run"]);
        assert_eq!(done.code, 4, "{}", done.errors);
        assert!(
            done.errors.contains("sendoff migrate") && done.errors.contains("CREATE TABLE"),
            "{}",
            done.errors
        );
        assert_eq!(host.run(&["migrate", "--check"]).code, 4);
        assert!(host.ok(&["migrate", "--print"]).contains("CREATE TABLE IF NOT EXISTS"));
        host.ok(&["migrate"]);
        host.ok(&["migrate", "--check"]);
        host.ok(&["config", "check", "--connect"]);
    }
}

#[test]
fn a_row_goes_to_the_target_that_it_names() {
    for place in places() {
        let mut host = Host::of(place, "framework");
        host.fill(4);
        host.mend();
        host.outbox
            .sql(&format!("UPDATE {} SET target_broker = 'billing' WHERE stream_name = 's1'", host.table));
        host.configure_preset();
        let path = host.file("sendoff.toml");
        let more = format!("[targets.billing]\nsink = \"file:{}\"\n", host.file("billing.jsonl").display());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + &more).unwrap();
        let relay = host.relay();
        host.until("all is delivered", || {
            let targets = host.run(&["status", "--json"]).json();
            targets["targets"][0]["published"] == 1 && targets["targets"][1]["published"] == 3
        });
        relay.stop();
        let billing = std::fs::read_to_string(host.file("billing.jsonl")).unwrap();
        assert!(billing.lines().count() == 1 && billing.contains("\"key\":\"s1\""), "{billing}");
        assert_eq!(host.delivered().len(), 3);
    }
}

/// Stopped in the midst of it, nothing is repeated; killed, its rows come back when their leases have ended, and nothing is lost.
#[test]
fn a_relay_that_is_stopped_or_killed_loses_nothing() {
    for kind in ["framework", "adr003"] {
        for place in places() {
            let mut host = Host::of(place, kind);
            host.configure_preset();
            host.mend();
            for (round, by) in [Signal::TERM, Signal::KILL].into_iter().enumerate() {
                let receiver = Receiver::silent();
                host.fill(200);
                // Its rows are in hand, and their sink does not answer.
                let relay = Relay::of(host.with_sink(&receiver.url));
                host.until("rows are in hand", || host.counts()["processing"].as_u64() > Some(0));
                if by == Signal::TERM {
                    relay.stop();
                    assert_eq!(host.counts()["processing"], 0, "{kind}: they were given back");
                } else {
                    drop(relay);
                    host.until("their leases end", || host.counts()["abandoned"].as_u64() > Some(0));
                }
                let relay = host.relay();
                let wanted = (round + 1) * 200;
                host.until("all is delivered", || host.delivered().len() == wanted);
                host.until("all is settled", || host.counts()["published"] == wanted);
                relay.stop();
                assert!(host.delivered().values().all(|times| *times == 1), "{kind}: each once");
            }
        }
    }
}
