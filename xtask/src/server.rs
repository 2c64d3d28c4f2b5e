//! The contract of a test server. The implementations are in `servers/`, one file each.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::interrupt;
use crate::process::Process;
use crate::requirement::Requirement;

/// How servers report a port that somebody else has.
const PORT_TAKEN: [&str; 3] = [
    "Address already in use",
    // Galera's replication thread, when it gives up on its port faster than its starter looks at it.
    "Failed to read thread schedparams",
    // The state transfer's rsync, which keeps the reason to itself.
    "rsync or stunnel daemon",
];
const POLL: Duration = Duration::from_millis(100);

/// Something the tests need: a database, a pooler, or a library without a process of its own.
pub(crate) trait Server: Sync {
    /// Its name for `--only`, in `SENDOFF_TEST_REQUIRE`, and as the name of its directory.
    fn name(&self) -> &'static str;

    /// What must be installed.
    fn requirements(&self) -> Vec<Requirement>;

    /// The server it stands in front of, which must be running first.
    fn upstream(&self) -> Option<&'static str> {
        None
    }

    /// Starts it in `site`, and returns once it has answered a real connection.
    fn start(&self, site: &Site<'_>) -> Result<Running>;
}

/// A server that answers. Dropping it stops its processes.
#[derive(Debug)]
pub(crate) struct Running {
    /// The server's name.
    pub(crate) name: &'static str,
    /// What it says its version is.
    pub(crate) version: String,
    /// Its processes, in the order they were started.
    pub(crate) nodes: Vec<Node>,
    /// How the tests find it: variable and value.
    pub(crate) env: Vec<(&'static str, String)>,
}

/// One process of a server.
#[derive(Debug)]
pub(crate) struct Node {
    /// The process itself.
    pub(crate) process: Process,
    /// The loopback port clients connect to.
    pub(crate) port: u16,
    /// Where its data, socket and log are.
    pub(crate) dir: PathBuf,
}

impl Running {
    /// Stops the processes, the last started first, so that the members of a cluster leave in order.
    pub(crate) fn stop(&mut self) {
        while let Some(mut node) = self.nodes.pop() {
            node.process.stop();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a commit on a server waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Nothing survives the run, so nothing needs to reach the disk: for tests.
    Scratch,
    /// The disk, as in production: for benchmarks, where that wait is what is measured.
    Disk,
}

/// The place where one server is started.
pub(crate) struct Site<'a> {
    /// What its commits wait for.
    pub(crate) durability: Durability,
    /// An empty directory for this server alone.
    pub(crate) dir: &'a Path,
    /// The servers that were started before.
    pub(crate) earlier: &'a [Running],
    /// Raised when another server failed to start, so that this one need not be waited for.
    pub(crate) cancelled: &'a AtomicBool,
}

impl Site<'_> {
    /// The port of a server that was started before.
    pub(crate) fn port_of(&self, name: &str) -> Result<u16> {
        self.earlier
            .iter()
            .find(|running| running.name == name)
            .and_then(|running| running.nodes.first())
            .map(|node| node.port)
            .with_context(|| format!("{name} must be started first"))
    }

    /// Repeats `probe` until it succeeds. Gives up, with the end of the server's log, when the process ends
    /// or the time is over.
    pub(crate) fn await_ready<T>(
        &self,
        process: &mut Process,
        limit: Duration,
        mut probe: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let started_at = Instant::now();
        loop {
            interrupt::check()?;
            if self.cancelled.load(Ordering::SeqCst) {
                return Err(Cancelled.into());
            }
            if let Some(status) = process.exited()? {
                let ended = anyhow!("it ended ({status}) before it was ready; {}", process.log_tail());
                let log = process.log_text();
                let port_taken = PORT_TAKEN.iter().any(|line| log.contains(line));
                return Err(if port_taken { ended.context(PortTaken) } else { ended });
            }
            match probe() {
                Ok(answer) => return Ok(answer),
                Err(error) if started_at.elapsed() > limit => {
                    let limit = limit.as_secs();
                    let tail = process.log_tail();
                    return Err(anyhow!("it was not ready within {limit} s: {error:#}\n{tail}"));
                }
                Err(_) => thread::sleep(POLL),
            }
        }
    }
}

/// A port was taken between our asking for a free one and the server's binding it: worth another attempt.
#[derive(Debug)]
pub(crate) struct PortTaken;

impl fmt::Display for PortTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its port was taken by another program")
    }
}

impl std::error::Error for PortTaken {}

/// Not this server's fault: another one failed.
#[derive(Debug)]
pub(crate) struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("given up because another server failed to start")
    }
}

impl std::error::Error for Cancelled {}
