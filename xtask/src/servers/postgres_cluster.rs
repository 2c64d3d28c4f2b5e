//! A private PostgreSQL cluster, whichever version: what `postgres15` and `postgres18` share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::account::Account;
use crate::command;
use crate::port;
use crate::process::Process;
use crate::requirement::{Need, Requirement};
use crate::server::{Durability, Node, Running, Site};

/// Debian's client. Taken from the versioned directory: the one in the program directory is a Perl wrapper
/// that looks for Debian's own clusters first.
const PSQL: Need = Need::File("/usr/lib/postgresql/*/bin/psql");
/// The account that Debian runs PostgreSQL and PgBouncer as.
pub(super) const ACCOUNT: &str = "postgres";
const READY_LIMIT: Duration = Duration::from_secs(60);

/// What any of our PostgreSQL servers needs, besides the server itself.
pub(super) const CLIENT_REQUIREMENTS: [Requirement; 2] = [
    Requirement::new(PSQL, "postgresql-client"),
    Requirement::new(Need::Account(ACCOUNT), "postgresql-common"),
];

/// Makes a cluster in `site` with the programs in `bin`, starts it, and creates the database `sendoff`.
pub(super) fn start(
    name: &'static str,
    variable: &'static str,
    bin: &Path,
    site: &Site<'_>,
) -> Result<Running> {
    let account = Account::for_server(ACCOUNT)?;
    account.own(site.dir)?;
    let data = site.dir.join("data");
    command::capture(account.command(&bin.join("initdb"), site.dir).arg("-D").arg(&data).args([
        "-A",
        "trust",
        "-U",
        "sendoff",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    ]))
    .context("cannot create the cluster")?;
    let port = port::free()?;
    let mut process = spawn(bin, &data, port, &account, site)?;
    site.await_ready(&mut process, READY_LIMIT, || query(port, "postgres", "SELECT 1"))?;
    query(port, "postgres", "CREATE DATABASE sendoff").context("cannot create the database sendoff")?;
    let version = query(port, "sendoff", "SHOW server_version")?;
    Ok(Running {
        name,
        version: version.split_whitespace().next().unwrap_or_default().to_owned(),
        nodes: vec![Node { process, port, dir: site.dir.to_owned() }],
        env: vec![(variable, url(port))],
    })
}

fn spawn(bin: &Path, data: &Path, port: u16, account: &Account, site: &Site<'_>) -> Result<Process> {
    let mut command = account.command(&bin.join("postgres"), site.dir);
    command.arg("-D").arg(data).arg("-p").arg(port.to_string());
    let disk = match site.durability {
        Durability::Scratch => "off",
        Durability::Disk => "on",
    };
    // Commits stay synchronous whatever they wait for: the tests must see the code path that users have.
    for setting in [
        "listen_addresses=127.0.0.1",
        &format!("unix_socket_directories={}", site.dir.display()),
        &format!("fsync={disk}"),
        &format!("full_page_writes={disk}"),
        "synchronous_commit=on",
        "max_connections=300",
        "max_prepared_transactions=20",
        "shared_buffers=256MB",
    ] {
        command.arg("-c").arg(setting);
    }
    // SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for every client to go.
    Process::spawn(&mut command, site.dir.join("server.log"), Signal::SIGINT)
}

/// How a test connects.
pub(super) fn url(port: u16) -> String {
    format!("postgres://sendoff@127.0.0.1:{port}/sendoff")
}

/// Runs one statement through a connection of its own and returns what `psql` prints.
pub(super) fn query(port: u16, database: &str, sql: &str) -> Result<String> {
    let psql: PathBuf = PSQL.locate()?;
    let output = command::capture(
        Account::Ourselves
            .command(&psql, Path::new("/"))
            .env("PGCONNECT_TIMEOUT", "5")
            .args(["--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "sendoff"])
            .args(["-p", &port.to_string(), "-d", database, "-c", sql]),
    )?;
    Ok(output.trim().to_owned())
}
