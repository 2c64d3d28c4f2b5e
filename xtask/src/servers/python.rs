//! Python with drivers for the databases: no server, but the language in which a test writes events without any code of ours.

use anyhow::{Context, Result};

use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `python`, at `SENDOFF_TEST_PYTHON`.
pub(crate) struct Python;

/// Debian's own, since only that one finds Debian's drivers.
const PROGRAM: Need = Need::Program("python3");
/// It makes the certificate of a server that is written in Python.
const OPENSSL: Need = Need::Program("openssl");
const PSYCOPG: Need = Need::File("/usr/lib/python3/dist-packages/psycopg/__init__.py");
const PYMYSQL: Need = Need::File("/usr/lib/python3/dist-packages/pymysql/__init__.py");
const PROBE: &str = "import platform, psycopg, pymysql, sqlite3; print(platform.python_version())";

impl Server for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            Requirement::new(PROGRAM, "python3"),
            Requirement::new(OPENSSL, "openssl"),
            Requirement::new(PSYCOPG, "python3-psycopg"),
            Requirement::new(PYMYSQL, "python3-pymysql"),
        ]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let program = PROGRAM.locate()?;
        // Isolated, so that packages of the developer's own stay out.
        let version =
            command::capture(Account::Ourselves.command(&program, site.dir).args(["-I", "-c", PROBE]))
                .context("Python does not find its database drivers")?;
        Ok(Running {
            name: self.name(),
            version: version.trim().to_owned(),
            nodes: Vec::new(),
            env: vec![("SENDOFF_TEST_PYTHON", program.display().to_string())],
        })
    }
}
