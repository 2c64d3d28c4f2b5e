//! The newcomer's database, and the service that writes to it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sqlx::Connection as _;

use crate::nats::Message;
use crate::program::SECRET;

/// A database of its own on a server, which goes with it; and a role with a password.
pub(crate) struct Database {
    pub(crate) url: String,
    server: String,
    name: String,
}

impl Database {
    pub(crate) fn new(server: &str) -> Self {
        let name = format!("newcomer_{:x}", fastrand::u64(..));
        let (_, place) = server.rsplit_once('@').unwrap();
        let (host, _) = place.split_once('/').unwrap();
        let url = format!("postgres://{name}:{SECRET}@{host}/{name}");
        let database = Self { url, server: server.to_owned(), name };
        let name = &database.name;
        database.execute(&[
            format!("CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'"),
            format!("CREATE DATABASE {name} OWNER {name}"),
        ]);
        database
    }

    /// One by one: a database is not made in a transaction.
    fn execute(&self, statements: &[String]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = sqlx::PgConnection::connect(&self.server).await.unwrap();
            for statement in statements {
                let sql = sqlx::AssertSqlSafe(statement.as_str());
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            }
            connection.close().await.unwrap();
        });
    }

    /// Lets the service take these orders; the events that it has committed.
    pub(crate) fn serve(&self, python: &str, script: &Path, first: u32, last: u32) -> Vec<Message> {
        let mut command = Command::new(python);
        command.arg(script).args([first.to_string(), last.to_string()]).env("DATABASE_URL", &self.url);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        let event = |line: &str| {
            let written: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| written[name].as_str().unwrap().to_owned();
            Message {
                id: text("id"),
                key: text("key"),
                subject: "orders.placed".to_owned(),
                payload: written["payload"].clone(),
            }
        };
        lines.lines().map(event).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let name = &self.name;
        self.execute(&[format!("DROP DATABASE {name} WITH (FORCE)"), format!("DROP ROLE {name}")]);
    }
}
