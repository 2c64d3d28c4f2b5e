//! A cluster of its own: the one that the other cases share neither encrypts nor asks for a password.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sendoff::{Sink, SinkError};

use super::servers::{Process, inbox, is_root, local, run};
use super::{Access, FIRST, SECOND, Secured, Setting};
use crate::broker;

/// Who the server runs as, if the tests are root's: it would not start as root.
const ACCOUNT: &str = "postgres";

pub(super) fn is_missing() -> bool {
    broker::is_missing("postgres15", &["SENDOFF_TEST_POSTGRES15"]) || programs().is_none()
}

/// Where the server's programs are.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let found = versions.flatten().map(|version| version.path().join("bin"));
    found.filter(|programs| programs.join("postgres").exists()).max()
}

/// A program of the server, as the account that it may run as.
fn command(name: &str) -> Command {
    let program = programs().expect("PostgreSQL is installed").join(name);
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]).arg(program);
    command
}

/// A file that the server may read, and nobody else.
fn write(path: &Path, text: &[u8]) {
    std::fs::write(path, text).unwrap();
    run(Command::new("chmod").arg("600").arg(path));
    own(path);
}

fn own(path: &Path) {
    if is_root() {
        run(Command::new("chown").args(["-R", ACCOUNT]).arg(path));
    }
}

pub(super) struct Postgres(Process);

impl Postgres {
    fn execute(&self, sql: &str) {
        let directory = self.0.directory.path();
        run(Command::new("psql")
            .args(["-U", "relay", "-p", &self.0.port.to_string(), "-d", "postgres"])
            .args(["-h", directory.to_str().unwrap(), "-c", sql]));
    }
}

impl Secured for Postgres {
    async fn start(setting: &Setting<'_>) -> Self {
        let read = |path: &Path| std::fs::read(path).unwrap();
        let (certificate, key) = (read(&setting.own.certificate), read(&setting.own.key));
        let authority = read(&setting.authority.file());
        let asked = if setting.is_mutual { "clientcert=verify-ca" } else { "" };
        // From this machine's own files anybody is let in.
        let rules = format!("local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256 {asked}\n");
        let process = Process::start(move |directory, port| {
            let data = directory.join("data");
            own(directory);
            write(&directory.join("password"), FIRST.as_bytes());
            let mut made = command("initdb");
            made.current_dir("/").args([
                "-A",
                "scram-sha-256",
                "-U",
                "relay",
                "--no-sync",
                "-E",
                "UTF8",
                "-D",
            ]);
            run(made.arg(&data).arg("--pwfile").arg(directory.join("password")));
            write(&data.join("pg_hba.conf"), rules.as_bytes());
            for (name, text) in [("server.pem", &certificate), ("server.key", &key), ("ca.pem", &authority)] {
                write(&data.join(name), text);
            }
            let mut server = command("postgres");
            server.current_dir("/").arg("-D").arg(&data).args(["-p", &port.to_string(), "-k"]).arg(directory);
            for option in [
                "listen_addresses=127.0.0.1",
                "fsync=off",
                "ssl=on",
                "ssl_cert_file=server.pem",
                "ssl_key_file=server.key",
                "ssl_ca_file=ca.pem",
            ] {
                server.args(["-c", option]);
            }
            server
        });
        let postgres = Self(process.await);
        let began = std::time::Instant::now();
        // It takes connections before it can answer them.
        while !Command::new("pg_isready")
            .args(["-q", "-p", &postgres.0.port.to_string(), "-h"])
            .arg(postgres.0.directory.path())
            .status()
            .is_ok_and(|status| status.success())
        {
            assert!(began.elapsed() < super::PATIENCE, "it does not answer");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        postgres
    }

    fn address(&self) -> SocketAddr {
        local(self.0.port)
    }

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
        // Who has no file says in the URL that the server has to prove who it is.
        let mode = if access.ca_file.is_none() { "?sslmode=verify-full" } else { "" };
        inbox(&format!("postgres://{}/postgres{mode}", self.address()), access)
    }

    async fn change_password(&self) {
        self.execute(&format!("ALTER USER relay PASSWORD '{SECOND}'"));
        self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr IS NOT NULL");
    }
}
