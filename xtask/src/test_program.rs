//! Programs that `cargo` built, read from the messages it prints about them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{cargo, command};

/// A program with tests in it, as `cargo test` would run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// Package and target, for people: `sendoff conformance`.
    pub(crate) name: String,
    /// The target alone: the name of a file in `tests/`, or `lib` or `bin` for unit tests.
    pub(crate) target: String,
    /// The executable file.
    pub(crate) path: PathBuf,
    /// The directory of its package, which `cargo test` makes the working directory.
    pub(crate) dir: PathBuf,
    /// The program that its tests start, if that is not the one it was built with.
    pub(crate) subject: Option<PathBuf>,
}

impl TestProgram {
    /// The command that runs all its tests.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.dir);
        cargo::clean(&mut command);
        if let Some(subject) = &self.subject {
            command.env("SENDOFF_TEST_PROGRAM", subject);
        }
        command
    }

    /// The same tests of another program.
    pub(crate) fn of_subject(&self, name: &str, subject: &Path) -> TestProgram {
        let name = format!("{}: {name}", self.name);
        TestProgram { name, subject: Some(subject.to_owned()), ..self.clone() }
    }
}

/// Builds tests with a `cargo test --no-run` command and returns the programs it would run.
pub(crate) fn build(command: &mut Command) -> Result<Vec<TestProgram>> {
    let programs: Vec<TestProgram> = artifacts(command)?.iter().filter_map(test_program).collect();
    ensure!(!programs.is_empty(), "cargo built no test program");
    Ok(programs)
}

/// Builds a program with a `cargo build` command and copies it into a directory beside itself: the next build
/// with other features overwrites it.
pub(crate) fn build_copy(command: &mut Command, directory: &str) -> Result<PathBuf> {
    let artifacts = artifacts(command)?;
    let mut executables = artifacts.iter().filter_map(|artifact| artifact["executable"].as_str());
    let program = Path::new(executables.next().context("cargo built no program")?);
    let directory = program.with_file_name(directory);
    let copy = directory.join(program.file_name().context("a program without a name")?);
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::copy(program, &copy))
        .with_context(|| format!("cannot write {}", copy.display()))?;
    Ok(copy)
}

/// What a build left, new or still there from before. The compiler's own messages go to standard error.
fn artifacts(build: &mut Command) -> Result<Vec<Value>> {
    let mut artifacts = Vec::new();
    command::stream(build.arg("--message-format=json-render-diagnostics"), |line| {
        let message = serde_json::from_slice::<Value>(line).unwrap_or_default();
        if message["reason"] == "compiler-artifact" {
            artifacts.push(message);
        }
    })?;
    Ok(artifacts)
}

/// The test program of an artifact, if it is one: examples and programs are built as well, to be used by tests.
fn test_program(artifact: &Value) -> Option<TestProgram> {
    if artifact["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(artifact["executable"].as_str()?);
    let dir = Path::new(artifact["manifest_path"].as_str()?).parent()?.to_owned();
    let target = match artifact["target"]["kind"][0].as_str()? {
        "test" => artifact["target"]["name"].as_str()?.to_owned(),
        kind => kind.to_owned(),
    };
    let package = dir.file_name()?.to_str()?;
    Some(TestProgram { name: format!("{package} {target}"), target, path, dir, subject: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: &str, name: &str, is_test: bool, executable: Option<&str>) -> Value {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/sendoff/Cargo.toml",
            "target": { "kind": [kind], "name": name },
            "profile": { "test": is_test },
            "executable": executable,
        })
    }

    #[test]
    fn what_has_tests_is_run_and_what_they_use_is_not() {
        let conformance = test_program(&artifact("test", "conformance", true, Some("/w/t/conformance-1")));
        let conformance = conformance.unwrap();
        assert_eq!(conformance.name, "sendoff conformance");
        assert_eq!(conformance.target, "conformance");
        assert_eq!(conformance.dir, Path::new("/w/crates/sendoff"));
        assert_eq!(conformance.path, Path::new("/w/t/conformance-1"));
        let unit = test_program(&artifact("lib", "sendoff", true, Some("/w/t/sendoff-1"))).unwrap();
        assert_eq!(unit.name, "sendoff lib");
        assert_eq!(test_program(&artifact("lib", "sendoff", false, None)), None);
        assert_eq!(test_program(&artifact("bin", "sendoff", false, Some("/w/t/sendoff"))), None);
        assert_eq!(test_program(&artifact("example", "inbox", false, Some("/w/t/inbox"))), None);
    }

    #[test]
    fn a_program_built_otherwise_is_named_to_the_tests() {
        let program = test_program(&artifact("test", "demo", true, Some("/w/t/demo-1"))).unwrap();
        let other = program.of_subject("default features", Path::new("/w/t/other"));
        assert_eq!(other.name, "sendoff demo: default features");
        let told = |program: &TestProgram| {
            let command = program.command();
            let mut set = command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value)));
            set.next().map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        assert_eq!(told(&other), Some(("SENDOFF_TEST_PROGRAM".into(), "/w/t/other".into())));
        assert_eq!(told(&program), None);
    }
}
