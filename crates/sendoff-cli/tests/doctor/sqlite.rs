//! A file in the states that are to be found.

use std::os::unix::fs::FileExt as _;

use crate::outbox::Outbox;
use crate::report::{Report, versions};

#[test]
fn a_healthy_file_is_met_with_silence() {
    let outbox = Outbox::new();
    let _relay = outbox.relay("null:");
    let id = outbox.enqueue(&["t", "--key", "k"]);
    outbox.until("it is delivered", || outbox.run(&["explain", &id]).code == 1);
    let text = outbox.ok(&["doctor", "--deep"]);
    assert!(text.contains("nothing found: 14 checks"), "{text}");
    let report = Report::of(&outbox, &["--deep"]);
    assert_eq!((report.code, report.codes()), (0, vec![]), "{:#}", report.json);
    assert_eq!(report.skipped(), ["busy-timeout, synchronous"], "{:#}", report.json);
}

#[test]
fn a_rollback_journal_is_found_and_left_as_it_is() {
    let outbox = Outbox::new();
    outbox.sql("PRAGMA journal_mode = DELETE");
    for _ in 0..2 {
        let report = Report::of(&outbox, &[]);
        let (severity, what, _) = report.one("journal-mode");
        assert_eq!((report.code, severity), (1, "problem"));
        assert!(what.contains("DELETE"), "{what}");
    }
    outbox.sql("PRAGMA journal_mode = WAL");
    assert_eq!(Report::of(&outbox, &[]).codes(), [""; 0]);
}

#[test]
fn a_missing_index_is_found_with_the_statement_that_makes_it() {
    let outbox = Outbox::new();
    outbox.sql("DROP INDEX sendoff_event_by_lane");
    let report = Report::of(&outbox, &[]);
    let (severity, what, todo) = report.one("missing-index");
    assert_eq!((report.code, severity), (1, "problem"));
    assert!(what.contains("sendoff_event_by_lane"), "{what}");
    assert!(report.one("fetch-not-by-index").1.contains("target default"), "{:#}", report.json);
    outbox.sql(todo);
    assert_eq!(Report::of(&outbox, &[]).codes(), [""; 0]);
}

#[test]
fn a_missing_table_is_found() {
    let outbox = Outbox::new();
    outbox.sql("DROP TABLE sendoff_operation");
    let report = Report::of(&outbox, &[]);
    assert!(report.one("schema-damaged").1.contains("sendoff_operation"));
}

#[test]
fn tables_that_are_missing_or_of_another_version_are_findings() {
    let outbox = Outbox::without_tables();
    std::fs::write(outbox.directory.path().join("shop.db"), "").unwrap();
    let report = Report::of(&outbox, &[]);
    assert_eq!((report.code, report.one("schema-missing").0), (1, "problem"));
    let outbox = Outbox::new();
    versions(&outbox, |version| {
        outbox.sql(&format!("UPDATE sendoff_meta SET value = '{version}' WHERE name = 'protocol_version'"));
    });
}

#[test]
fn a_damaged_file_is_found_if_asked_for() {
    let outbox = Outbox::new();
    for _ in 0..200 {
        outbox.sql("INSERT INTO sendoff_published SELECT 'x', 0, random(), 't', NULL, randomblob(900), NULL, NULL, hex(randomblob(16)), 0, 0");
    }
    outbox.sql("PRAGMA journal_mode = DELETE");
    outbox.sql("PRAGMA journal_mode = WAL");
    let path = outbox.directory.path().join("shop.db");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // In the midst of the table's pages.
    let end = file.metadata().unwrap().len();
    file.write_all_at(&[0x5a; 3 * 4096], end - 6 * 4096).unwrap();
    let report = Report::of(&outbox, &["--deep"]);
    let (severity, what, _) = report.one("integrity");
    assert_eq!((report.code, severity), (1, "problem"), "{what}");
    assert!(Report::of(&outbox, &[]).is_silent_about("integrity"));
}
