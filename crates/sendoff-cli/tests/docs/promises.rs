//! The tests that `docs/guarantees.md` names: they are there.

use std::path::Path;

use crate::document::{Document, root};

/// The page that names a test for each promise.
pub(crate) const PAGE: &str = "docs/guarantees.md";

/// Names of tests that no code has. `…` in a name stands for the rest of it.
pub(crate) fn check(document: &Document) -> Vec<String> {
    let code = code(&root().join("crates"));
    let spans = document.prose().into_iter().flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = spans.flat_map(|span| span.split(|letter: char| !is_of_a_name(letter)));
    // Shorter ones are names of files and settings.
    let names = words.filter(|word| word.matches('_').count() >= 2);
    let missing = names.filter(|name| !name.split('…').all(|part| code.contains(part)));
    missing.map(|name| format!("{}: there is no test `{name}`", document.path)).collect()
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '…')
}

/// All of it, in one text.
fn code(directory: &Path) -> String {
    let mut text = String::new();
    let mut paths = vec![directory.to_owned()];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    text
}
