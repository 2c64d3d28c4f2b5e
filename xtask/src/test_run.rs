//! `cargo xtask test`: everything that must hold before a change is merged.

use std::io::Write;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::cli::TestArgs;
use crate::fleet::Fleet;
use crate::server::{Durability, Server};
use crate::steps::Steps;
use crate::test_count::TestCount;
use crate::{cargo, command, install, light, servers, tidy};

/// How many seeds of the relay's simulation are run.
const SIM_SEEDS: &str = "10000";

/// Runs all steps and prints the totals as the very last line.
pub(crate) fn run(args: &TestArgs) -> ExitCode {
    let mut steps = Steps::default();
    let mut count = TestCount::default();
    let result = prepare(args, &mut steps)
        .and_then(|servers| lint(&mut steps).map(|()| servers))
        .and_then(|servers| test(args, &servers, &mut steps, &mut count));
    // The error itself was printed when its step ended. A step that is no test, or a test binary that died
    // without a count, is a failure all the same: the last line must never look like a success.
    if result.is_err() && count.failed == 0 {
        count.failed = 1;
    }
    eprintln!("\n{}", steps.summary());
    println!("{count}");
    if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Installs what is missing: a compiler needs some of it too.
fn prepare(args: &TestArgs, steps: &mut Steps) -> Result<Vec<&'static dyn Server>> {
    let servers = servers::select(&args.fleet.only, &args.fleet.with)?;
    let missing =
        servers::TO_BUILD.into_iter().filter(|one| servers.iter().all(|other| other.name() != one.name()));
    let needed: Vec<&'static dyn Server> = servers.iter().copied().chain(missing).collect();
    steps.run("install", || install::install(&needed))?;
    steps.run("check install", || install::check_origin(&needed))?;
    Ok(servers)
}

/// What needs no server; stops at the first failure, as the rest would only repeat it.
fn lint(steps: &mut Steps) -> Result<()> {
    for (name, mut command) in cargo::lints() {
        steps.run(&name, || command::run(&mut command))?;
    }
    steps.run("light", light::run)?;
    steps.run("tidy", tidy::run)
}

fn test(
    args: &TestArgs,
    servers: &[&'static dyn Server],
    steps: &mut Steps,
    count: &mut TestCount,
) -> Result<()> {
    steps.run("build tests", || command::run(&mut cargo::build_tests(&args.cargo_args)))?;
    let is_everything = args.cargo_args.is_empty();
    if is_everything {
        let mut build = cargo::test_default_features();
        steps.run("build tests: default features", || command::run(build.arg("--no-run")))?;
    }
    let fleet = steps.run("start servers", || Fleet::start(servers, args.fleet.keep, Durability::Scratch))?;
    let mut tested = steps.run("tests", || cargo_test(cargo::test(&args.cargo_args), &fleet, count));
    if is_everything {
        let command = cargo::test_default_features();
        let default = steps.run("tests: default features", || cargo_test(command, &fleet, count));
        tested = tested.and(default);
    }
    steps.run("stop servers", || {
        drop(fleet);
        Ok(())
    })?;
    tested
}

fn cargo_test(mut command: Command, fleet: &Fleet, count: &mut TestCount) -> Result<()> {
    let before = count.passed + count.failed;
    let tested = command::stream(command.env("SIM_SEEDS", SIM_SEEDS).envs(fleet.environment()), |line| {
        count.add_line(line);
        // Nobody may be listening any more; the tests go on all the same.
        let _ = std::io::stdout().write_all(line);
    });
    tested?;
    ensure!(count.passed + count.failed > before, "no test ran: does the filter match anything?");
    Ok(())
}
