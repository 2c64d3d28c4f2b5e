//! NATS as a program: a test of a sink starts a server of its own, kills it and starts it again.

use anyhow::Result;

use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `nats`, at `SENDOFF_TEST_NATS`.
pub(crate) struct Nats;

const PROGRAM: Need = Need::Program("nats-server");

impl Server for Nats {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::new(PROGRAM, "nats-server")]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let program = PROGRAM.locate()?;
        let version = command::capture(Account::Ourselves.command(&program, site.dir).arg("--version"))?;
        Ok(Running {
            name: self.name(),
            version: parse_version(&version),
            nodes: Vec::new(),
            env: vec![("SENDOFF_TEST_NATS", program.display().to_string())],
        })
    }
}

/// `nats-server: v2.9.10`
fn parse_version(output: &str) -> String {
    output.trim().rsplit(' ').next().unwrap_or_default().trim_start_matches('v').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_last_word() {
        assert_eq!(parse_version("nats-server: v2.9.10\n"), "2.9.10");
        assert_eq!(parse_version(""), "");
    }
}
