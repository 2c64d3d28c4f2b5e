//! RabbitMQ's processes. A node takes some ten seconds to start, so one that a case has left whole is used by the next.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::broker::{Broker, free_port, program};

const SERVER: &str = "SENDOFF_TEST_RABBITMQ";

/// What a node is started with: a limit that a test can reach.
const CONFIG: &str = "max_message_size = 1000000\n";

/// At the same time, to save memory.
static TURNS: Semaphore = Semaphore::const_new(2);

/// Nodes that nobody uses now.
static IDLE: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// A node, for one case alone.
pub(crate) struct Node {
    /// None: it is idle again.
    running: Option<Running>,
    state: Mutex<State>,
    /// It is configured for one case, and of no use to another.
    is_alone: bool,
    _turn: SemaphorePermit<'static>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    Held,
    Killed,
}

impl Node {
    pub(crate) async fn take() -> Self {
        let turn = TURNS.acquire().await.unwrap();
        let idle = IDLE.lock().unwrap().pop();
        let running = match idle {
            Some(running) => running,
            None => Running::start("").await,
        };
        Self { running: Some(running), state: Mutex::new(State::Whole), is_alone: false, _turn: turn }
    }

    /// One that encrypts, with this in its configuration.
    pub(crate) async fn alone(tls: &str) -> Self {
        let turn = TURNS.acquire().await.unwrap();
        let running = Running::start(tls).await;
        Self { running: Some(running), state: Mutex::new(State::Whole), is_alone: true, _turn: turn }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it is idle when this is gone")
    }

    pub(crate) fn port(&self) -> u16 {
        self.running().port
    }

    /// Where it encrypts, if it does.
    pub(crate) fn secure_port(&self) -> u16 {
        self.running().place.secure
    }

    pub(crate) fn kill(&self) {
        *self.state.lock().unwrap() = State::Killed;
        self.running().kill();
    }

    pub(crate) async fn restart(&self) {
        assert!(self.running().begin().await, "it ended when it was started again");
        *self.state.lock().unwrap() = State::Whole;
    }

    pub(crate) fn hold(&self, is_held: bool) {
        self.running().server.hold(is_held);
        *self.state.lock().unwrap() = if is_held { State::Held } else { State::Whole };
    }

    /// The server's own tool.
    pub(crate) fn control(&self, arguments: &[&str]) {
        let output = self.running().place.command("rabbitmqctl").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Not one that a case has left in some other way, or has failed with.
        let is_whole = *self.state.get_mut().unwrap() == State::Whole;
        if is_whole && !self.is_alone && !std::thread::panicking() {
            IDLE.lock().unwrap().extend(self.running.take());
        }
    }
}

/// The processes of a node. They end with this, or with the tests if those end before.
struct Running {
    server: Broker,
    names: Broker,
    guard: Mutex<Option<Child>>,
    port: u16,
    place: Arc<Place>,
}

impl Running {
    async fn start(tls: &str) -> Self {
        loop {
            let place = Arc::new(Place::new(tls));
            let at = Arc::clone(&place);
            // Not left to the server, which would start one that stays.
            let names = Broker::new(move || {
                let mut command = Command::new("epmd");
                command.args(["-address", "127.0.0.1", "-port", &at.names.to_string()]);
                command
            });
            names.start();
            let at = Arc::clone(&place);
            let server = Broker::new(move || at.command("rabbitmq-server"));
            let running = Self { server, names, guard: Mutex::default(), port: place.port, place };
            if running.begin().await {
                return running;
            }
        }
    }

    /// False: it has ended, since somebody else was faster to take one of its ports.
    async fn begin(&self) -> bool {
        self.server.start();
        // Ends what is left when the tests have ended, however they have: the pipe to it ends with them.
        let guard = Command::new("sh")
            .args(["-c", "trap '' INT TERM; read end; kill -9 $1 $2; sleep 1; rm -rf \"$3\"", "guard"])
            .args([self.server.id().to_string(), self.names.id().to_string()])
            .arg(self.place.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        *self.guard.lock().unwrap() = Some(guard.unwrap());
        self.server.until(|| answers(self.port)).await
    }

    fn kill(&self) {
        if let Some(mut guard) = self.guard.lock().unwrap().take() {
            let _ = guard.kill();
            guard.wait().unwrap();
        }
        self.server.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where a node listens, and where its files are.
struct Place {
    port: u16,
    secure: u16,
    /// Of the server that Erlang's nodes are found by.
    names: u16,
    distribution: u16,
    directory: TempDir,
}

impl Place {
    fn new(tls: &str) -> Self {
        let (directory, secure) = (tempfile::tempdir().unwrap(), free_port());
        let listener = format!("listeners.ssl.1 = 127.0.0.1:{secure}\n");
        let config = if tls.is_empty() { CONFIG.to_owned() } else { format!("{CONFIG}{listener}{tls}") };
        std::fs::write(directory.path().join("rabbitmq.conf"), config).unwrap();
        std::fs::write(directory.path().join("plugins"), "[].").unwrap();
        Self { port: free_port(), secure, names: free_port(), distribution: free_port(), directory }
    }

    fn command(&self, name: &str) -> Command {
        let path = self.directory.path();
        let mut command = Command::new(script(name));
        command
            .current_dir(path)
            .env("HOME", path)
            .env("RABBITMQ_NODENAME", "sendoff@localhost")
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", self.names.to_string())
            // The virtual machine itself is the process that is started here, not a child of a script that is.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+sbwt none +sbwtdcpu none +sbwtdio none");
        for (name, file) in [
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_PID_FILE", "pid"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
            ("RABBITMQ_CONF_ENV_FILE", "environment"),
        ] {
            command.env(name, path.join(file));
        }
        command
    }
}

/// A script of the server. What is found by its name may be one that only changes the user and calls it.
fn script(name: &str) -> PathBuf {
    let path = Path::new(&program(SERVER)).canonicalize().expect("RabbitMQ is installed");
    path.with_file_name(name)
}

/// It speaks the protocol: it says so to who does not.
fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut answer = [0; 4];
    stream.write_all(b"sendoff?").is_ok() && stream.read_exact(&mut answer).is_ok() && answer == *b"AMQP"
}
