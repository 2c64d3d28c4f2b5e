//! `cargo xtask tidy`: what compilers do not check.
//!
//! A rule is a pure function from a path and a text (or from all paths) to findings, in a file of its own
//! with its tests. This file only finds the files and prints.

mod names;
mod size;
mod sql;
mod text;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, command};

/// Where code is; rules about code look nowhere else.
const CODE_DIRS: [&str; 4] = ["crates/", "xtask/", "examples/", "benches/"];

/// Something that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from one; none when it is about the whole file.
    line: Option<usize>,
    problem: String,
}

impl Finding {
    fn in_file(path: &str, problem: String) -> Finding {
        Finding { path: path.to_owned(), line: None, problem }
    }

    /// `index` is counted from zero.
    fn at_line(path: &str, index: usize, problem: String) -> Finding {
        Finding { path: path.to_owned(), line: Some(index + 1), problem }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.problem),
            None => write!(f, "{}: {}", self.path, self.problem),
        }
    }
}

/// Checks the workspace and prints each finding where an editor can jump to it.
pub(crate) fn run() -> Result<()> {
    let root = cargo::root();
    let paths = tracked_files(&root)?;
    let findings = check(&root, &paths)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings in {} files looked at", findings.len(), paths.len());
    }
    eprintln!("{} files are tidy", paths.len());
    Ok(())
}

/// Files under version control, and new ones that are about to be.
fn tracked_files(root: &Path) -> Result<Vec<String>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = command::capture(Command::new("git").current_dir(root).args(list))
        .context("tidy needs a git checkout to know which files are ours")?;
    Ok(output.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// All rules over all files.
fn check(root: &Path, paths: &[String]) -> Result<Vec<Finding>> {
    let mut findings = sql::same_statements(paths);
    for path in paths {
        let bytes = match fs::read(root.join(path)) {
            Ok(bytes) => bytes,
            // Removed, but the removal is not committed yet; or a link that leads nowhere.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        for rule in [
            size::short_files,
            names::telling_names,
            text::no_leftovers,
            text::no_promises,
            text::no_machines,
        ] {
            findings.extend(rule(path, &text));
        }
    }
    Ok(findings)
}

fn is_code(path: &str) -> bool {
    CODE_DIRS.iter().any(|dir| path.starts_with(dir))
}

fn is_rust_code(path: &str) -> bool {
    is_code(path) && Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems that all rules together find in a tree of these files.
    pub(super) fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        check(root.path(), &paths).unwrap().iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_clean_tree_has_no_findings() {
        assert_eq!(problems(&[("crates/a/src/lib.rs", "//! Fine.\n"), ("README.md", "Fine.\n")]), [""; 0]);
    }

    #[test]
    fn what_is_no_text_or_is_gone_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("logo.png"), [0xff, 0x00, 0xfe]).unwrap();
        let paths = ["logo.png".to_owned(), "removed.md".to_owned()];
        assert_eq!(check(root.path(), &paths).unwrap(), []);
    }
}
