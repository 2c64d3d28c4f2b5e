//! Commands that prose speaks of, `sendoff status --watch`: they and their flags are there.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::document::Document;
use crate::outbox::program;

pub(crate) fn check(document: &Document) {
    for line in document.prose() {
        // Every second part is between backticks.
        for span in line.split('`').skip(1).step_by(2) {
            let Some(rest) = span.strip_prefix("sendoff ") else { continue };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let is_command =
                |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase());
            let Some(command) = words.first().filter(|word| is_command(word)) else { continue };
            let help = help(command);
            let help = help
                .unwrap_or_else(|| panic!("{}: there is no command {command:?}: `{span}`", document.path));
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap();
                assert!(help.contains(flag), "{}: {command} has no {flag}: `{span}`", document.path);
            }
        }
    }
}

/// What the program says of a command and of those below it; none: there is no such command.
fn help(command: &str) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    let ask = || {
        let asked = program().args([command, "--help"]).output().unwrap();
        let mut text = String::from_utf8(asked.stdout).unwrap();
        if command == "config" {
            let check = program().args(["config", "check", "--help"]).output().unwrap();
            text.push_str(&String::from_utf8(check.stdout).unwrap());
        }
        asked.status.success().then_some(text)
    };
    known.entry(command.to_owned()).or_insert_with(ask).clone()
}
