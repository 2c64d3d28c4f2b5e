//! The examples that documents quote, run as a reader would run them.

use std::process::Command;

/// What each of them says in the end.
pub(crate) const ALL: [(&str, &str); 2] =
    [("orders", "3 published"), ("memory_store", "delivered in order, after a retry")];

pub(crate) fn run(name: &str, last: &str) {
    // Cargo builds examples next to the folder of this test.
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let output = Command::new(folder.join(name)).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}; `cargo test` builds it"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().last(), Some(last), "{said}");
}
