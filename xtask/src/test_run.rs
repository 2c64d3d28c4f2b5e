//! `cargo xtask test`: everything that must hold before a change is merged.
//!
//! Tests mostly wait, and lints only compute. So the tests are built once, their programs run side by side,
//! and the lints have what they leave of the processors.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::cli::TestArgs;
use crate::fleet::Fleet;
use crate::server::{Durability, Server};
use crate::steps::Steps;
use crate::test_program::{self, TestProgram};
use crate::test_queue::{self, Job, Results};
use crate::{cargo, command, install, light, servers, tidy};

/// How many seeds of the relay's simulation are run.
const SIM_SEEDS: &str = "10000";

/// Targets whose programs take long, the longest first: what starts last must not be what ends last.
const LONG: [&str; 6] = ["conformance", "brokers", "docs", "commands", "sim", "doctor"];

/// Targets that only compute: they leave the processors to tests that watch the clock.
const COMPUTING: [&str; 1] = ["sim"];

/// Targets that test a program, and test it once more as it is with its default features.
const SMOKE: [&str; 2] = ["commands", "demo"];

/// Directory of the program with default features, beside the one with all: its help says its file's name.
const DEFAULT_PROGRAM: &str = "default-features";

/// Runs all steps and prints the totals as the very last line.
pub(crate) fn run(args: &TestArgs) -> ExitCode {
    let steps = Steps::default();
    let results = Mutex::new(Results::new(std::io::stdout()));
    let ended = prepare(args, &steps).and_then(|servers| match args.cargo_args.is_empty() {
        true => everything(args, &servers, &steps, &results),
        false => selected(args, &servers, &steps, &results),
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut count = results.total();
    // The error itself was printed when its step ended. A step that is no test is a failure all the same: the
    // last line must never look like a success.
    if ended.is_err() && count.failed == 0 {
        count.failed = 1;
    }
    eprintln!("\n{}\n{}", results.table(), steps.summary());
    println!("{count}");
    if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Installs what is missing, as a compiler needs some of it too, and does the checks that take seconds; stops
/// at the first failure.
fn prepare(args: &TestArgs, steps: &Steps) -> Result<Vec<&'static dyn Server>> {
    let servers = servers::select(&args.fleet.only, &args.fleet.with)?;
    let missing =
        servers::TO_BUILD.into_iter().filter(|one| servers.iter().all(|other| other.name() != one.name()));
    let needed: Vec<&'static dyn Server> = servers.iter().copied().chain(missing).collect();
    steps.run("install", || install::install(&needed))?;
    steps.run("check install", || install::check_origin(&needed))?;
    for (name, mut command) in cargo::quick_checks() {
        steps.run(&name, || command::run(&mut command))?;
    }
    steps.run("light", light::run)?;
    steps.run("tidy", tidy::run)?;
    Ok(servers)
}

/// The tests that the user's arguments select, after the lints; stops at the first lint that fails.
fn selected(
    args: &TestArgs,
    servers: &[&'static dyn Server],
    steps: &Steps,
    results: &Mutex<Results>,
) -> Result<()> {
    for (name, mut command) in cargo::lints() {
        steps.run(&name, || command::run(&mut command))?;
    }
    steps.run("build tests", || command::run(&mut cargo::build_tests(&args.cargo_args)))?;
    with_servers(args, servers, steps, |fleet| {
        let mut tests = cargo::test(&args.cargo_args);
        with_environment(&mut tests, fleet);
        steps.run("tests", || test_queue::stream("cargo test", &mut tests, results))
    })
}

/// All tests, with the lints beside them. Whatever fails, the rest is run.
fn everything(
    args: &TestArgs,
    servers: &[&'static dyn Server],
    steps: &Steps,
    results: &Mutex<Results>,
) -> Result<()> {
    let default_program = steps.run("build program: default features", || {
        test_program::build_copy(&mut cargo::build_default_program(), DEFAULT_PROGRAM)
    })?;
    // The program with all features is put in its place by this build: the tests start that one.
    let programs = steps.run("build tests", || test_program::build(&mut cargo::build_tests(&[])))?;
    with_servers(args, servers, steps, |fleet| {
        let jobs = jobs(programs, &default_program, fleet);
        let (linted, tested) = thread::scope(|scope| {
            let lints = scope.spawn(|| lint_in_the_background(steps));
            let tested = steps.run("tests", || test_queue::run(jobs, results));
            (lints.join().unwrap_or_else(|_| Err(anyhow!("the thread of the lints panicked"))), tested)
        });
        let documented = steps.run("documentation tests", || {
            let mut tests = cargo::test_documentation();
            with_environment(&mut tests, fleet);
            test_queue::stream("documentation", &mut tests, results)
        });
        linted.and(tested).and(documented)
    })
}

/// Starts the servers, and stops them whatever the action comes to.
fn with_servers(
    args: &TestArgs,
    servers: &[&'static dyn Server],
    steps: &Steps,
    action: impl FnOnce(&Fleet) -> Result<()>,
) -> Result<()> {
    let fleet = steps.run("start servers", || Fleet::start(servers, args.fleet.keep, Durability::Scratch))?;
    let tested = action(&fleet);
    steps.run("stop servers", || {
        drop(fleet);
        Ok(())
    })?;
    tested
}

/// The test programs in the order they start.
fn jobs(programs: Vec<TestProgram>, default_program: &Path, fleet: &Fleet) -> Vec<Job> {
    let job = |program: TestProgram| {
        let mut command = program.command();
        with_environment(&mut command, fleet);
        if COMPUTING.contains(&program.target.as_str()) {
            command = cargo::in_the_background(&command);
        }
        Job { name: program.name, command }
    };
    in_order(programs, default_program).into_iter().map(job).collect()
}

/// The programs that take long first, and those of the program with default features added.
fn in_order(mut programs: Vec<TestProgram>, default_program: &Path) -> Vec<TestProgram> {
    let smoke = programs.iter().filter(|program| SMOKE.contains(&program.target.as_str()));
    let smoke: Vec<_> =
        smoke.map(|program| program.of_subject("default features", default_program)).collect();
    programs.extend(smoke);
    let rank = |program: &TestProgram| LONG.iter().position(|&name| name == program.target);
    programs.sort_by_key(|program| rank(program).unwrap_or(LONG.len()));
    programs
}

/// Tells the tests about the servers.
fn with_environment(command: &mut Command, fleet: &Fleet) {
    command.env("SIM_SEEDS", SIM_SEEDS).envs(fleet.environment());
}

/// Stops at the first failure, as the rest would only repeat it, and prints what a lint says only then.
fn lint_in_the_background(steps: &Steps) -> Result<()> {
    for (name, command) in cargo::lints() {
        steps.run(&name, || {
            let mut output = tempfile::tempfile().context("cannot create a file for the output of a lint")?;
            let ended = command::run_into(&mut cargo::in_the_background(&command), &output);
            if ended.is_err() {
                print(&mut output)?;
            }
            ended
        })?;
    }
    Ok(())
}

fn print(output: &mut File) -> Result<()> {
    let mut said = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut said)).context("cannot read a lint's output")?;
    // In one piece: test programs print beside it. Nobody may be listening any more.
    let _ = std::io::stderr().lock().write_all(&said);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(target: &str) -> TestProgram {
        TestProgram {
            name: format!("sendoff-cli {target}"),
            target: target.to_owned(),
            path: "/w/t/program".into(),
            dir: "/w".into(),
            subject: None,
        }
    }

    #[test]
    fn what_takes_long_starts_first_and_the_default_program_is_tested_too() {
        let programs = ["lib", "demo", "commands", "conformance"].map(program).to_vec();
        let ordered = in_order(programs, Path::new("/w/t/default"));
        let names: Vec<&str> = ordered.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "sendoff-cli conformance",
                "sendoff-cli commands",
                "sendoff-cli commands: default features",
                "sendoff-cli lib",
                "sendoff-cli demo",
                "sendoff-cli demo: default features",
            ]
        );
    }
}
