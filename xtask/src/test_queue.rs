//! Test programs side by side: most of their time is waiting for servers and for leases to end.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::test_count::TestCount;

/// Test programs that run at the same time.
const PROGRAMS_MAX: usize = 3;

/// A command whose tests are counted.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its name, for people.
    pub(crate) name: String,
    /// What runs the tests.
    pub(crate) command: Command,
}

/// Programs that have ended, with what their tests came to.
pub(crate) struct Results {
    finished: Vec<Finished>,
    /// Where what they said goes.
    out: Box<dyn Write + Send>,
}

#[derive(Debug)]
struct Finished {
    name: String,
    elapsed: Duration,
    count: TestCount,
}

impl Results {
    /// None yet; what the programs say will be written to `out`.
    pub(crate) fn new(out: impl Write + Send + 'static) -> Results {
        Results { finished: Vec::new(), out: Box::new(out) }
    }

    /// The sum over all programs.
    pub(crate) fn total(&self) -> TestCount {
        let mut total = TestCount::default();
        self.finished.iter().for_each(|program| total += program.count);
        total
    }

    /// All programs in the order they ended, one line each.
    pub(crate) fn table(&self) -> String {
        let width = self.finished.iter().map(|program| program.name.len()).max().unwrap_or_default();
        let mut table = String::new();
        for Finished { name, elapsed, count } in &self.finished {
            let seconds = elapsed.as_secs_f64();
            // Writing to a string cannot fail.
            let _ = writeln!(table, "  {name:width$}  {seconds:>7.1} s  {count}");
        }
        table
    }
}

/// Runs the jobs in their order, some at a time, and prints what each says when it ends. Fails if a test
/// does, after all have run.
pub(crate) fn run(jobs: Vec<Job>, results: &Mutex<Results>) -> Result<()> {
    let failed_before = lock(results).total().failed;
    let slots = jobs.len().min(PROGRAMS_MAX);
    let queue = Mutex::new(VecDeque::from(jobs));
    thread::scope(|scope| {
        let slots: Vec<_> = (0..slots).map(|_| scope.spawn(|| work_off(&queue, results))).collect();
        let ended: Vec<Result<()>> = slots.into_iter().map(joined).collect();
        ended.into_iter().collect::<Result<()>>()
    })?;
    let failed = lock(results).total().failed - failed_before;
    ensure!(failed == 0, "{failed} tests failed");
    Ok(())
}

/// Runs a command whose tests are counted, and prints what it says as it comes.
pub(crate) fn stream(name: &str, command: &mut Command, results: &Mutex<Results>) -> Result<()> {
    let started_at = Instant::now();
    let mut count = TestCount::default();
    let ended = command::stream(command, |line| {
        count.add_line(line);
        // Nobody may be listening any more; the tests go on all the same.
        let _ = std::io::stdout().write_all(line);
    });
    if ended.is_err() {
        count.failed = count.failed.max(1);
    }
    lock(results).finished.push(Finished { name: name.to_owned(), elapsed: started_at.elapsed(), count });
    ended?;
    ensure!(count.passed + count.failed > 0, "no test ran: does the filter match anything?");
    Ok(())
}

fn joined(slot: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    slot.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the thread of a test program panicked")))
}

/// Ends early only when interrupted.
fn work_off(queue: &Mutex<VecDeque<Job>>, results: &Mutex<Results>) -> Result<()> {
    loop {
        let Some(mut job) = lock(queue).pop_front() else { return Ok(()) };
        eprintln!("==> test {}", job.name);
        let started_at = Instant::now();
        let mut output = tempfile::tempfile().context("cannot create a file for the output of a test")?;
        let ended = command::run_into(&mut job.command, &output);
        let mut results = lock(results);
        let count = print(&job.name, &mut output, ended.as_ref().err(), &mut results.out)?;
        results.finished.push(Finished { name: job.name, elapsed: started_at.elapsed(), count });
        crate::interrupt::check()?;
    }
}

/// Prints what a program said, in one piece, and counts its tests.
fn print(
    name: &str,
    output: &mut File,
    error: Option<&anyhow::Error>,
    out: &mut impl Write,
) -> Result<TestCount> {
    let mut said = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut said)).context("cannot read a test's output")?;
    let mut count = TestCount::default();
    let mut has_result = false;
    for line in said.split_inclusive(|&byte| byte == b'\n') {
        has_result |= count.add_line(line);
    }
    let mut fault = error.map(|error| format!("{error:#}"));
    if !has_result {
        fault.get_or_insert_with(|| "it ended without a result".to_owned());
    }
    // A program that was killed, or that ended before its last test, is a failure even if every test that it
    // spoke of passed.
    if fault.is_some() {
        count.failed = count.failed.max(1);
    }
    // Nobody may be listening any more; the tests go on all the same.
    let _ = writeln!(out, "\n==> test {name}");
    let _ = out.write_all(&said);
    let _ = writeln!(out, "<== test {name}: {}", fault.unwrap_or_else(|| "ok".to_owned()));
    Ok(count)
}

/// What a panicked thread left is a whole list all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Job { name: name.to_owned(), command }
    }

    fn ran(jobs: Vec<Job>) -> (Result<()>, Results) {
        // Not to standard output: whoever counts this program's own tests would count these as well.
        let results = Mutex::new(Results::new(std::io::sink()));
        let result = run(jobs, &results);
        (result, results.into_inner().unwrap())
    }

    #[test]
    fn results_of_all_programs_are_added_up() {
        let good = "echo 'test result: ok. 3 passed; 0 failed; 1 ignored'";
        let (result, results) = ran((0..5).map(|number| job(&format!("good {number}"), good)).collect());
        result.unwrap();
        assert_eq!(results.total(), TestCount { passed: 15, failed: 0, skipped: 5 });
        assert_eq!(results.table().lines().count(), 5);
    }

    #[test]
    fn a_program_that_dies_is_a_failure_and_the_others_run_all_the_same() {
        let (result, results) = ran(vec![
            job("killed", "echo 'test result: ok. 3 passed; 0 failed'; kill -9 $$"),
            job("silent", "exit 0"),
            job("failed", "echo 'test result: FAILED. 1 passed; 2 failed' >&2; exit 101"),
            job("missing", "exec /no/such/program"),
            job("good", "echo 'test result: ok. 1 passed; 0 failed'"),
        ]);
        assert!(result.unwrap_err().to_string().contains("5 tests failed"));
        assert_eq!(results.total(), TestCount { passed: 5, failed: 5, skipped: 0 });
    }

    #[test]
    fn programs_run_side_by_side() {
        let dir = tempfile::tempdir().unwrap();
        let meet = |own: &str, other: &str| {
            let dir = dir.path().display();
            job(
                own,
                &format!(
                    "touch {dir}/{own}; until [ -e {dir}/{other} ]; do sleep 0.01; done; echo 'test result: ok. 1 passed'"
                ),
            )
        };
        ran(vec![meet("one", "two"), meet("two", "one")]).0.unwrap();
    }
}
