//! A server of its own: the one that the other cases share does not encrypt.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sendoff::{Sink, SinkError};

use super::servers::{Process, inbox, is_root, local, run};
use super::{Access, FIRST, PATIENCE, SECOND, Secured, Setting};
use crate::broker;

pub(super) fn is_missing() -> bool {
    broker::is_missing("mariadb", &["SENDOFF_TEST_MARIADB"])
}

/// Of the server's programs, with where it keeps things.
fn command(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(name);
    command.arg("--no-defaults");
    for (option, path) in [("datadir", "data"), ("socket", "socket"), ("pid-file", "pid"), ("tmpdir", "")] {
        command.arg(format!("--{option}={}", directory.join(path).display()));
    }
    // It runs as root only if it is told to.
    if is_root() {
        command.arg("--user=root");
    }
    command
}

/// An empty database; the user is made when it is.
fn install(directory: &Path, is_mutual: bool) {
    let asked = if is_mutual { "X509" } else { "SSL" };
    let sql = format!(
        "FLUSH PRIVILEGES;\nCREATE DATABASE shop;\n\
         CREATE USER 'relay'@'127.0.0.1' IDENTIFIED BY '{FIRST}' REQUIRE {asked};\n\
         GRANT ALL PRIVILEGES ON shop.* TO 'relay'@'127.0.0.1';\n"
    );
    let first = directory.join("first.sql");
    std::fs::write(&first, sql).unwrap();
    let mut install = command("mariadb-install-db", directory);
    install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    run(install.arg(format!("--extra-file={}", first.display())));
}

pub(super) struct MariaDb(Process);

impl MariaDb {
    /// Asked by who may do anything, on this machine alone.
    fn client(&self, sql: &str) -> Command {
        let mut client = Command::new("mariadb");
        let socket = self.0.directory.path().join("socket");
        client.args(["--no-defaults", "--user=root", "--protocol=socket", "--execute", sql, "--socket"]);
        client.arg(socket);
        client
    }
}

impl Secured for MariaDb {
    async fn start(setting: &Setting<'_>) -> Self {
        let (own, authority, is_mutual) = (setting.own.clone(), setting.authority.file(), setting.is_mutual);
        let process = Process::start(move |directory, port| {
            install(directory, is_mutual);
            let mut server = command("mariadbd", directory);
            server
                .args([&format!("--port={port}"), "--bind-address=127.0.0.1", "--skip-name-resolve"])
                .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]);
            for (option, path) in
                [("ssl-cert", &own.certificate), ("ssl-key", &own.key), ("ssl-ca", &authority)]
            {
                server.arg(format!("--{option}={}", path.display()));
            }
            server
        });
        let mariadb = Self(process.await);
        let began = Instant::now();
        // It takes connections before it can answer them.
        while !mariadb.client("SELECT 1").output().is_ok_and(|output| output.status.success()) {
            assert!(began.elapsed() < PATIENCE, "it does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        mariadb
    }

    fn address(&self) -> SocketAddr {
        local(self.0.port)
    }

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
        // Who has no file says in the URL that the server has to prove who it is.
        let mode = if access.ca_file.is_none() { "?ssl-mode=VERIFY_IDENTITY" } else { "" };
        inbox(&format!("mysql://{}/shop{mode}", self.address()), access)
    }

    async fn change_password(&self) {
        run(&mut self.client(&format!("SET PASSWORD FOR 'relay'@'127.0.0.1' = PASSWORD('{SECOND}')")));
        run(&mut self.client("KILL USER relay"));
    }
}
