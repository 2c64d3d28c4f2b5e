//! A database of its own for every measurement.

use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};

/// A new, empty database, on the server of the URL that was given.
#[derive(Debug)]
pub(crate) struct Fresh {
    server: PgPool,
    name: String,
    pub(crate) url: String,
}

impl Fresh {
    pub(crate) async fn create(server: &str, number: usize) -> Result<Self> {
        let options: PgConnectOptions = server.parse().context("this is no address of PostgreSQL")?;
        let name = format!("peers_{}_{number}", std::process::id());
        let url = options.clone().database(&name).to_url_lossy().to_string();
        let server = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
        let create = format!("CREATE DATABASE \"{name}\" TEMPLATE template0");
        server.execute(AssertSqlSafe(create)).await?;
        Ok(Self { server, name, url })
    }

    /// As after a while at rest: statistics are there, and what was written is on the disk and in no one's way.
    pub(crate) async fn settle_down(&self) -> Result<()> {
        let mut connection = self.url.parse::<PgConnectOptions>()?.connect().await?;
        connection.execute("VACUUM (ANALYZE)").await?;
        connection.execute("CHECKPOINT").await?;
        Ok(())
    }

    pub(crate) async fn drop(self) -> Result<()> {
        let drop = format!("DROP DATABASE \"{}\" WITH (FORCE)", self.name);
        self.server.execute(AssertSqlSafe(drop)).await?;
        Ok(())
    }
}
