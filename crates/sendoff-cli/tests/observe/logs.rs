//! What is logged.

use serde_json::Value;

use crate::outbox::Outbox;
use crate::process::{Process, until};

/// The table of events goes away while a relay works, and comes back.
#[test]
fn a_store_that_fails_is_logged_now_and_then_and_that_it_works_again() {
    let outbox = Outbox::new();
    let mut process = Process::start(&mut outbox.command(&[
        "run",
        "--sink",
        "null:",
        "--lease",
        "2",
        "--admin",
        "127.0.0.1:0",
    ]));
    let admin = process.admin();
    process.said("lanes taken");
    outbox.sql("ALTER TABLE sendoff_event RENAME TO sendoff_event_away");
    let warning = process.said("events could not be claimed; trying again");
    assert!(warning.contains("WARN") && warning.contains("no such table"), "{warning}");
    let failed = || admin.figure("sendoff_store_errors_total", "default");
    until("it has tried often", || (failed() >= 10.0).then_some(()));
    let warnings = process.log().iter().filter(|line| line.contains("could not be claimed")).count();
    assert!(warnings <= 3, "{warnings} lines of the same: {:#?}", process.log());
    outbox.sql("ALTER TABLE sendoff_event_away RENAME TO sendoff_event");
    outbox.enqueue(&["t"]);
    until("it goes on", || (admin.figure("sendoff_events_published_total", "default") == 1.0).then_some(()));
    process.said("the store answers again");
    let (status, _) = process.stop();
    assert!(status.success(), "{:#?}", process.log());
}

#[test]
fn every_line_is_json_if_programs_read_it() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t"]);
    let mut command = outbox.command(&["run", "--sink", "null:", "--lease", "2"]);
    command.env("SENDOFF_LOG", "debug").env("SENDOFF_LOG_FORMAT", "json");
    let mut process = Process::start(&mut command);
    process.said("relaying target");
    process.said("lanes taken");
    let (status, _) = process.stop();
    assert!(status.success());
    process.said("published");
    let log = process.log();
    assert!(log.len() >= 4, "{log:#?}");
    for line in &log {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
        assert!(
            line["timestamp"].is_string() && line["target"].as_str().unwrap().starts_with("sendoff"),
            "{line}"
        );
    }
}

#[test]
fn what_is_logged_can_be_said_in_the_file_and_a_wrong_level_is_refused() {
    let outbox = Outbox::new();
    let config = outbox.directory.path().join("sendoff.toml");
    std::fs::write(&config, "[telemetry]\nlog = \"off\"\n[targets.default]\nsink = \"null:\"\n").unwrap();
    let mut process = Process::start(outbox.command(&["run"]).env("SENDOFF_CONFIG", &config));
    process.said("relaying target");
    let (status, _) = process.stop();
    assert!(status.success());
    assert!(!process.log().concat().contains("INFO"), "{:#?}", process.log());
    let done = outbox.run(&["run", "--sink", "null:", "--log", "loud"]);
    assert!(done.code == 2 && done.errors.contains("\"loud\" is no log level"), "{}", done.errors);
    std::fs::write(&config, "[telemetry]\nformat = \"xml\"\n").unwrap();
    let done = outbox.run(&["config", "check", config.to_str().unwrap()]);
    assert!(
        done.code == 2 && done.errors.contains("line 2") && done.errors.contains("json"),
        "{}",
        done.errors
    );
}
