//! The benchmark, as small as it can be: what it prints, not how fast it is.

use crate::outbox::Outbox;
use crate::program::{Done, run};

const FEW: [&str; 6] = ["--events", "200", "--rounds", "1", "--workers", "1"];

fn bench(arguments: &[&str]) -> Done {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("bench.db").display());
    run(&[&["bench"], arguments, &["--store", &store], &FEW].concat())
}

#[test]
fn every_measure_prints_its_figures() {
    for measure in ["drain", "steady", "latency", "insert"] {
        let done = bench(&[measure, "--json"]);
        assert_eq!(done.code, 0, "{measure}: {}", done.errors);
        let report = done.json();
        assert_eq!((&report["measure"], &report["events"]), (&measure.into(), &200.into()));
        assert!(report["events_per_s"].as_f64() > Some(0.0), "{report}");
        assert_eq!(
            (&report["lost"], &report["duplicated"], &report["out_of_order"]),
            (&0.into(), &0.into(), &0.into())
        );
    }
    let text = bench(&["drain"]).text;
    assert!(text.contains("events/s") && text.contains("lost/duplicated/out of order"), "{text}");
    // Its tables are its own, and are not left behind.
    let outbox = Outbox::new();
    let done = run(&[&["bench", "insert", "--store", &outbox.store], &FEW[..]].concat());
    assert_eq!(done.code, 0, "{}", done.errors);
    assert_eq!(outbox.ok(&["status"]), "nothing was ever written here\n");
}

#[test]
fn bad_input_is_named() {
    for (arguments, code, word) in [
        (&["bench", "speed", "--store", "sqlite:x"][..], 2, "drain"),
        (&["bench", "drain"], 2, "--store"),
        (&["bench", "drain", "--events", "0", "--store", "sqlite:x"], 2, "--events"),
        (&["bench", "drain", "--settle-asynchronously", "--store", "sqlite::memory:"], 2, "PostgreSQL alone"),
        (&["bench", "drain", "--store", "oracle://a:s3cret@x/y"], 2, "\"oracle\" is no store"),
        (&["bench", "drain", "--store", "postgres://a:s3cret@127.0.0.1:1/y"], 3, "PostgreSQL"),
    ] {
        let done = run(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {}", done.errors);
        assert!(done.errors.contains(word), "{arguments:?}: {}", done.errors);
    }
}
