//! PostgreSQL from Debian: version 15 on Debian 12, whence the name.

use anyhow::{Context, Result};

use super::postgres_cluster::{self, CLIENT_REQUIREMENTS};
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `postgres15`, at `SENDOFF_TEST_POSTGRES15`.
pub(crate) struct Postgres15;

const INITDB: Need = Need::File("/usr/lib/postgresql/*/bin/initdb");
const POSTGRES: Need = Need::File("/usr/lib/postgresql/*/bin/postgres");

impl Server for Postgres15 {
    fn name(&self) -> &'static str {
        "postgres15"
    }

    fn requirements(&self) -> Vec<Requirement> {
        // `postgresql` is the release's own version: `postgresql-15` on Debian 12.
        let server = [Requirement::new(INITDB, "postgresql"), Requirement::new(POSTGRES, "postgresql")];
        server.into_iter().chain(CLIENT_REQUIREMENTS).collect()
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let postgres = POSTGRES.locate()?;
        let bin = postgres.parent().context("the server program has no directory")?;
        postgres_cluster::start(self.name(), "SENDOFF_TEST_POSTGRES15", bin, site)
    }
}
