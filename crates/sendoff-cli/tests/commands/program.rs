//! The program as a process, and what all that it says must be like: no secret, no trace, and JSON as its schema says.

use std::process::{Command, Output};

use serde_json::Value;

use crate::schema;

/// What stands for a secret wherever a test has one.
pub(crate) const SECRET: &str = "s3cret";

/// What only a program says that has lost its countenance.
const TRACES: [&str; 4] = ["panicked at", "stack backtrace", "RUST_BACKTRACE", ".rs:"];

/// What a command did.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) text: String,
    pub(crate) errors: String,
    /// The schema of what it prints, if that is JSON.
    schema: Option<String>,
}

impl Done {
    /// Runs it.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self::ended(command, output)
    }

    /// It was run.
    pub(crate) fn ended(command: &Command, output: Output) -> Self {
        let arguments: Vec<&str> = command.get_args().filter_map(|argument| argument.to_str()).collect();
        let name = match arguments[..] {
            [command @ ("config" | "tasks" | "inbox"), below, ..] => format!("{command}-{below}"),
            [command, ..] => command.to_owned(),
            [] => String::new(),
        };
        let done = Self {
            code: output.status.code().unwrap_or_else(|| panic!("{arguments:?}: {}", output.status)),
            text: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
            schema: arguments.contains(&"--json").then_some(name),
        };
        for text in [&done.text, &done.errors] {
            for word in TRACES.iter().chain([&SECRET]) {
                assert!(!text.contains(word), "{arguments:?}: {word:?} in {text}");
            }
            for password in passwords(command) {
                assert!(!text.contains(&password), "{arguments:?}: a password in {text}");
            }
        }
        done
    }

    /// The JSON that it printed, which is as its schema says.
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.text, self.errors));
        if let Some(name) = &self.schema {
            schema::check(name, &value).unwrap_or_else(|fault| panic!("{name}: {fault}: {value:#}"));
        }
        value
    }
}

/// The passwords of the URLs that a command is given, as they would be seen in one.
fn passwords(command: &Command) -> Vec<String> {
    let variables = command.get_envs().filter_map(|(_, value)| value);
    let given = command.get_args().chain(variables).filter_map(|text| text.to_str());
    let password = |text: &str| {
        let (_, rest) = text.split_once("://")?;
        let (user, _) = rest.split_once('@')?;
        Some(format!(":{}@", user.split_once(':')?.1))
    };
    given.filter_map(password).collect()
}

/// The program, with nothing of this machine's own settings. If it had a trace to show, it would.
///
/// `SENDOFF_TEST_PROGRAM` names one that was built otherwise, with other features for example.
pub(crate) fn program() -> Command {
    let built_otherwise = std::env::var_os("SENDOFF_TEST_PROGRAM");
    let mut command = Command::new(built_otherwise.unwrap_or_else(|| env!("CARGO_BIN_EXE_sendoff").into()));
    command
        .env_remove("SENDOFF_STORE")
        .env_remove("SENDOFF_NAMES")
        .env_remove("SENDOFF_CONFIG")
        .env_remove("SENDOFF_ADMIN")
        .env_remove("SENDOFF_LOG")
        .env_remove("SENDOFF_LOG_FORMAT")
        .env("RUST_BACKTRACE", "1")
        .env("SENDOFF_OPERATOR", "test");
    command
}

pub(crate) fn run(arguments: &[&str]) -> Done {
    Done::of(program().args(arguments))
}
