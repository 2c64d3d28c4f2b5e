//! Running a program to its end, with an error worth reading and a way to be interrupted.
//!
//! Every child is the leader of its own process group. A Ctrl-C in the terminal therefore reaches only us,
//! and we pass it on to the whole group: `cargo test` does not forward signals, and without this its test
//! binaries would live on and keep using servers that are being stopped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::interrupt;

/// How often a wait looks for a signal.
const POLL: Duration = Duration::from_millis(20);
/// How long an interrupted program may take to end before it is killed.
const INTERRUPT_GRACE: Duration = Duration::from_secs(10);
/// How much of a failed program's output is shown.
const OUTPUT_LINES_MAX: usize = 30;

/// Runs a program whose output the reader should see as it comes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let child = spawn(command, Stdio::null(), Stdio::inherit(), Stdio::inherit())?;
    let status = thread::scope(|scope| {
        let pid = child.id();
        wait(pid, scope.spawn(move || child.wait_with_output()))
    })
    .with_context(|| format!("`{shown}` did not finish"))?
    .status;
    succeeded(&shown, status)
}

/// Runs a program for its standard output; what it printed is shown only when it fails.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    capture_with_input(command, Stdio::null())
}

/// The same, for a program that reads its standard input.
pub(crate) fn capture_with_input(command: &mut Command, input: impl Into<Stdio>) -> Result<String> {
    let shown = show(command);
    let child = spawn(command, input.into(), Stdio::piped(), Stdio::piped())?;
    let output: Output = thread::scope(|scope| {
        let pid = child.id();
        wait(pid, scope.spawn(move || child.wait_with_output()))
    })
    .with_context(|| format!("`{shown}` did not finish"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    succeeded(&shown, output.status).map_err(|error| {
        let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
        anyhow!("{error}; it said:\n{}", indented_tail(&said))
    })?;
    Ok(stdout)
}

/// Runs a program and hands over each line of its standard output, line end included, as it comes.
pub(crate) fn stream(command: &mut Command, mut on_line: impl FnMut(&[u8]) + Send) -> Result<()> {
    let shown = show(command);
    let mut child = spawn(command, Stdio::null(), Stdio::piped(), Stdio::inherit())?;
    let stdout = child.stdout.take().context("the child has no standard output")?;
    let status = thread::scope(|scope| {
        let pid = child.id();
        let reader = scope.spawn(move || {
            let mut lines = BufReader::new(stdout);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line)? > 0 {
                on_line(&line);
                line.clear();
            }
            child.wait()
        });
        wait(pid, reader)
    })
    .with_context(|| format!("`{shown}` did not finish"))?;
    succeeded(&shown, status)
}

/// Runs a program with both of its outputs in one file, so that a reader gets them in order and unmixed with
/// those of programs beside it. The file has what there is even if the program is interrupted.
pub(crate) fn run_into(command: &mut Command, output: &File) -> Result<()> {
    let shown = show(command);
    let share = || output.try_clone().context("cannot share the file for a program's output");
    let mut child = spawn(command, Stdio::null(), share()?.into(), share()?.into())?;
    let status = thread::scope(|scope| {
        let pid = child.id();
        wait(pid, scope.spawn(move || child.wait()))
    })
    .with_context(|| format!("`{shown}` did not finish"))?;
    succeeded(&shown, status)
}

/// The last lines of a text, set off for an error message.
pub(crate) fn indented_tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(OUTPUT_LINES_MAX);
    lines[skipped..].iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// A command the way a person would type it, for announcements and errors.
pub(crate) fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let words = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

fn spawn(command: &mut Command, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Result<Child> {
    interrupt::check()?;
    command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0).spawn().with_context(|| {
        format!("cannot start `{}`: is {:?} installed?", show(command), command.get_program())
    })
}

/// Waits for the thread that waits for the child, passing an interruption on to the child's group.
fn wait<T>(pid: u32, waiter: ScopedJoinHandle<'_, std::io::Result<T>>) -> Result<T> {
    let group = Pid::from_raw(i32::try_from(pid).context("process id out of range")?);
    let mut interrupted_at: Option<Instant> = None;
    while !waiter.is_finished() {
        match interrupted_at {
            None if interrupt::check().is_err() => {
                interrupted_at = Some(Instant::now());
                // An error means that the group is gone already: nothing is left to do.
                let _ = killpg(group, Signal::SIGINT);
            }
            Some(at) if at.elapsed() > INTERRUPT_GRACE => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            _ => {}
        }
        thread::sleep(POLL);
    }
    let result = waiter.join().map_err(|_| anyhow!("the thread waiting for it panicked"))?;
    interrupt::check()?;
    result.context("cannot wait for it")
}

fn succeeded(shown: &str, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}
