//! Servers of our own, whose settings are nobody else's. They are started from the same packages as those that the tests share.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::outbox::Outbox;

/// A server, which does not outlive its test.
pub(crate) struct Private {
    pub(crate) outbox: Outbox,
    start: Command,
    server: Child,
    _data: TempDir,
}

impl Private {
    /// Ends the server in good order.
    pub(crate) fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.server.wait().unwrap();
    }

    /// Starts it where it was.
    pub(crate) fn start_again(&mut self) {
        self.server = self.start.spawn().unwrap();
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A PostgreSQL server that waits for the disk and can have logical slots, with an outbox.
pub(crate) fn postgres(variable: &str) -> Option<Private> {
    let bin = Path::new("/usr/lib/postgresql/15/bin");
    if !is_wanted(variable, &bin.join("initdb")) {
        return None;
    }
    let data = directory("postgres");
    let account = Account::of("postgres");
    let mut make = account.command(&bin.join("initdb"), data.path());
    make.args(["-A", "trust", "-U", "sendoff", "--no-sync", "-D"]).arg(data.path().join("data"));
    assert!(make.status().unwrap().success());
    let port = free_port();
    let mut start = account.command(&bin.join("postgres"), data.path());
    start.arg("-D").arg(data.path().join("data")).args(["-p", &port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "wal_level=logical",
        "shared_buffers=16MB",
        "max_prepared_transactions=2",
    ] {
        start.args(["-c", setting]);
    }
    start.arg("-c").arg(format!("unix_socket_directories={}", data.path().display()));
    Some(ready(format!("postgres://sendoff@127.0.0.1:{port}/postgres"), start, data))
}

/// A MariaDB server at READ COMMITTED that waits for the disk and writes a binary log of rows, with an outbox.
pub(crate) fn mariadb(variable: &str) -> Option<Private> {
    let program = Path::new("/usr/sbin/mariadbd");
    if !is_wanted(variable, program) {
        return None;
    }
    let data = directory("mysql");
    let account = Account::of("mysql");
    let place = |name: &str, file: &str| format!("--{name}={}", data.path().join(file).display());
    let first = data.path().join("first.sql");
    let sql = "FLUSH PRIVILEGES; CREATE DATABASE shop; CREATE USER 'sendoff'@'127.0.0.1' IDENTIFIED BY 'pw';\
               GRANT ALL PRIVILEGES ON *.* TO 'sendoff'@'127.0.0.1' WITH GRANT OPTION;\n";
    std::fs::write(&first, sql.replace(';', ";\n")).unwrap();
    let mut make = account.command(Path::new("/usr/bin/mariadb-install-db"), data.path());
    make.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]).args([
        place("datadir", "data"),
        place("tmpdir", ""),
        place("extra-file", "first.sql"),
    ]);
    assert!(make.status().unwrap().success());
    let port = free_port();
    let mut start = account.command(program, data.path());
    start
        .arg("--no-defaults")
        .args([
            place("datadir", "data"),
            place("tmpdir", ""),
            place("socket", "socket"),
            place("pid-file", "pid"),
        ])
        .args([format!("--port={port}"), place("log-bin", "binlog")])
        .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--server-id=1", "--binlog-format=ROW"])
        .args(["--transaction-isolation=READ-COMMITTED", "--innodb-buffer-pool-size=32M"]);
    Some(ready(format!("mysql://sendoff:pw@127.0.0.1:{port}/shop"), start, data))
}

fn is_wanted(variable: &str, program: &Path) -> bool {
    if std::env::var_os(variable).is_none() {
        println!("skipped: {variable} is not set");
        return false;
    }
    assert!(program.exists(), "{} is not there", program.display());
    true
}

/// Waits until it answers, and makes the tables.
fn ready(store: String, mut start: Command, data: TempDir) -> Private {
    let outbox = Outbox { store, names: None, directory: tempfile::tempdir().unwrap() };
    let server = start.spawn().unwrap();
    let private = Private { outbox, start, server, _data: data };
    let began = Instant::now();
    loop {
        let done = private.outbox.run(&["migrate"]);
        if done.code == 0 {
            return private;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", done.errors);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A directory that belongs to an account.
fn directory(account: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    if let Account(Some((uid, gid))) = Account::of(account) {
        std::os::unix::fs::chown(directory.path(), Some(uid), Some(gid)).unwrap();
    }
    directory
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Who a server runs as: neither will run as root.
struct Account(Option<(u32, u32)>);

impl Account {
    fn of(name: &str) -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self(None);
        }
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
        let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let number = |field: &str| field.parse().unwrap();
        let found = fields.into_iter().find(|fields| fields[0] == name);
        Self(found.map(|fields| (number(fields[2]), number(fields[3]))))
    }

    fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(PathBuf::from(program));
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((uid, gid)) = self.0 {
            command.uid(uid).gid(gid);
        }
        command
    }
}
