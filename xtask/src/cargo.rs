//! Commands for `cargo`, run at the root of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fleet::Fleet;

/// Feature sets that must compile by themselves: a feature that only builds when another one is on is
/// found here and not by a user. Package, then arguments. Every gated module that several features share is
/// reached from one feature at least; a feature that gates nothing but its own folder is left to the
/// workspace's check.
const FEATURE_SETS: [(&str, &[&str]); 12] = [
    ("sendoff", &[]),
    ("sendoff", &["--features", "postgres"]),
    ("sendoff", &["--features", "sqlite"]),
    ("sendoff", &["--features", "mysql"]),
    ("sendoff", &["--features", "tokio-postgres"]),
    ("sendoff", &["--features", "testkit"]),
    ("sendoff-sinks", &[]),
    ("sendoff-sinks", &["--features", "http"]),
    ("sendoff-sinks", &["--features", "kafka"]),
    ("sendoff-sinks", &["--features", "mqtt"]),
    ("sendoff-sinks", &["--features", "sqs"]),
    ("sendoff-cli", &[]),
];

/// The workspace's root directory.
pub(crate) fn root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_owned()
}

/// The `cargo` that started us, in a clean environment.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    clean(&mut command);
    command
}

/// Removes what `cargo run` told *us* about our own package, and variables about servers that somebody else
/// started.
///
/// Build scripts of dependencies watch the former, and half the tree would be compiled again for every switch
/// between `cargo xtask` and plain `cargo`.
pub(crate) fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| about_us.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    for name in Fleet::foreign_variables() {
        command.env_remove(name);
    }
}

/// The checks that compile nothing, in the order they run: name and command.
pub(crate) fn quick_checks() -> Vec<(String, Command)> {
    vec![
        ("format".to_owned(), cargo(["fmt", "--all", "--check"])),
        // Outside the workspace, and no more of it is looked at here: the rest would need what it measures.
        (
            "format: task-peers".to_owned(),
            cargo(["fmt", "--manifest-path", "benches/task-peers/Cargo.toml", "--check"]),
        ),
    ]
}

/// The checks that need a compiler and no server, in the order they run: name and command.
pub(crate) fn lints() -> Vec<(String, Command)> {
    let mut lints = vec![(
        "clippy".to_owned(),
        cargo(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]),
    )];
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

/// The same command with what the other programs leave of the processors.
///
/// The scheduler's idle class is asked for as well as the lowest priority: a compiler at the lowest priority
/// still takes a few percent from tests that measure time.
pub(crate) fn in_the_background(command: &Command) -> Command {
    let mut wrapped = Command::new("chrt");
    wrapped.args(["--idle", "0", "nice", "-n", "19"]).arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        wrapped.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

/// Builds what [`test()`] runs, so that no server waits for a compiler.
pub(crate) fn build_tests(args: &[String]) -> Command {
    let build_args: Vec<&str> = args.iter().map(String::as_str).take_while(|&arg| arg != "--").collect();
    let mut command = cargo(["test"]);
    command.args(selection(args)).arg("--no-run").args(build_args);
    command
}

/// Runs the tests that the arguments select, whatever fails.
pub(crate) fn test(args: &[String]) -> Command {
    let mut command = cargo(["test"]);
    command.args(selection(args)).arg("--no-fail-fast").args(args);
    command
}

/// Runs the documentation tests, whatever fails.
pub(crate) fn test_documentation() -> Command {
    cargo(["test", "--doc", "--workspace", "--all-features", "--no-fail-fast"])
}

/// Builds the program as people build it first, which has neither every sink nor every feature of a library.
pub(crate) fn build_default_program() -> Command {
    cargo(["build", "-p", "sendoff-cli"])
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

    #[test]
    fn a_command_in_the_background_keeps_its_directory_and_its_variables() {
        let mut doc = cargo(["doc"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        let background = in_the_background(&doc);
        assert!(show(&background).starts_with("chrt --idle 0 nice -n 19 "));
        assert!(show(&background).ends_with("cargo doc"));
        assert_eq!(background.get_current_dir(), Some(root().as_path()));
        assert!(background.get_envs().any(|(name, value)| name == "RUSTDOCFLAGS" && value.is_some()));
    }
}
