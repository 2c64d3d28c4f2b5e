//! What a server needs from the machine, and which Debian package has it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::account;

/// Where Debian puts programs. `PATH` is not asked: a wrapper or a hand-made build in front of Debian's
/// program would be picked up on one machine and be missing on the next.
const PROGRAM_DIRS: [&str; 4] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// One thing that must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A program in Debian's program directories.
    Program(&'static str),
    /// A file; a path component `*` stands for any name, and the highest version wins.
    File(&'static str),
    /// A system account to run as, which matters only when we are root.
    Account(&'static str),
    /// A program anywhere on `PATH`: any origin will do.
    OnPath(&'static str),
}

/// A need and the package that meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requirement {
    /// What must be there.
    pub(crate) need: Need,
    /// The Debian package to install when it is not.
    pub(crate) package: &'static str,
}

impl Requirement {
    /// `need`, to be had from `package`.
    pub(crate) const fn new(need: Need, package: &'static str) -> Requirement {
        Requirement { need, package }
    }

    /// Whether the machine has it.
    pub(crate) fn is_met(&self) -> bool {
        match self.need {
            Need::Account(name) => !account::is_root() || account::exists(name),
            _ => self.need.find().is_some(),
        }
    }
}

impl Need {
    /// The file that meets this need. An account is no file.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        match self {
            Need::Program(name) => first_file(PROGRAM_DIRS.iter().map(PathBuf::from), name),
            Need::OnPath(name) => {
                let path = std::env::var_os("PATH")?;
                first_file(std::env::split_paths(&path), name)
            }
            Need::File(pattern) => highest(pattern),
            Need::Account(_) => None,
        }
    }

    /// The same, with an error that says what to do.
    pub(crate) fn locate(&self) -> Result<PathBuf> {
        self.find()
            .with_context(|| format!("{self} is not installed; run `cargo xtask services --install-only`"))
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Program(name) => write!(f, "the program {name}"),
            Need::OnPath(name) => write!(f, "the program {name} (anywhere on PATH)"),
            Need::File(pattern) => write!(f, "the file {pattern}"),
            Need::Account(name) => write!(f, "the account {name}"),
        }
    }
}

fn first_file(dirs: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// The existing file with the highest version in place of the `*`.
fn highest(pattern: &str) -> Option<PathBuf> {
    let Some((before, after)) = pattern.split_once("*/") else {
        return Some(PathBuf::from(pattern)).filter(|path| path.is_file());
    };
    let mut names: Vec<String> = fs::read_dir(before)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| Path::new(before).join(name).join(after).is_file())
        .collect();
    // Numbers first by value, so that 15 is above 9; names that are none by the alphabet.
    names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(0), name.clone()));
    names.pop().map(|name| Path::new(before).join(name).join(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_wins_and_incomplete_ones_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "17"] {
            fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        for version in ["9", "15"] {
            fs::write(root.path().join(version).join("bin/initdb"), "").unwrap();
        }
        let pattern = format!("{}/*/bin/initdb", root.path().display());
        assert_eq!(highest(&pattern), Some(root.path().join("15/bin/initdb")));
        assert_eq!(highest(&format!("{}/*/bin/psql", root.path().display())), None);
    }

    #[test]
    fn a_program_is_found_in_debians_directories() {
        assert!(Need::Program("sh").find().is_some());
        assert!(Need::Program("no-such-program").find().is_none());
        assert!(
            Need::Program("no-such-program").locate().unwrap_err().to_string().contains("--install-only")
        );
    }
}
