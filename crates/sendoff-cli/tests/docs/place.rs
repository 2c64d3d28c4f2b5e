//! Where blocks are run: a directory of the document's own, with an outbox in it or on a server of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::private::{self, Private};
use crate::program::program;
use crate::stand_in;

/// Which database an outbox is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Sqlite,
    Postgres,
    Mariadb,
}

impl Server {
    pub(crate) const ALL: [Self; 3] = [Self::Sqlite, Self::Postgres, Self::Mariadb];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        }
    }

    fn variable(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some("SENDOFF_TEST_POSTGRES15"),
            Self::Mariadb => Some("SENDOFF_TEST_MARIADB"),
        }
    }

    /// Neither there nor required.
    pub(crate) fn is_missing(self) -> bool {
        let is_set = |variable| std::env::var_os(variable).is_some();
        self.variable().is_some_and(|variable| !is_set(variable) && !is_required(self.name()))
    }
}

/// Without it the run fails, instead of passing over it. `postgres` is one of its versions.
pub(crate) fn is_required(name: &str) -> bool {
    let required = std::env::var("SENDOFF_TEST_REQUIRE").unwrap_or_default();
    required.split(',').any(|one| one == "all" || one.starts_with(name))
}

/// A directory, and an outbox.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    /// What `SENDOFF_STORE` and `DATABASE_URL` say.
    pub(crate) store: String,
    _server: Option<Private>,
}

impl Place {
    /// Without tables on SQLite: documents make them. Servers have theirs.
    pub(crate) fn new(server: Server) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let started = match server {
            Server::Sqlite => None,
            Server::Postgres => private::postgres(server.variable().unwrap()),
            Server::Mariadb => private::mariadb(server.variable().unwrap()),
        };
        assert!(
            server == Server::Sqlite || started.is_some(),
            "{} is required, and not there",
            server.name()
        );
        let mut store =
            started.as_ref().map_or("sqlite:shop.db".to_owned(), |private| private.outbox.store.clone());
        if server == Server::Postgres {
            // As documents call it.
            started.as_ref().unwrap().outbox.sql("CREATE DATABASE shop");
            store = store.replace("/postgres", "/shop");
            assert!(program().args(["migrate", "--store", &store]).output().unwrap().status.success());
        }
        stand_in::install(directory.path());
        Self { directory, store, _server: started }
    }

    /// The server's; none on SQLite.
    fn port(&self) -> &str {
        let server = self.store.rsplit('@').next().unwrap_or_default();
        server.split([':', '/']).nth(1).unwrap_or_default()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A program that finds `sendoff`, its outbox, and nothing of this machine's own settings.
    pub(crate) fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env("PATH", format!("{}:{path}", self.file("bin").display()))
            .env("SENDOFF_STORE", &self.store)
            .env("SENDOFF_OPERATOR", "reader")
            .env("DATABASE_URL", &self.store)
            .env("DATABASE_FILE", self.file("shop.db"))
            .env("PORT", self.port())
            .env_remove("SENDOFF_NAMES")
            .env_remove("SENDOFF_CONFIG")
            .stdin(Stdio::null());
        command
    }
}
