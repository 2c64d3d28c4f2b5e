//! The demo, as a newcomer runs it: on SQLite always, on the servers that are set.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "commands/program.rs"]
mod program;
#[path = "commands/schema.rs"]
mod schema;

use self::program::{Done, run};

fn demo(arguments: &[&str]) -> Done {
    run(&[&["demo"], arguments].concat())
}

fn verdict(done: &Done) -> serde_json::Value {
    let errors = &done.errors;
    assert_eq!(done.code, 0, "{errors}");
    assert!(errors.contains("SIGKILL") && errors.contains("SIGSTOP"), "{errors}");
    done.json()
}

fn holds(arguments: &[&str]) {
    let verdict = verdict(&demo(&[&["--json", "--events", "2000"], arguments].concat()));
    println!("{verdict}");
    let count = |name: &str| verdict[name].as_u64().unwrap_or_else(|| panic!("{name}: {verdict}"));
    assert!(count("committed") >= 2000);
    assert!(count("rolled_back") > 0);
    assert_eq!(count("delivered"), count("committed"));
    assert_eq!(count("duplicated"), count("duplicates_explained"));
    for fault in ["lost", "phantom", "out_of_order"] {
        assert_eq!(count(fault), 0, "{fault}: {verdict}");
    }
    assert!(verdict["seconds"].as_f64().unwrap() > 0.0);
}

fn on_server(variable: &str) {
    match std::env::var(variable) {
        Ok(url) => holds(&["--store", &url]),
        Err(_) => println!("skipped: {variable} is not set"),
    }
}

#[test]
fn it_holds_on_sqlite() {
    holds(&[]);
}

/// Or it would show nothing that it holds.
#[test]
fn without_the_fence_it_does_not_hold() {
    // Now and then the worker is frozen when it can do no harm.
    for _ in 0..3 {
        let done = demo(&["--json", "--without-fence"]);
        let verdict = done.json();
        println!("{verdict}");
        if done.code == 1 {
            assert!(verdict["duplicated"].as_u64() > verdict["duplicates_explained"].as_u64(), "{verdict}");
            return;
        }
    }
    panic!("three times it was not noticed that the fence is gone");
}

#[test]
fn it_holds_on_postgres() {
    on_server("SENDOFF_TEST_POSTGRES15");
}

#[test]
fn it_holds_on_mariadb() {
    on_server("SENDOFF_TEST_MARIADB");
}

#[test]
fn the_verdict_is_a_table_for_people() {
    let done = demo(&["--events", "500"]);
    assert_eq!(done.code, 0);
    assert!(
        done.text.contains("every guarantee held") && done.text.contains("out of order"),
        "{}",
        done.text
    );
}

#[test]
fn bad_input_is_named() {
    let done = demo(&["--store", "oracle://scott:s3cret@localhost/x"]);
    assert_eq!(done.code, 2);
    assert!(done.errors.contains("\"oracle\" is no store") && done.errors.contains("postgres://"));
    let done = demo(&["--store", "postgres://someone:s3cret@127.0.0.1:1/shop"]);
    assert_eq!(done.code, 3);
    assert!(done.errors.contains("PostgreSQL"), "{}", done.errors);
    let done = demo(&["--workers", "1"]);
    assert!(done.code == 2 && done.errors.contains("--workers"), "{}", done.errors);
}
