//! Does every file we use come from a package we install?
//!
//! A program that happens to be on the author's machine makes the tests pass there and nowhere else. So each
//! file is traced to the package that owns it, and that package must be one we name or a dependency of one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{all_packages, requirements};
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::Server;

/// Fails with a list of every file that is missing or that no package of ours brings along.
pub(crate) fn check(servers: &[&'static dyn Server]) -> Result<()> {
    let requirements = requirements(servers);
    let traceable: Vec<Requirement> = requirements
        .iter()
        .filter(|requirement| !matches!(requirement.need, Need::OnPath(_)))
        .copied()
        .collect();
    let installable = with_dependencies(&all_packages(&traceable))?;
    let mut problems = Vec::new();
    let mut traced = 0_usize;
    for requirement in &requirements {
        match problem(requirement, &installable)? {
            Some(problem) => problems.push(format!("    {problem}")),
            None => traced += 1,
        }
    }
    if !problems.is_empty() {
        bail!(
            "not everything is there, or not from where it should be:\n{}\nwhat is missing comes with \
             `cargo xtask services --install-only`; for the rest, name the right package in the server's \
             `requirements` (xtask/src/servers)",
            problems.join("\n")
        );
    }
    eprintln!("{traced} needs are met, and would be on a fresh machine");
    Ok(())
}

fn problem(requirement: &Requirement, installable: &BTreeSet<String>) -> Result<Option<String>> {
    let Requirement { need, package } = requirement;
    if !requirement.is_met() {
        return Ok(Some(format!("{need} is missing (package {package})")));
    }
    match (need, need.find()) {
        (Need::Program(_) | Need::File(_), Some(path)) => {
            let owners = owners(&path)?;
            if owners.iter().any(|owner| installable.contains(owner)) {
                return Ok(None);
            }
            let owner = if owners.is_empty() { "no package".to_owned() } else { owners.join(", ") };
            let path = path.display();
            Ok(Some(format!("{need} is {path} of {owner}, which {package} does not bring along")))
        }
        _ => Ok(None),
    }
}

/// The packages that own a file, symbolic links resolved. None when it was put there by hand.
fn owners(path: &Path) -> Result<Vec<String>> {
    let real = fs::canonicalize(path).with_context(|| format!("cannot resolve {}", path.display()))?;
    // Debian merged /bin into /usr/bin, but dpkg still knows many files by the path they were shipped under.
    let shipped = real.strip_prefix("/usr").map(|rest| Path::new("/").join(rest));
    for candidate in std::iter::once(real.clone()).chain(shipped.ok()) {
        let output =
            Command::new("dpkg").arg("-S").arg(&candidate).env("LC_ALL", "C").output().context(
                "cannot run dpkg: the test servers are installed on Debian and its relatives only",
            )?;
        if output.status.success() {
            return Ok(parse_owners(&String::from_utf8_lossy(&output.stdout)));
        }
    }
    Ok(Vec::new())
}

/// `a, b:amd64: /path` per line, with lines about diversions among them.
fn parse_owners(output: &str) -> Vec<String> {
    output
        .lines()
        .filter(|line| !line.starts_with("diversion "))
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(names, _)| names.split(", "))
        .map(without_architecture)
        .collect()
}

/// The packages and all that comes with them, recommendations left out as we do when installing.
fn with_dependencies(packages: &BTreeSet<&'static str>) -> Result<BTreeSet<String>> {
    let output = command::capture(
        Command::new("apt-cache")
            .env("LC_ALL", "C")
            .args([
                "depends",
                "--recurse",
                "--installed",
                "--no-recommends",
                "--no-suggests",
                "--no-conflicts",
            ])
            .args(["--no-breaks", "--no-replaces", "--no-enhances"])
            .args(packages),
    )?;
    Ok(parse_depends(&output))
}

/// A package starts a line of its own; what belongs to it is indented.
fn parse_depends(output: &str) -> BTreeSet<String> {
    output
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()))
        .map(without_architecture)
        .collect()
}

fn without_architecture(package: &str) -> String {
    package.split(':').next().unwrap_or(package).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_without_architecture_and_diversions() {
        let output =
            "diversion by dash from: /bin/sh\nlibfaketime:amd64: /usr/lib/x/libfaketime.so.1\na, b: /c\n";
        assert_eq!(parse_owners(output), ["libfaketime", "a", "b"]);
    }

    #[test]
    fn dependencies_are_the_lines_that_are_not_indented() {
        let output = "faketime\n  Depends: libfaketime\n |Depends: x\n<virtual>\nlibc6:i386\n";
        assert_eq!(parse_depends(output), BTreeSet::from(["faketime".to_owned(), "libc6".to_owned()]));
    }

    #[test]
    fn a_file_put_there_by_hand_has_no_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("postgres");
        fs::write(&path, "").unwrap();
        if Need::Program("dpkg").find().is_none() {
            return;
        }
        assert_eq!(owners(&path).unwrap(), Vec::<String>::new());
        assert!(!owners(Path::new("/bin/sh")).unwrap().is_empty());
    }
}
