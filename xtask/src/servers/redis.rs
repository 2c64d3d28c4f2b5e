//! Redis as programs: a test of a sink starts a server of its own, kills it and starts it again.

use anyhow::Result;

use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `redis`, at `SENDOFF_TEST_REDIS`, with its own client at `SENDOFF_TEST_REDIS_CLI`.
pub(crate) struct Redis;

const PROGRAM: Need = Need::Program("redis-server");
const CLIENT: Need = Need::Program("redis-cli");

impl Server for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::new(PROGRAM, "redis-server"), Requirement::new(CLIENT, "redis-tools")]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let (program, client) = (PROGRAM.locate()?, CLIENT.locate()?);
        let version = command::capture(Account::Ourselves.command(&program, site.dir).arg("--version"))?;
        Ok(Running {
            name: self.name(),
            version: parse_version(&version),
            nodes: Vec::new(),
            env: vec![
                ("SENDOFF_TEST_REDIS", program.display().to_string()),
                ("SENDOFF_TEST_REDIS_CLI", client.display().to_string()),
            ],
        })
    }
}

/// `Redis server v=7.0.15 sha=00000000:0 …`
fn parse_version(output: &str) -> String {
    output.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_behind_the_v() {
        assert_eq!(parse_version("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1"), "7.0.15");
        assert_eq!(parse_version(""), "");
    }
}
