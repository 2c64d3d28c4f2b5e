//! A server process that we started, and that ends with us.
//!
//! It is only ever signalled through the handle of the child we spawned, never by name, and only as long as
//! it has not been waited for: until then the kernel cannot give its process id to anybody else.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::command::{indented_tail, show};

/// How long a server may take over its own shutdown before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(15);
/// The same for one that is still starting: it has nothing to lose, and a cluster node that is waiting for
/// its data does not listen to a polite signal.
const STARTING_GRACE: Duration = Duration::from_secs(2);
/// How many early error lines are shown beside the end of a log.
const ERROR_LINES_MAX: usize = 5;
const POLL: Duration = Duration::from_millis(20);

/// A running server; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stop_signal: Signal,
    grace: Duration,
    log: PathBuf,
}

impl Process {
    /// Starts a server with its output in `log`. `stop_signal` is what this server takes as "stop now, in an
    /// orderly way, whoever is still connected".
    pub(crate) fn spawn(command: &mut Command, log: PathBuf, stop_signal: Signal) -> Result<Process> {
        let out = File::create(&log).with_context(|| format!("cannot create the log {}", log.display()))?;
        let err = out.try_clone().context("cannot share the log between stdout and stderr")?;
        // A group of its own keeps the terminal's Ctrl-C away: servers are stopped by us, in order.
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start `{}`", show(command)))?;
        Ok(Process { child, stop_signal, grace: STARTING_GRACE, log })
    }

    /// It is up and in use: from now on it is given the time to end in an orderly way.
    pub(crate) fn mark_up(&mut self) {
        self.grace = STOP_GRACE;
    }

    /// The process id, for people.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub(crate) fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("cannot ask for the state of a server process")
    }

    /// What the log says.
    pub(crate) fn log_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The first errors in the log and its end, set off for an error message.
    pub(crate) fn log_tail(&self) -> String {
        let text = self.log_text();
        let tail = indented_tail(&text);
        let is_error = |line: &str| line.contains("ERROR") || line.contains("FATAL");
        let early: String = text
            .lines()
            .filter(|line| is_error(line) && !tail.contains(line))
            .take(ERROR_LINES_MAX)
            .map(|line| format!("    {line}\n"))
            .collect();
        let log = self.log.display();
        match early.is_empty() {
            true => format!("last lines of {log}:\n{tail}"),
            false => format!("first errors in {log}:\n{early}  last lines:\n{tail}"),
        }
    }

    /// Asks it to stop, waits, and kills its process group when it takes too long.
    pub(crate) fn stop(&mut self) {
        let Ok(pid) = i32::try_from(self.child.id()).map(Pid::from_raw) else { return };
        // Errors below mean "already gone", which is what we want.
        if !matches!(self.exited(), Ok(None)) {
            return;
        }
        let _ = kill(pid, self.stop_signal);
        let asked_at = Instant::now();
        while asked_at.elapsed() < self.grace {
            if !matches!(self.exited(), Ok(None)) {
                return;
            }
            thread::sleep(POLL);
        }
        if self.grace == STOP_GRACE {
            eprintln!("xtask: process {pid} did not stop within {} s: killing it", STOP_GRACE.as_secs());
        }
        let _ = killpg(pid, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}
