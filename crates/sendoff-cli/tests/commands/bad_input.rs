//! What is said to bad input: what is wrong and what to do, without a secret.

use crate::outbox::Outbox;
use crate::program::run;

/// A command that fails with this code, and says these words.
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let done = run(arguments);
    assert_eq!(done.code, code, "{arguments:?}: {}{}", done.text, done.errors);
    assert_eq!(done.text, "", "{arguments:?}");
    for word in words {
        assert!(done.errors.contains(word), "{arguments:?}: no {word:?} in: {}", done.errors);
    }
}

/// Every command that asks an outbox, as it is given.
const ASKING: [&[&str]; 16] = [
    &["status"],
    &["list", "dead"],
    &["show", "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001"],
    &["explain", "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001"],
    &["lanes"],
    &["workers"],
    &["parked"],
    &["cancel", "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001"],
    &["redrive", "--all"],
    &["discard", "--all", "--yes"],
    &["pause", "default"],
    &["resume", "default"],
    &["purge", "dead", "--older-than", "1d"],
    &["enqueue", "t"],
    &["migrate", "--check"],
    &["run", "--sink", "null:"],
];

/// What else connects: these make their tables themselves, or say what is wrong with them.
const OTHERS: [&[&str]; 6] = [
    &["doctor"],
    &["migrate"],
    &["demo"],
    &["bench", "drain"],
    &["enqueue", "--lines"],
    &["adopt", "outbox"],
];

/// Every command that asks for a part with tables of its own, with what makes them.
const PARTS: [(&str, &str, &[&[&str]]); 2] = [
    (
        "sendoff tasks migrate",
        "tasks_protocol_version",
        &[
            &["tasks", "stats"],
            &["tasks", "list"],
            &["tasks", "show", "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001"],
            &["tasks", "retry", "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001"],
            &["tasks", "cancel", "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001"],
            &["tasks", "limit"],
            &["tasks", "limit", "mail.send", "3"],
            &["tasks", "purge", "--older-than", "1d"],
            &["tasks", "migrate", "--check"],
        ],
    ),
    (
        "sendoff inbox migrate",
        "inbox_protocol_version",
        &[&["inbox", "stats"], &["inbox", "purge", "--older-than", "1d"], &["inbox", "migrate", "--check"]],
    ),
];

fn all() -> impl Iterator<Item = &'static [&'static str]> {
    let parts = PARTS.into_iter().flat_map(|(_, _, commands)| commands.iter().copied());
    let making: [&[&str]; 2] = [&["tasks", "migrate"], &["inbox", "migrate"]];
    ASKING.into_iter().chain(OTHERS).chain(parts).chain(making)
}

#[test]
fn a_server_that_is_not_there_is_named() {
    for command in all() {
        let url = "postgres://someone:s3cret@127.0.0.1:1/shop";
        fails(&[command, &["--store", url]].concat(), 3, &["error: PostgreSQL: ", "refused"]);
    }
    fails(
        &["status", "--store", "mysql://someone:s3cret@127.0.0.1:1/shop"],
        3,
        &["MariaDB/MySQL", "refused"],
    );
}

/// In the program as people build it first.
#[test]
#[cfg(not(any(feature = "kafka", feature = "aws")))]
fn a_sink_that_was_not_built_says_how_to_build_it() {
    let outbox = Outbox::new();
    for (sink, feature) in [
        ("kafka://someone:s3cret@127.0.0.1:9092", "kafka"),
        ("sqs:https://s3cret.example/1/q", "aws"),
        ("sns:arn:s3cret", "aws"),
    ] {
        let done = outbox.run(&["run", "--sink", sink]);
        assert_eq!(done.code, 2, "{sink}: {}{}", done.text, done.errors);
        assert!(done.errors.contains(&format!("--features {feature}")), "{}", done.errors);
        assert!(!done.errors.contains("s3cret"), "{}", done.errors);
    }
    let done = outbox.run(&["run", "--sink", "kafak://x"]);
    assert_eq!(done.code, 2, "{}{}", done.text, done.errors);
    assert!(done.errors.contains("is no sink") && !done.errors.contains("kafka://"), "{}", done.errors);
}

#[test]
fn a_file_that_is_not_there_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tpyo.db");
    for command in ASKING {
        let url = format!("sqlite:{}", path.display());
        fails(&[command, &["--store", &url]].concat(), 3, &["tpyo.db", "sendoff migrate"]);
        assert!(!path.exists(), "{command:?} made it");
    }
}

#[test]
fn a_part_says_what_makes_its_tables() {
    let outbox = Outbox::without_tables();
    for (migrate, _, commands) in PARTS {
        for command in commands {
            let done = outbox.run(command);
            assert_eq!(done.code, 3, "{command:?}: {}{}", done.text, done.errors);
            assert!(done.errors.contains(migrate), "{command:?}: {}", done.errors);
        }
    }
    assert!(!outbox.directory.path().join("shop.db").exists(), "somebody made it");
    outbox.ok(&["migrate"]);
    for (migrate, version, commands) in PARTS {
        let refused = |words: &str| {
            for command in commands {
                let done = outbox.run(command);
                assert_eq!(done.code, 4, "{command:?}: {}{}", done.text, done.errors);
                assert!(done.errors.contains(words), "{command:?}: {}", done.errors);
            }
        };
        refused(migrate);
        outbox.ok(&migrate.split(' ').skip(1).collect::<Vec<_>>());
        for (found, words) in [("99", "newer than this program"), ("0", "migrate it")] {
            outbox.sql(&format!("UPDATE sendoff_meta SET value = '{found}' WHERE name = '{version}'"));
            refused(words);
        }
    }
    outbox.ok(&["status"]);
}

#[test]
fn tables_that_are_not_there_are_told_as_such() {
    let outbox = Outbox::without_tables();
    std::fs::write(outbox.directory.path().join("shop.db"), "").unwrap();
    for command in ASKING {
        let done = outbox.run(command);
        assert_eq!(done.code, 4, "{command:?}: {}{}", done.text, done.errors);
        assert!(done.errors.contains("sendoff migrate"), "{command:?}: {}", done.errors);
    }
}

#[test]
fn a_url_that_is_none_is_answered_with_those_that_are() {
    for command in all() {
        for (url, words) in [
            ("oracle://scott:s3cret@x/y", &["\"oracle\" is no store", "postgres://"][..]),
            ("postgres://someone:s3cret@127.0.0.1:port/y", &["PostgreSQL"]),
        ] {
            fails(&[command, &["--store", url]].concat(), 2, words);
        }
    }
}

#[test]
fn a_flag_that_is_none_is_named() {
    let alone: [&[&str]; 7] = [
        &["config", "init"],
        &["config", "check", "x"],
        &["config", "schema"],
        &["completions", "bash"],
        &["man"],
        &["schemas", "x"],
        &[],
    ];
    for command in all().chain(alone) {
        fails(&[command, &["--no-such-flag"]].concat(), 2, &["--no-such-flag", "Usage: sendoff"]);
    }
}

#[test]
fn a_wrong_argument_is_answered_with_what_would_be_right() {
    fails(&["status"], 2, &["--store"]);
    fails(&["status", "--store", "oracle://scott:s3cret@x/y"], 2, &["\"oracle\" is no store", "postgres://"]);
    fails(&["statsu"], 2, &["status"]);
    fails(&["list", "ded", "--store", "sqlite:x"], 2, &["dead"]);
    fails(&["status", "--jsno", "--store", "sqlite:x"], 2, &["--json"]);
    fails(&["show", "seven", "--store", "sqlite:x"], 2, &["EVENT"]);
    fails(&["purge", "dead", "--older-than", "soon", "--store", "sqlite:x"], 2, &["--older-than"]);
    fails(&["redrive", "--store", "sqlite:x"], 2, &["--all"]);
    fails(&["enqueue", "--store", "sqlite:x"], 2, &["TOPIC"]);
    fails(&["enqueue", "t", "--header", "x", "--store", "sqlite:x"], 2, &["NAME=VALUE"]);
    fails(&["completions", "csh"], 2, &["bash"]);
}

#[test]
fn an_event_that_cannot_be_is_refused() {
    let outbox = Outbox::new();
    for (arguments, word) in [
        (vec!["enqueue", ""], "topic"),
        (vec!["enqueue", "t", "--header", "a=b\nc"], "line break"),
        (vec!["enqueue", "t", "--payload", "@/does/not/exist"], "/does/not/exist"),
    ] {
        let done = outbox.run(&arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}", done.errors);
        assert!(done.errors.contains(word), "{arguments:?}: {}", done.errors);
    }
    let long = "x".repeat(300);
    assert_eq!(outbox.run(&["enqueue", &long]).code, 2);
    assert_eq!(outbox.run(&["enqueue", "t", "--key", &long]).code, 2);
    assert_eq!(outbox.ok(&["status"]), "nothing was ever written here\n");
}

#[test]
fn tables_of_another_version_are_left_alone() {
    let outbox = Outbox::new();
    for (version, words) in [("99", "newer than this program"), ("0", "migrate")] {
        outbox.sql(&format!("UPDATE sendoff_meta SET value = '{version}' WHERE name = 'protocol_version'"));
        for command in ASKING {
            let done = outbox.run(command);
            assert_eq!(done.code, 4, "{command:?}: {}{}", done.text, done.errors);
            assert!(done.errors.contains(words), "{command:?}: {}", done.errors);
        }
    }
    outbox.sql("UPDATE sendoff_meta SET value = '99' WHERE name = 'protocol_version'");
    assert_eq!(outbox.run(&["migrate"]).code, 4, "nor are newer ones brought back");
}
