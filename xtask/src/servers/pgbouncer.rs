//! PgBouncer in transaction mode, in front of `postgres15`.
//!
//! The pool is small on purpose: with three server connections for many clients, a statement that runs on
//! another client's connection is found within seconds.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use super::postgres_cluster::{self, ACCOUNT, CLIENT_REQUIREMENTS};
use crate::account::Account;
use crate::command;
use crate::port;
use crate::process::Process;
use crate::requirement::{Need, Requirement};
use crate::server::{Node, Running, Server, Site};

/// `pgbouncer`, at `SENDOFF_TEST_PGBOUNCER`.
pub(crate) struct PgBouncer;

const PROGRAM: Need = Need::Program("pgbouncer");
const UPSTREAM: &str = "postgres15";
const READY_LIMIT: Duration = Duration::from_secs(30);

impl Server for PgBouncer {
    fn name(&self) -> &'static str {
        "pgbouncer"
    }

    fn requirements(&self) -> Vec<Requirement> {
        std::iter::once(Requirement::new(PROGRAM, "pgbouncer")).chain(CLIENT_REQUIREMENTS).collect()
    }

    fn upstream(&self) -> Option<&'static str> {
        Some(UPSTREAM)
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let account = Account::for_server(ACCOUNT)?;
        account.own(site.dir)?;
        let program = PROGRAM.locate()?;
        let port = port::free()?;
        let ini = site.dir.join("pgbouncer.ini");
        fs::write(&ini, configuration(port, site.port_of(UPSTREAM)?))
            .with_context(|| format!("cannot write {}", ini.display()))?;
        account.own(&ini)?;
        let mut command = account.command(&program, site.dir);
        // SIGTERM stops at once; SIGINT would wait for clients to finish.
        let mut process = Process::spawn(command.arg(&ini), site.dir.join("server.log"), Signal::SIGTERM)?;
        site.await_ready(&mut process, READY_LIMIT, || postgres_cluster::query(port, "sendoff", "SELECT 1"))?;
        let version = command::capture(account.command(&program, site.dir).arg("--version"))?;
        Ok(Running {
            name: self.name(),
            version: parse_version(&version),
            nodes: vec![Node { process, port, dir: site.dir.to_owned() }],
            env: vec![("SENDOFF_TEST_PGBOUNCER", postgres_cluster::url(port))],
        })
    }
}

fn configuration(port: u16, upstream: u16) -> String {
    format!(
        "[databases]
* = host=127.0.0.1 port={upstream} user=sendoff

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"
    )
}

/// `PgBouncer 1.18.0` on the first line.
fn parse_version(output: &str) -> String {
    let first = output.lines().next().unwrap_or_default();
    first.rsplit(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_last_word_of_the_first_line() {
        assert_eq!(parse_version("PgBouncer 1.18.0\nlibevent 2.1.12-stable\n"), "1.18.0");
        assert_eq!(parse_version(""), "");
    }
}
