//! Commands for `cargo`, run at the root of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fleet::Fleet;

/// Feature sets that must compile by themselves: a feature that only builds when another one is on is
/// found here and not by a user. Package, then arguments.
const FEATURE_SETS: [(&str, &[&str]); 20] = [
    ("sendoff", &[]),
    ("sendoff", &["--features", "postgres"]),
    ("sendoff", &["--features", "sqlite"]),
    ("sendoff", &["--features", "mysql"]),
    ("sendoff", &["--features", "tokio-postgres"]),
    ("sendoff", &["--features", "diesel-async"]),
    ("sendoff", &["--features", "sea-orm"]),
    ("sendoff", &["--features", "otel"]),
    ("sendoff", &["--features", "testkit"]),
    ("sendoff-sinks", &[]),
    ("sendoff-sinks", &["--features", "http"]),
    ("sendoff-sinks", &["--features", "inbox"]),
    ("sendoff-sinks", &["--features", "kafka"]),
    ("sendoff-sinks", &["--features", "mqtt"]),
    ("sendoff-sinks", &["--features", "nats"]),
    ("sendoff-sinks", &["--features", "rabbitmq"]),
    ("sendoff-sinks", &["--features", "redis"]),
    ("sendoff-sinks", &["--features", "sns"]),
    ("sendoff-sinks", &["--features", "sqs"]),
    ("sendoff-cli", &[]),
];

/// The workspace's root directory.
pub(crate) fn root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_owned()
}

/// The `cargo` that started us, in a clean environment.
///
/// What `cargo run` told *us* about our own package must not be passed on: build scripts of dependencies
/// watch these variables, and half the tree would be compiled again for every switch between `cargo xtask`
/// and plain `cargo`. Variables about servers that somebody else started go as well.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    for (name, _) in std::env::vars_os() {
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| about_us.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    for name in Fleet::foreign_variables() {
        command.env_remove(name);
    }
    command
}

/// The checks that need no server, in the order they run: name and command.
pub(crate) fn lints() -> Vec<(String, Command)> {
    let mut lints = vec![
        ("format".to_owned(), cargo(["fmt", "--all", "--check"])),
        // Outside the workspace, and no more of it is looked at here: the rest would need what it measures.
        (
            "format: task-peers".to_owned(),
            cargo(["fmt", "--manifest-path", "benches/task-peers/Cargo.toml", "--check"]),
        ),
        (
            "clippy".to_owned(),
            cargo(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]),
        ),
    ];
    for (package, features) in FEATURE_SETS {
        let name = features.last().copied().unwrap_or("no features");
        let args = ["clippy", "-p", package, "--no-default-features"]
            .into_iter()
            .chain(features.iter().copied())
            .chain(["--", "-D", "warnings"]);
        lints.push((format!("features: {package}, {name}"), cargo(args)));
    }
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    lints.push(("documentation".to_owned(), doc));
    lints
}

/// Builds what [`test()`] runs, so that no server waits for a compiler.
pub(crate) fn build_tests(args: &[String]) -> Command {
    let build_args: Vec<&str> = args.iter().map(String::as_str).take_while(|&arg| arg != "--").collect();
    let mut command = cargo(["test"]);
    command.args(selection(args)).arg("--no-run").args(build_args);
    command
}

/// Runs every test, documentation tests included, whatever fails.
pub(crate) fn test(args: &[String]) -> Command {
    let mut command = cargo(["test"]);
    command.args(selection(args)).arg("--no-fail-fast").args(args);
    command
}

/// The tests of the program as people build it first, which has neither every sink nor every feature of a library.
pub(crate) fn test_default_features() -> Command {
    cargo(["test", "-p", "sendoff-cli", "--test", "commands", "--test", "demo", "--no-fail-fast"])
}

/// All packages, unless the user names some: `cargo` would let `--workspace` win.
fn selection(args: &[String]) -> Vec<&'static str> {
    let for_cargo = args.iter().take_while(|arg| arg.as_str() != "--");
    let named = |arg: &String| arg.starts_with("-p") || arg.starts_with("--package");
    if for_cargo.into_iter().any(named) {
        vec!["--all-features"]
    } else {
        vec!["--workspace", "--all-features"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::show;

    fn shown(command: fn(&[String]) -> Command, args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        show(&command(&args))
    }

    #[test]
    fn arguments_reach_the_tests() {
        assert_eq!(shown(test, &[]), "cargo test --workspace --all-features --no-fail-fast");
        let args = ["-p", "sendoff", "claim", "--", "--nocapture"];
        assert_eq!(
            shown(test, &args),
            "cargo test --all-features --no-fail-fast -p sendoff claim -- --nocapture"
        );
        assert_eq!(shown(build_tests, &args), "cargo test --all-features --no-run -p sendoff claim");
    }

    #[test]
    fn a_package_named_for_the_test_binary_selects_nothing() {
        assert!(shown(test, &["--", "-p"]).contains("--workspace"));
    }

    #[test]
    fn every_feature_set_is_checked_alone() {
        let lints: Vec<String> = lints().iter().map(|(_, command)| show(command)).collect();
        assert!(lints.contains(
            &"cargo clippy -p sendoff --no-default-features --features mysql -- -D warnings".to_owned()
        ));
        assert!(
            lints.contains(&"cargo clippy -p sendoff-cli --no-default-features -- -D warnings".to_owned())
        );
    }
}
