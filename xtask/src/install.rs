//! Installing what the servers need, and only what is missing.

mod origin;
mod policy;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::account;
use crate::command;
use crate::requirement::Requirement;
use crate::server::Server;

pub(crate) use origin::check as check_origin;

/// Consulted by Debian's maintainer scripts before they start a service.
const POLICY_PATH: &str = "/usr/sbin/policy-rc.d";

/// Installs the packages of every requirement that is not met, with one `apt-get` run, and makes sure that
/// all are met afterwards.
pub(crate) fn install(servers: &[&'static dyn Server]) -> Result<()> {
    let requirements = requirements(servers);
    let packages = missing_packages(&requirements);
    if packages.is_empty() {
        eprintln!("every package is there: {}", listed(&all_packages(&requirements)));
        return Ok(());
    }
    if !account::is_root() {
        bail!(
            "packages are missing and only root can install them; run\n    \
             sudo apt-get update && sudo apt-get install -y --no-install-recommends {}\nand try again",
            listed(&packages)
        );
    }
    eprintln!("installing {}", listed(&packages));
    apt_install(&packages)?;
    let unmet: Vec<String> = requirements
        .iter()
        .filter(|requirement| !requirement.is_met())
        .map(|requirement| format!("    {} (package {})", requirement.need, requirement.package))
        .collect();
    if !unmet.is_empty() {
        bail!("apt-get succeeded, but these are still missing:\n{}", unmet.join("\n"));
    }
    Ok(())
}

/// What all these servers need, each thing once.
fn requirements(servers: &[&'static dyn Server]) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = Vec::new();
    for requirement in servers.iter().flat_map(|server| server.requirements()) {
        if !all.contains(&requirement) {
            all.push(requirement);
        }
    }
    all
}

fn all_packages(requirements: &[Requirement]) -> BTreeSet<&'static str> {
    requirements.iter().map(|requirement| requirement.package).collect()
}

fn missing_packages(requirements: &[Requirement]) -> BTreeSet<&'static str> {
    requirements
        .iter()
        .filter(|requirement| !requirement.is_met())
        .map(|requirement| requirement.package)
        .collect()
}

fn listed(packages: &BTreeSet<&'static str>) -> String {
    packages.iter().copied().collect::<Vec<_>>().join(" ")
}

fn apt_install(packages: &BTreeSet<&'static str>) -> Result<()> {
    let _no_services = policy::NoServices::place(Path::new(POLICY_PATH))?;
    command::run(apt_get().arg("update"))?;
    command::run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages))
}

/// `apt-get`, patient with a busy mirror and with another `apt-get`. Without a pseudo-terminal, because it
/// runs in a process group of its own and must not be stopped for touching the terminal.
fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args([
        "-q",
        "-o",
        "Dpkg::Use-Pty=0",
        "-o",
        "DPkg::Lock::Timeout=120",
        "-o",
        "Acquire::Retries=3",
    ]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Need;

    #[test]
    fn only_the_packages_of_unmet_requirements_are_installed() {
        let requirements = [
            Requirement::new(Need::Program("sh"), "dash"),
            Requirement::new(Need::Program("no-such-program"), "no-such-package"),
            Requirement::new(Need::File("/no/such/file"), "no-such-package"),
        ];
        assert_eq!(missing_packages(&requirements), BTreeSet::from(["no-such-package"]));
        assert_eq!(all_packages(&requirements), BTreeSet::from(["dash", "no-such-package"]));
    }

    #[test]
    fn a_requirement_shared_by_servers_is_listed_once() {
        let all = requirements(&crate::servers::ALL);
        for (index, requirement) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(requirement), "{requirement:?} twice");
        }
    }
}
