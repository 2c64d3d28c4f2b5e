//! Text that must not be in any file of ours.
//!
//! The texts looked for are put together with `concat!`: this file is looked at like any other.

use super::Finding;

/// Code and notes that are not meant to stay.
const LEFTOVER_CODE: [&str; 4] =
    [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("db", "g!("), concat!("#[", "ignore")];
const LEFTOVER_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// What no outbox can promise, in lower case with spaces.
const PROMISE: &str = concat!("exactly", " once");
/// Where somebody's machine begins.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// No unfinished code, no debugging aids, no notes to self.
pub(super) fn no_leftovers(path: &str, text: &str) -> Vec<Finding> {
    each_line(path, text, |line| {
        let code = LEFTOVER_CODE.into_iter().find(|needle| line.contains(needle));
        let found = code.or_else(|| LEFTOVER_WORDS.into_iter().find(|word| contains_word(line, word)))?;
        Some(format!("`{found}` was left over: finish it, or open an issue and remove it"))
    })
}

/// No claim of what cannot be had, in any spelling, also across the end of a line.
pub(super) fn no_promises(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<String> = text.lines().map(plain_words).collect();
    let promised = |index: usize| {
        let rest = lines.get(index + 1).map_or("", String::as_str);
        let broken = format!("{} {rest}", lines[index]);
        lines[index].contains(PROMISE) || (broken.contains(PROMISE) && !rest.contains(PROMISE))
    };
    let finding =
        |index| Finding::at_line(path, index, format!("`{PROMISE}` cannot be had: say what does hold"));
    (0..lines.len()).filter(|&index| promised(index)).map(finding).collect()
}

/// No absolute path of somebody's machine.
pub(super) fn no_machines(path: &str, text: &str) -> Vec<Finding> {
    each_line(path, text, |line| {
        let found = MACHINE_PATHS.into_iter().find(|needle| {
            // Inside a longer path or an address it is not the root of a machine.
            line.match_indices(needle)
                .any(|(at, _)| !line[..at].ends_with(|before: char| is_inside_path(before)))
        })?;
        Some(format!("`{found}` is a path of one machine: make it relative, or take it from the environment"))
    })
}

fn each_line(path: &str, text: &str, problem: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(Finding::at_line(path, index, problem(line)?))).collect()
}

fn contains_word(line: &str, word: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word))
}

fn is_inside_path(before: char) -> bool {
    before.is_alphanumeric() || "_-.~}$".contains(before)
}

/// Lower case, single spaces, hyphens and underscores as spaces, without the marks a comment begins with.
fn plain_words(line: &str) -> String {
    let without_marks =
        line.trim_start_matches(|first: char| first.is_whitespace() || "/!*#>-".contains(first));
    let spaced = without_marks.to_lowercase().replace(['-', '_'], " ");
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::problems;

    fn lines_found(text: &str) -> Vec<usize> {
        let found = problems(&[("docs/a.md", text)]);
        found.iter().map(|finding| finding.split(':').nth(1).unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn leftovers_are_found() {
        for needle in LEFTOVER_CODE.into_iter().chain(LEFTOVER_WORDS) {
            assert_eq!(lines_found(&format!("fine\n// {needle} and more\n")), [2], "{needle}");
        }
    }

    #[test]
    fn a_word_that_only_contains_a_leftover_is_fine() {
        let [todo, _, xs] = LEFTOVER_WORDS;
        assert_eq!(lines_found(&format!("{todo}S {xs}{xs} name.{xs}{xs}\n")), [0; 0]);
    }

    #[test]
    fn a_promise_is_found_in_every_spelling() {
        let hyphenated = PROMISE.replace(' ', "-");
        let identifier = PROMISE.replace(' ', "_");
        let capitals = PROMISE.to_uppercase();
        assert_eq!(
            lines_found(&format!("{PROMISE}\n{hyphenated}\n{capitals}\nfn {identifier}() {{}}\n")),
            [1, 2, 3, 4]
        );
    }

    #[test]
    fn a_promise_across_lines_is_found_once() {
        let broken = PROMISE.replace(' ', "\n    /// ");
        assert_eq!(lines_found(&format!("fine\n/// delivers {broken}, they say\nfine\n")), [2]);
        assert_eq!(lines_found("exactly\n\nonce upon a time, exactly as it was\n"), [0; 0]);
    }

    #[test]
    fn a_path_of_a_machine_is_found_and_a_relative_one_is_not() {
        for needle in MACHINE_PATHS {
            assert_eq!(
                lines_found(&format!("see {needle}x or\n`{needle}y`\n{needle}z\n")),
                [1, 2, 3],
                "{needle}"
            );
            let inside = needle.trim_start_matches('/');
            assert_eq!(
                lines_found(&format!("see {inside}x, a{needle}x, https://example.org{needle}x\n")),
                [0; 0]
            );
        }
    }
}
