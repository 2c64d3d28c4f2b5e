//! One `mariadbd` on loopback: what `mariadb` and `galera` share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::Durability;

/// The account that Debian runs MariaDB as.
pub(super) const ACCOUNT: &str = "mysql";
const SERVER: Need = Need::Program("mariadbd");
const INSTALL_DB: Need = Need::Program("mariadb-install-db");
const CLIENT: Need = Need::Program("mariadb");
const PASSWORD: &str = "sendoff-test";

/// Run while the data directory is made. `127.0.0.1` and not `localhost`: names are not resolved.
const FIRST_SQL: &str = "FLUSH PRIVILEGES;
CREATE DATABASE sendoff;
CREATE USER 'sendoff'@'127.0.0.1' IDENTIFIED BY 'sendoff-test';
GRANT ALL PRIVILEGES ON *.* TO 'sendoff'@'127.0.0.1' WITH GRANT OPTION;
";

/// What any MariaDB server of ours needs.
pub(super) const REQUIREMENTS: [Requirement; 4] = [
    Requirement::new(SERVER, "mariadb-server"),
    Requirement::new(INSTALL_DB, "mariadb-server"),
    Requirement::new(CLIENT, "mariadb-server"),
    Requirement::new(Need::Account(ACCOUNT), "mariadb-server"),
];

/// Makes a data directory below `dir`, with the database and the user that the tests connect as.
pub(super) fn create_data(account: &Account, dir: &Path) -> Result<PathBuf> {
    account.own(dir)?;
    let data = dir.join("data");
    let first_sql = dir.join("first.sql");
    fs::write(&first_sql, FIRST_SQL).with_context(|| format!("cannot write {}", first_sql.display()))?;
    account.own(&first_sql)?;
    command::capture(
        account
            .command(&INSTALL_DB.locate()?, dir)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            // Every mariadbd first sweeps its temporary directory: one that is shared with another server
            // starting at the same time makes either of them crash.
            .arg(option("tmpdir", dir))
            .arg(option("datadir", &data))
            .arg(option("extra-file", &first_sql)),
    )
    .context("cannot create the data directory")?;
    Ok(data)
}

/// The server with the settings every node has. The isolation level is left at the server's default on purpose: that is what applications run on.
pub(super) fn server(
    account: &Account,
    dir: &Path,
    data: &Path,
    port: u16,
    durability: Durability,
) -> Result<Command> {
    let flush = match durability {
        Durability::Scratch => 0,
        Durability::Disk => 1,
    };
    let mut command = account.command(&SERVER.locate()?, dir);
    command
        .arg("--no-defaults")
        .arg(option("datadir", data))
        .arg(option("socket", &dir.join("socket")))
        .arg(option("pid-file", &dir.join("pid")))
        .arg(option("tmpdir", dir))
        .arg(format!("--port={port}"))
        .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=300"])
        .arg(format!("--innodb-flush-log-at-trx-commit={flush}"))
        .arg("--innodb-buffer-pool-size=256M");
    Ok(command)
}

/// Runs one statement through a connection of its own, as the tests would, and returns what it prints.
pub(super) fn query(port: u16, sql: &str) -> Result<String> {
    let output = command::capture(
        Account::Ourselves
            .command(&CLIENT.locate()?, Path::new("/"))
            .env("MYSQL_PWD", PASSWORD)
            .args([
                "--no-defaults",
                "--protocol=tcp",
                "--host=127.0.0.1",
                "--user=sendoff",
                "--connect-timeout=5",
            ])
            .args(["--batch", "--skip-column-names", "--database=sendoff"])
            .args([&format!("--port={port}"), "--execute", sql]),
    )?;
    Ok(output.trim().to_owned())
}

/// What the server says its version is, without the distribution's tail.
pub(super) fn version(port: u16) -> Result<String> {
    let version = query(port, "SELECT VERSION()")?;
    Ok(version.split('-').next().unwrap_or_default().to_owned())
}

/// How a test connects.
pub(super) fn url(port: u16) -> String {
    format!("mysql://sendoff:{PASSWORD}@127.0.0.1:{port}/sendoff")
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}
