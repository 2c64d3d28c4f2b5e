//! Rust in a document is a quotation: `<!-- quote: PATH -->` before it says of what. The file is compiled and run by other tests.
//!
//! Its lines must stand in the file one after the other, whatever their indentation; those of a documentation comment count without its marks and its hidden lines.
//! A line that is `// …` stands for any number of them.

use crate::document::{Block, Document, root};

/// Stands for lines that are left out.
const GAP: &str = "// …";

/// What is not as it stands in its file.
pub(crate) fn check(document: &Document) -> Vec<String> {
    let blocks = document.blocks.iter().filter(|block| block.language == "rust");
    let found = blocks.filter_map(|block| Some((block.line, problem(block)?)));
    found.map(|(line, problem)| format!("{}:{line}: {problem}", document.path)).collect()
}

fn problem(block: &Block) -> Option<String> {
    let Some(path) = block.comment.as_deref().and_then(|comment| comment.strip_prefix("quote: ")) else {
        return Some("Rust that is no quotation: give <!-- quote: PATH --> before it".to_owned());
    };
    if !path.ends_with(".rs") || !is_compiled(path) {
        return Some(format!("nothing compiles {path}"));
    }
    let text = match std::fs::read_to_string(root().join(path)) {
        Ok(text) => text,
        Err(error) => return Some(format!("{path}: {error}")),
    };
    let lines: Vec<String> = text.lines().filter_map(plain).collect();
    let missing = missing(block, &lines)?;
    Some(format!("{path} does not have these lines one after the other:\n{missing}"))
}

/// Examples and code of a crate; an example has to be named by a crate.
fn is_compiled(path: &str) -> bool {
    let name = |manifest: &str| std::fs::read_to_string(root().join(manifest)).unwrap().contains(path);
    path.starts_with("crates/") || name("crates/sendoff/Cargo.toml") || name("crates/sendoff-cli/Cargo.toml")
}

/// A line as it is compared; none: it is not shown.
fn plain(line: &str) -> Option<String> {
    let line = line.trim();
    let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
        return Some(line.to_owned());
    };
    let comment = comment.trim();
    (comment != "#" && !comment.starts_with("# ")).then(|| comment.to_owned())
}

/// The part of a block that is not there.
fn missing(block: &Block, lines: &[String]) -> Option<String> {
    let quoted: Vec<String> = block.text.lines().filter_map(plain).collect();
    let mut from = 0;
    for part in quoted.split(|line| line == GAP) {
        let part: &[String] = trimmed(part);
        if part.is_empty() {
            continue;
        }
        match lines[from..].windows(part.len()).position(|window| window == part) {
            Some(found) => from += found + part.len(),
            None => return Some(part.join("\n")),
        }
    }
    (from == 0).then(|| "nothing is quoted".to_owned())
}

/// Without empty lines at its ends.
fn trimmed(part: &[String]) -> &[String] {
    let first = part.iter().position(|line| !line.is_empty()).unwrap_or(part.len());
    let last = part.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
    &part[first..last]
}
