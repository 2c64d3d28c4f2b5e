//! The outbox's tables.

use serde_json::json;

use crate::outbox::Outbox;

#[test]
fn tables_are_made_once_and_checked() {
    let outbox = Outbox::without_tables();
    std::fs::write(outbox.directory.path().join("shop.db"), "").unwrap();
    let missing = json!({ "tables": "missing", "found": null, "spoken": null });
    let done = outbox.run(&["migrate", "--check", "--json"]);
    assert_eq!((done.code, done.json()), (4, missing));
    assert!(done.errors.contains("sendoff migrate"), "{}", done.errors);
    let sentence = "the outbox's tables are as this program needs them\n";
    assert_eq!(outbox.ok(&["migrate"]), sentence);
    assert_eq!(outbox.ok(&["migrate"]), sentence, "a second time does no harm");
    assert_eq!(outbox.ok(&["migrate", "--check"]), sentence);
    for arguments in [&["migrate"][..], &["migrate", "--check"]] {
        assert_eq!(outbox.json(arguments)["tables"], "current");
    }
    for (version, word) in [("0", "stale"), ("99", "newer")] {
        outbox.sql(&format!("UPDATE sendoff_meta SET value = '{version}' WHERE name = 'protocol_version'"));
        let done = outbox.run(&["migrate", "--check", "--json"]);
        let found: i64 = version.parse().unwrap();
        assert_eq!((done.code, done.json()), (4, json!({ "tables": word, "found": found, "spoken": 1 })));
    }
}

/// What is printed for people's own migrations makes the same tables.
#[test]
fn the_printed_sql_makes_them() {
    let outbox = Outbox::without_tables();
    let script = outbox.ok(&["migrate", "--print"]);
    assert_eq!(outbox.run(&["migrate", "--check"]).code, 4, "printing makes none");
    outbox.sql(&script);
    outbox.ok(&["migrate", "--check"]);
    outbox.enqueue(&["t"]);
    for other in ["--check", "--json"] {
        let done = outbox.run(&["migrate", "--print", other]);
        assert!(done.code == 2 && done.errors.contains("--print"), "{}", done.errors);
    }
}
