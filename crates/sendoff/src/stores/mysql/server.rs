//! What answers at the other end, and what is supported there.

use sqlx::{MySqlConnection, Row as _};

use super::errors;
use crate::error::StoreError;

/// How the server stands among others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topology {
    /// A server that decides by itself.
    Single,
    /// A node of a Galera cluster, where row locks hold on one node only and a conflict shows at COMMIT.
    Galera {
        /// How many nodes the cluster had when we connected.
        nodes: u32,
    },
}

impl Topology {
    /// What an operator must know, if anything.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Single => None,
            Self::Galera { nodes } => Some(format!(
                "this is a Galera cluster of {nodes} nodes; supported is one writer node: let every sendoff \
                 process connect to the same node. Claims on several nodes lose their conflicts at COMMIT, \
                 which costs throughput, and cluster faults can lose committed rows"
            )),
        }
    }
}

/// The server's name, version and place.
#[derive(Debug, Clone)]
pub struct Server {
    version: String,
    topology: Topology,
}

impl Server {
    /// As it calls itself: `10.11.14-MariaDB-0+deb12u2`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it decides by itself.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(super) async fn read(connection: &mut MySqlConnection) -> Result<Self, StoreError> {
        let convert = |error| errors::convert("connect", "database", error);
        let row = sqlx::query(
            "SELECT CONVERT(VERSION() USING utf8mb4) AS version, \
             TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()) AS ahead_of_utc",
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(convert)?;
        let version: String = row.try_get("version").map_err(convert)?;
        check_version(&version)?;
        // The clock may tick between the two calls.
        let ahead: i64 = row.try_get("ahead_of_utc").map_err(convert)?;
        if ahead.abs() > 1 {
            return Err(StoreError::schema(
                "connect",
                "database",
                format!(
                    "the session's clock is {ahead} s ahead of UTC; set time_zone='+00:00' for this pool"
                ),
            ));
        }
        // MariaDB calls it by the first name, MySQL and newer MariaDB by the second.
        let levels = sqlx::query(
            "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')",
        )
        .fetch_all(&mut *connection)
        .await
        .map_err(convert)?;
        for row in levels {
            if row.try_get::<String, _>(1).map_err(convert)? == "READ-UNCOMMITTED" {
                let detail = "the session is READ UNCOMMITTED, and would deliver what is rolled back later; \
                              set READ COMMITTED for this pool";
                return Err(StoreError::schema("connect", "database", detail));
            }
        }
        let status =
            sqlx::query("SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_size')")
                .fetch_all(&mut *connection)
                .await
                .map_err(convert)?;
        let mut topology = Topology::Single;
        let mut ready = false;
        let mut nodes = 0;
        for row in status {
            let name: String = row.try_get(0).map_err(convert)?;
            let value: String = row.try_get(1).map_err(convert)?;
            match name.as_str() {
                "wsrep_ready" => ready = value == "ON",
                _ => nodes = value.parse().unwrap_or(0),
            }
        }
        if ready {
            topology = Topology::Galera { nodes };
        }
        Ok(Self { version, topology })
    }
}

/// SKIP LOCKED came with MariaDB 10.6 and MySQL 8.0.1; before, it is a syntax error.
fn check_version(version: &str) -> Result<(), StoreError> {
    // Some proxies put 5.5.5- before MariaDB's own version.
    let own = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut parts = own.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let found = (next(), next(), next());
    let (name, least) = if own.contains("MariaDB") { ("MariaDB", (10, 6, 0)) } else { ("MySQL", (8, 0, 1)) };
    if found < least {
        return Err(StoreError::schema(
            "connect",
            "database",
            format!(
                "{name} {own} cannot skip locked rows; {}.{}.{} is the oldest that can",
                least.0, least.1, least.2
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_skip_locked_are_refused_by_name() {
        for version in
            ["10.11.14-MariaDB-0+deb12u2", "5.5.5-10.6.1-MariaDB", "11.8.2-MariaDB", "8.0.36", "9.1.0"]
        {
            assert!(check_version(version).is_ok(), "{version}");
        }
        for version in ["10.5.23-MariaDB", "5.7.44-log", "8.0.0"] {
            let error = check_version(version).unwrap_err().to_string();
            assert!(error.contains("cannot skip locked rows"), "{error}");
        }
    }
}
