//! MariaDB from Debian, a single server.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;

use super::mariadb_node;
use crate::account::Account;
use crate::port;
use crate::process::Process;
use crate::requirement::Requirement;
use crate::server::{Node, Running, Server, Site};

/// `mariadb`, at `SENDOFF_TEST_MARIADB`.
pub(crate) struct MariaDb;

const READY_LIMIT: Duration = Duration::from_secs(60);

impl Server for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn requirements(&self) -> Vec<Requirement> {
        mariadb_node::REQUIREMENTS.to_vec()
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let account = Account::for_server(mariadb_node::ACCOUNT)?;
        let data = mariadb_node::create_data(&account, site.dir)?;
        let port = port::free()?;
        let mut command = mariadb_node::server(&account, site.dir, &data, port, site.durability)?;
        let mut process = Process::spawn(&mut command, site.dir.join("server.log"), Signal::SIGTERM)?;
        let version = site.await_ready(&mut process, READY_LIMIT, || mariadb_node::version(port))?;
        Ok(Running {
            name: self.name(),
            version,
            nodes: vec![Node { process, port, dir: site.dir.to_owned() }],
            env: vec![("SENDOFF_TEST_MARIADB", mariadb_node::url(port))],
        })
    }
}
