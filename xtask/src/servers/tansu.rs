//! tansu, a broker that speaks Kafka's protocol and shares no code with our client, as a program: a test of a sink starts a server of its own.
//!
//! It takes a quarter of an hour to build, so it is only had when asked for: `cargo xtask test --with tansu`. What is read back is read by confluent-kafka, from PyPI: Debian's
//! kcat is too old for it. Both are kept in a cache directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::postgres18;
use crate::account::Account;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};
use crate::{cargo, command};

/// `tansu`: the program at `SENDOFF_TEST_TANSU`, Python at `SENDOFF_TEST_TANSU_PYTHON` and its packages at `SENDOFF_TEST_CONFLUENT_KAFKA`.
pub(crate) struct Tansu;

const VERSION: &str = "0.6.0";
/// What pip installs, for the Pythons of Debian 12 and 13.
const PYTHON_LOCK: &str = include_str!("tansu/requirements.txt");

const PYTHON: Need = Need::Program("python3");
const PIP: Need = Need::File("/usr/lib/python3/dist-packages/pip/__init__.py");
const PROBE: &str = "import confluent_kafka; print(confluent_kafka.__version__)";

impl Server for Tansu {
    fn name(&self) -> &'static str {
        "tansu"
    }

    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = vec![Requirement::new(PYTHON, "python3")];
        // It only downloads: with everything in the cache there is no need for it.
        if !packages_path().is_ok_and(|path| path.is_dir()) {
            requirements.push(Requirement::new(PIP, "python3-pip"));
        }
        requirements
    }

    /// The mock cluster's tests are the same module.
    fn upstream(&self) -> Option<&'static str> {
        Some("kafka")
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let (program, packages, python) = (cached_program()?, cached_packages()?, PYTHON.locate()?);
        let probed = command::capture(
            Account::Ourselves.command(&python, site.dir).args(["-c", PROBE]).env("PYTHONPATH", &packages),
        );
        probed.with_context(|| {
            format!("confluent-kafka does not work; remove {} to install it again", packages.display())
        })?;
        Ok(Running {
            name: self.name(),
            version: VERSION.to_owned(),
            nodes: Vec::new(),
            env: vec![
                ("SENDOFF_TEST_TANSU", program.display().to_string()),
                ("SENDOFF_TEST_TANSU_PYTHON", python.display().to_string()),
                ("SENDOFF_TEST_CONFLUENT_KAFKA", packages.display().to_string()),
            ],
        })
    }
}

fn cache() -> Result<PathBuf> {
    let cache = postgres18::cache_path()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    Ok(cache)
}

fn packages_path() -> Result<PathBuf> {
    Ok(postgres18::cache_path()?.join(format!("confluent-kafka-for-tansu-{VERSION}")))
}

/// The program, built on first use. `cargo install` puts it in its place only when it is complete.
fn cached_program() -> Result<PathBuf> {
    let root = cache()?.join(format!("tansu-{VERSION}"));
    let program = root.join("bin/tansu");
    if !program.is_file() {
        eprintln!("building tansu {VERSION}, once: this takes a quarter of an hour");
        let mut install = cargo::cargo(["install", "tansu", "--version", VERSION, "--features", "dynostore"]);
        command::run(install.arg("--root").arg(&root))
            .context("cannot build tansu from the crate registry")?;
    }
    Ok(program)
}

/// The packages of Python, installed on first use.
fn cached_packages() -> Result<PathBuf> {
    let packages = packages_path()?;
    if packages.is_dir() {
        return Ok(packages);
    }
    let download = tempfile::tempdir_in(cache()?).context("cannot create a directory for the download")?;
    install_packages(download.path())?;
    let moved = fs::rename(download.path().join("python"), &packages);
    // Another run may have been faster.
    if !packages.is_dir() {
        moved.with_context(|| format!("cannot move the packages to {}", packages.display()))?;
    }
    Ok(packages)
}

fn install_packages(dir: &Path) -> Result<()> {
    fs::write(dir.join("requirements.txt"), PYTHON_LOCK).context("cannot write requirements.txt")?;
    let mut pip = Command::new(PYTHON.locate()?);
    pip.current_dir(dir).args(["-I", "-m", "pip", "install", "--require-hashes", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "-r", "requirements.txt", "--target", "python"]);
    command::capture(&mut pip).context("cannot install confluent-kafka from PyPI")?;
    Ok(())
}
