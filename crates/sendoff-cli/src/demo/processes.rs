//! The demo's worker processes: started, killed, frozen, stopped.

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::progress::Progress;
use super::worker::LEASE;
use crate::site::Site;

/// How far it is when a worker is killed, and when another is frozen, in percent.
const KILL_AT: u64 = 30;
const FREEZE_AT: u64 = 55;

/// The frozen one wakes long after its leases have ended.
const FROZEN: Duration = LEASE.saturating_mul(2);

#[derive(Debug)]
pub(crate) struct Processes {
    children: Vec<Child>,
    killed: Option<u32>,
    frozen: Option<(u32, Instant)>,
    woken: Option<u32>,
}

impl Processes {
    /// Starts them and waits until they work.
    pub(crate) async fn start(site: &Site, journal: &Path, count: u16) -> Result<Self> {
        let program = std::env::current_exe().context("this program's path")?;
        let mut children = Vec::new();
        for number in 1..=count {
            let mut child = Command::new(&program)
                .args(["demo-worker", "--store", &site.url, "--names", &site.names])
                .args(["--name", &format!("worker-{number}"), "--journal"])
                .arg(journal)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .context("a worker process")?;
            let out = child.stdout.take().context("a worker's output")?;
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line).await?;
            if line.trim() != "ready" {
                bail!("a worker process did not start");
            }
            children.push(child);
        }
        Ok(Self { children, killed: None, frozen: None, woken: None })
    }

    pub(crate) fn list(&self) -> String {
        let pids: Vec<String> =
            self.children.iter().filter_map(Child::id).map(|pid| pid.to_string()).collect();
        pids.join(" ")
    }

    /// Makes what is due happen.
    pub(crate) fn trouble(&mut self, delivered: u64, wanted: u64, progress: &Progress) -> Result<()> {
        if self.killed.is_none() && is_past(delivered, wanted, KILL_AT) {
            let pid = pid_of(&self.children[0])?;
            self.children[0].start_kill().context("kill")?;
            progress.say(&format!("worker {pid} is killed (SIGKILL): its lanes go over when its leases end"));
            self.killed = Some(pid);
        }
        if self.frozen.is_none() && self.woken.is_none() && is_past(delivered, wanted, FREEZE_AT) {
            let pid = pid_of(&self.children[1])?;
            signal(pid, Signal::STOP)?;
            progress.say(&format!("worker {pid} is frozen (SIGSTOP), for longer than its leases last"));
            self.frozen = Some((pid, Instant::now()));
        }
        if let Some((pid, since)) = self.frozen
            && since.elapsed() >= FROZEN
        {
            signal(pid, Signal::CONT)?;
            progress.say(&format!("worker {pid} goes on, with lanes that are others' by now"));
            self.woken = Some(pid);
            self.frozen = None;
        }
        Ok(())
    }

    /// All that was to happen has.
    pub(crate) fn is_quiet(&self) -> bool {
        self.killed.is_some() && self.woken.is_some()
    }

    /// Stops the others; which ones were killed or frozen.
    pub(crate) async fn stop(mut self) -> Result<HashSet<u32>> {
        if let Some((pid, _)) = self.frozen {
            signal(pid, Signal::CONT)?;
        }
        let troubled = [self.killed, self.woken, self.frozen.map(|(pid, _)| pid)];
        for child in &mut self.children {
            drop(child.stdin.take());
        }
        for child in &mut self.children {
            let pid = child.id();
            let status = child.wait().await?;
            if !status.success() && pid != self.killed {
                bail!("a worker process failed: {status}");
            }
        }
        Ok(troubled.into_iter().flatten().collect())
    }
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a process id")?;
    kill_process(pid, signal).with_context(|| format!("signal {signal:?}"))
}

/// The share of the events after which something happens.
fn is_past(delivered: u64, wanted: u64, percent: u64) -> bool {
    delivered.saturating_mul(100) >= wanted.saturating_mul(percent)
}

/// A process that has a pid.
fn pid_of(child: &tokio::process::Child) -> Result<u32> {
    match child.id() {
        Some(pid) => Ok(pid),
        None => bail!("a worker process ended by itself"),
    }
}
