//! A file that is too long has more than one purpose.

use super::{Finding, is_rust_code};

const LINES_MAX: usize = 500;

/// Rust files have at most [`LINES_MAX`] lines, tests included.
pub(super) fn short_files(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if !is_rust_code(path) || lines <= LINES_MAX {
        return Vec::new();
    }
    vec![Finding::in_file(path, format!("{lines} lines, the limit is {LINES_MAX}: split it by purpose"))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::problems;

    #[test]
    fn a_long_rust_file_is_found() {
        let long = "//\n".repeat(LINES_MAX + 1);
        assert_eq!(
            problems(&[("xtask/src/long.rs", &long)]),
            ["xtask/src/long.rs: 501 lines, the limit is 500: split it by purpose"]
        );
    }

    #[test]
    fn the_limit_itself_and_other_files_are_fine() {
        let full = "//\n".repeat(LINES_MAX);
        let long = "a\n".repeat(LINES_MAX * 2);
        assert_eq!(problems(&[("xtask/src/full.rs", &full), ("docs/long.md", &long)]), [""; 0]);
    }
}
