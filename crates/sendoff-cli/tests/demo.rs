//! The demo, as a newcomer runs it: on SQLite always, on the servers that are set.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sendoff")).arg("demo").args(arguments).output().unwrap()
}

fn verdict(output: &Output) -> serde_json::Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("SIGKILL") && errors.contains("SIGSTOP"), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
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
        let output = demo(&["--json", "--without-fence"]);
        let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        println!("{verdict}");
        if output.status.code() == Some(1) {
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
    let output = demo(&["--events", "500"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("every guarantee held") && text.contains("out of order"), "{text}");
}

#[test]
fn a_store_that_is_none_is_refused_without_its_password() {
    let output = demo(&["--store", "oracle://scott:tiger@localhost/x"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("\"oracle\" is no store") && errors.contains("postgres://"), "{errors}");
    assert!(!errors.contains("tiger"), "{errors}");
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let output = demo(&["--store", "postgres://someone:secret@127.0.0.1:1/shop"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(errors.contains("PostgreSQL"), "{errors}");
    assert!(!errors.contains("secret"), "{errors}");
}
