//! A name that says nothing collects everything.

use std::path::Path;

use super::{Finding, is_code, is_rust_code};

const BANNED: [&str; 7] = ["utils", "util", "common", "types", "prelude", "helpers", "helper"];

/// No file, folder or module in the code has a name that could hold anything.
pub(super) fn telling_names(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_code(path) {
        let stems = Path::new(path).iter().filter_map(|part| Path::new(part).file_stem()?.to_str());
        findings.extend(
            stems.filter(|stem| BANNED.contains(stem)).map(|stem| Finding::in_file(path, advice(stem))),
        );
    }
    if is_rust_code(path) {
        let inline = |line: &str| module_with_body(line).filter(|name| BANNED.contains(name)).map(advice);
        let lines = text.lines().enumerate();
        findings.extend(lines.filter_map(|(index, line)| Some(Finding::at_line(path, index, inline(line)?))));
    }
    findings
}

fn advice(name: &str) -> String {
    format!("`{name}` says nothing: name it after what it holds")
}

/// The name in `mod name {`, whatever its visibility. `mod name;` has a file, which is found by its path.
fn module_with_body(line: &str) -> Option<&str> {
    let mut words = line.strip_suffix('{')?.split_whitespace().skip_while(|&word| word != "mod");
    words.next()?;
    words.next()
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::problems;

    #[test]
    fn files_folders_and_inline_modules_are_found() {
        let found = problems(&[
            ("crates/a/src/utils.rs", ""),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/src/lib.rs", "\npub(crate) mod helpers {\n}\n"),
        ]);
        assert_eq!(
            found,
            [
                "crates/a/src/utils.rs: `utils` says nothing: name it after what it holds",
                "crates/a/tests/common/mod.rs: `common` says nothing: name it after what it holds",
                "crates/a/src/lib.rs:2: `helpers` says nothing: name it after what it holds",
            ]
        );
    }

    #[test]
    fn names_that_only_contain_one_and_other_folders_are_fine() {
        let found = problems(&[
            ("crates/a/src/event_types.rs", "mod tests {\n}\n"),
            ("docs/types.md", "mod types {"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
