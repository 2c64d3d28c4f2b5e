//! What `doctor` answers, and the form that it has.

use serde_json::Value;

use crate::outbox::Outbox;
use crate::program::{Done, run};

/// A report and how the program ended.
pub(crate) struct Report {
    pub(crate) code: i32,
    pub(crate) json: Value,
}

impl Report {
    pub(crate) fn of(outbox: &Outbox, arguments: &[&str]) -> Self {
        let done = outbox.run(&[&["doctor", "--json"], arguments].concat());
        Self { code: done.code, json: done.json() }
    }

    /// The findings' codes, the worst first.
    pub(crate) fn codes(&self) -> Vec<&str> {
        self.json["findings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect()
    }

    pub(crate) fn all(&self, code: &str) -> Vec<&Value> {
        self.json["findings"].as_array().unwrap().iter().filter(|one| one["code"] == code).collect()
    }

    /// The one finding of a code: its severity, what is so, what to do.
    pub(crate) fn one(&self, code: &str) -> (&str, &str, &str) {
        let found = self.all(code);
        assert_eq!(found.len(), 1, "{code}: {:#}", self.json);
        let text = |name: &str| found[0][name].as_str().unwrap();
        (text("severity"), text("what"), text("todo"))
    }

    pub(crate) fn is_silent_about(&self, code: &str) -> bool {
        self.all(code).is_empty()
    }

    pub(crate) fn skipped(&self) -> Vec<&str> {
        self.json["skipped"].as_array().unwrap().iter().map(|one| one["check"].as_str().unwrap()).collect()
    }

    pub(crate) fn checks(&self) -> Vec<&str> {
        self.json["checks"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
    }
}

/// The states that the version in the tables can be in.
pub(crate) fn versions(outbox: &Outbox, set: impl Fn(&str)) {
    for (version, code) in [("0", "schema-stale"), ("99", "schema-newer"), ("x", "schema-damaged")] {
        set(version);
        let report = Report::of(outbox, &[]);
        assert_eq!((report.code, report.one(code).0), (1, "problem"), "{:#}", report.json);
        assert!(report.skipped().contains(&"tables"));
        assert!(report.checks().contains(&"schema"));
    }
    set("1");
    assert!(Report::of(outbox, &[]).codes().iter().all(|code| !code.starts_with("schema-")));
}

/// With its own clock an hour and a half behind, it says that the database's is ahead.
fn a_wrong_clock(outbox: &Outbox) {
    let Ok(library) = std::env::var("SENDOFF_TEST_FAKETIME") else {
        println!("skipped: SENDOFF_TEST_FAKETIME is not set");
        return;
    };
    let mut command = outbox.command(&["doctor", "--json"]);
    command.env("LD_PRELOAD", library).env("FAKETIME", "-90m").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let done = Done::of(&mut command);
    let report = Report { code: done.code, json: done.json() };
    let (severity, what, _) = report.one("clock-difference");
    assert_eq!((report.code, severity), (0, "note"), "{:#}", report.json);
    assert!(what.contains("ahead of this machine's") && what.contains(" 1h "), "{what}");
    assert!(Report::of(outbox, &[]).is_silent_about("clock-difference"));
}

#[test]
fn a_wrong_clock_beside_postgres() {
    if let Some(outbox) = Outbox::on_server("SENDOFF_TEST_POSTGRES15") {
        a_wrong_clock(&outbox);
    }
}

#[test]
fn a_wrong_clock_beside_mariadb() {
    if let Some(outbox) = Outbox::on_server("SENDOFF_TEST_MARIADB") {
        a_wrong_clock(&outbox);
    }
}

#[test]
fn its_json_has_the_same_names_whatever_was_found() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t"]);
    let report = Report::of(&outbox, &[]);
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&report.json), ["checks", "findings", "skipped"]);
    assert_eq!(names(&report.json["findings"][0]), ["code", "severity", "todo", "what", "why"]);
    assert_eq!(names(&report.json["skipped"][0]), ["check", "reason"]);
}

#[test]
fn it_is_shown_as_blocks() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t"]);
    let done = outbox.run(&["doctor"]);
    assert_eq!(done.code, 1);
    assert!(done.text.starts_with("problem  no-worker\n  1 events of target default wait"), "{}", done.text);
    assert!(done.text.contains("\n  Why: Nobody delivers") && done.text.contains("\n  Do:  Start one"));
    assert!(done.text.lines().all(|line| line.chars().count() <= 100), "{}", done.text);
    assert!(done.text.contains("1 found by "), "{}", done.text);
}

#[test]
fn a_database_that_is_not_there_is_no_finding() {
    let done = run(&["doctor", "--store", "postgres://someone:s3cret@127.0.0.1:1/shop"]);
    assert_eq!(done.code, 3, "{}", done.errors);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tpyo.db");
    assert_eq!(run(&["doctor", "--store", &format!("sqlite:{}", path.display())]).code, 3);
    assert!(!path.exists());
}
