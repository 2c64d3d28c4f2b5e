//! The demo's worker processes: started, killed, frozen, stopped.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::journal::Tail;
use super::progress::Progress;
use super::worker::LEASE;
use crate::args::DemoArgs;
use crate::site::Site;

/// How far it is when a worker is killed, when another is to be frozen with an event in hand, and when it is frozen without, in percent.
const KILL_AT: u64 = 30;
const FREEZE_AT: u64 = 50;
const FREEZE_ANYHOW_AT: u64 = 80;

/// The frozen one wakes when another has its event in hand, or at last after this time, long after its leases have ended.
const FROZEN: Duration = LEASE.saturating_mul(2);

/// It is frozen anew if nobody took over: with SQLite it may have held the one lock that all others wait for.
const FREEZES_MAX: u32 = 3;

/// About so many events take long to deliver.
const SLOW_EVENTS: u64 = 100;

#[derive(Debug)]
pub(crate) struct Processes {
    journal: PathBuf,
    children: Vec<Child>,
    killed: Option<u32>,
    frozen: Option<Frozen>,
    freezes: u32,
    woken: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Frozen {
    pid: u32,
    since: Instant,
    /// What it was about to deliver.
    in_hand: Option<Uuid>,
}

impl Processes {
    /// Starts them and waits until they work.
    pub(crate) async fn start(args: &DemoArgs, site: &Site, journal: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("this program's path")?;
        let mut children = Vec::new();
        for number in 1..=args.workers {
            let mut child = Command::new(&program)
                .args(["demo-worker", "--store", &site.url, "--names", &site.names])
                .args(["--name", &format!("worker-{number}")])
                .args(["--slow-one-of", &(args.events / SLOW_EVENTS).max(2).to_string(), "--journal"])
                .arg(journal)
                .args(args.without_fence.then_some("--without-fence"))
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
        Ok(Self {
            journal: journal.to_owned(),
            children,
            killed: None,
            frozen: None,
            freezes: 0,
            woken: None,
        })
    }

    pub(crate) fn list(&self) -> String {
        let pids: Vec<String> =
            self.children.iter().filter_map(Child::id).map(|pid| pid.to_string()).collect();
        pids.join(" ")
    }

    /// Makes what is due happen.
    pub(crate) fn trouble(&mut self, tail: &mut Tail, wanted: u64, progress: &Progress) -> Result<()> {
        let is_past = |percent: u64| tail.deliveries.saturating_mul(100) >= wanted.saturating_mul(percent);
        if self.killed.is_none() && is_past(KILL_AT) {
            let pid = pid_of(&self.children[0])?;
            self.children[0].start_kill().context("kill")?;
            progress.say(&format!("worker {pid} is killed (SIGKILL): its lanes go over when its leases end"));
            self.killed = Some(pid);
        }
        if let Some(frozen) = self.frozen {
            self.thaw(frozen, tail, progress)?;
        } else if self.woken.is_none() && is_past(FREEZE_AT) {
            self.freeze(is_past(FREEZE_ANYHOW_AT), tail, progress)?;
        }
        Ok(())
    }

    /// Freezes a worker between sending an event and the answer, the worst of all times.
    fn freeze(&mut self, anyhow: bool, tail: &mut Tail, progress: &Progress) -> Result<()> {
        let pid = pid_of(&self.children[1])?;
        if tail.in_hand_of(pid).is_none() && !anyhow {
            return Ok(());
        }
        signal(pid, Signal::STOP)?;
        until_stopped(pid)?;
        tail.follow(&self.journal)?;
        let in_hand = tail.in_hand_of(pid);
        if in_hand.is_none() && !anyhow {
            // It was faster.
            return signal(pid, Signal::CONT);
        }
        progress.say(&format!("worker {pid} is frozen (SIGSTOP), for longer than its leases last"));
        self.freezes += 1;
        self.frozen = Some(Frozen { pid, since: Instant::now(), in_hand });
        Ok(())
    }

    /// Wakes it when it can do the most harm: while its successor has the same event in hand.
    fn thaw(&mut self, frozen: Frozen, tail: &mut Tail, progress: &Progress) -> Result<()> {
        let Frozen { pid, since, in_hand } = frozen;
        let is_taken_over = in_hand.is_some_and(|id| tail.is_with_another(id, pid) || tail.is_delivered(id));
        if !is_taken_over && since.elapsed() < FROZEN {
            return Ok(());
        }
        signal(pid, Signal::CONT)?;
        self.frozen = None;
        tail.forget(pid);
        if is_taken_over || self.freezes == FREEZES_MAX || in_hand.is_none() {
            progress.say(&format!("worker {pid} goes on, with lanes that are others' by now"));
            self.woken = Some(pid);
        } else {
            progress.say(&format!("worker {pid} goes on, and is frozen once more: nobody could take over"));
        }
        Ok(())
    }

    /// All that was to happen has.
    pub(crate) fn is_quiet(&self) -> bool {
        self.killed.is_some() && self.woken.is_some()
    }

    /// Stops the others; which ones were killed or frozen.
    pub(crate) async fn stop(mut self) -> Result<HashSet<u32>> {
        let frozen = self.frozen.map(|frozen| frozen.pid);
        if let Some(pid) = frozen {
            signal(pid, Signal::CONT)?;
        }
        let troubled = [self.killed, self.woken, frozen];
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

/// Waits until none of its threads runs any more. Where the system does not tell, it has had its time.
fn until_stopped(pid: u32) -> Result<()> {
    let began = Instant::now();
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    while began.elapsed() < Duration::from_secs(1) {
        let Ok(threads) = std::fs::read_dir(&tasks) else {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(());
        };
        let mut stats = Vec::new();
        for thread in threads {
            stats.push(std::fs::read_to_string(thread?.path().join("stat")).unwrap_or_default());
        }
        // "pid (name) state …", and a name may have anything in it.
        let is_stopped = |stat: &String| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'));
        if stats.iter().all(is_stopped) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("worker {pid} did not stop on SIGSTOP")
}

/// A process that has a pid.
fn pid_of(child: &tokio::process::Child) -> Result<u32> {
    match child.id() {
        Some(pid) => Ok(pid),
        None => bail!("a worker process ended by itself"),
    }
}
