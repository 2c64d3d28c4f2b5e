//! Commands that prose speaks of, `sendoff status --watch`: they and their flags are there.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::document::Document;
use crate::program::program;

/// What is said of commands and flags that are not there.
pub(crate) fn check(document: &Document) -> Vec<String> {
    // Every second part is between backticks.
    let spans = document.prose().into_iter().flat_map(|line| line.split('`').skip(1).step_by(2));
    let found = spans.filter_map(|span| Some((span, problem(span)?)));
    found.map(|(span, problem)| format!("{}: `{span}`: {problem}", document.path)).collect()
}

fn problem(span: &str) -> Option<String> {
    let words: Vec<&str> = span.strip_prefix("sendoff ")?.split_whitespace().collect();
    let is_command = |word: &&&str| word.chars().all(|letter| letter.is_ascii_lowercase());
    let command = words.first().filter(is_command)?;
    let Some(mut help) = help(&[command]) else {
        return Some("there is no such command".to_owned());
    };
    if help.contains("\nCommands:\n")
        && let Some(below) = words.get(1).filter(is_command)
    {
        help = match self::help(&[command, below]) {
            Some(help) => help,
            None => return Some("there is no such command".to_owned()),
        };
    }
    let is_missing = |word: &&&str| word.starts_with("--") && !help.contains(word.split('=').next().unwrap());
    let unknown = words.iter().find(is_missing)?;
    Some(format!("it has no {unknown}"))
}

/// What the program says of a command; none: there is no such command.
fn help(command: &[&str]) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    let ask = || {
        let asked = program().args(command).arg("--help").output().unwrap();
        let text = String::from_utf8(asked.stdout).unwrap();
        asked.status.success().then_some(text)
    };
    known.entry(command.join(" ")).or_insert_with(ask).clone()
}
