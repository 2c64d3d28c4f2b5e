//! The schemas of what `--json` prints, and that the check against them notices.

use serde_json::{Value, json};

use crate::program::run;
use crate::schema::check;

#[test]
fn they_are_written_to_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("schemas");
    let done = run(&["schemas", path.to_str().unwrap()]);
    assert_eq!((done.code, done.text.as_str()), (0, ""), "{}", done.errors);
    let text = std::fs::read_to_string(path.join("status.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["properties"]["targets"]["type"], "array");
    std::fs::write(directory.path().join("file"), "").unwrap();
    let done = run(&["schemas", directory.path().join("file").to_str().unwrap()]);
    assert!(done.code == 3 && done.errors.contains("file"), "{}", done.errors);
}

#[test]
fn a_fault_is_seen() {
    let lane = json!({ "lane": 7, "owner": null, "name": null, "lease_until": "2026-01-31T12:00:00.000Z", "expired": false, "epoch": 3, "floor": 0, "crashes": 0, "covered": true });
    let lanes = |lane: &Value| json!({ "target": "default", "lanes": [lane] });
    check("lanes", &lanes(&lane)).unwrap();
    for (name, wrong, fault) in [
        ("lane", json!("7"), "lanes/0/lane: \"7\" is no"),
        ("lane", json!(-1), "is below 0"),
        ("lane", json!(70_000), "is above 65535"),
        ("lease_until", json!("soon"), "is no date-time"),
        ("owner", json!("me"), "is no uuid"),
        ("expired", json!(null), "is no"),
        ("new", json!(1), "it has no new"),
    ] {
        let mut lane = lane.clone();
        lane[name] = wrong;
        let said = check("lanes", &lanes(&lane)).unwrap_err();
        assert!(said.contains(fault), "{said}");
    }
    let mut without = lane;
    without.as_object_mut().unwrap().remove("epoch");
    assert_eq!(check("lanes", &lanes(&without)).unwrap_err(), "lanes/0: epoch is missing");
    assert!(check("migrate", &json!({ "tables": "odd", "found": null, "spoken": null })).is_err());
    assert!(check("enqueue", &json!({ "written": 1 })).unwrap_err().contains("none of"));
}
