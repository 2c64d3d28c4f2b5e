//! Tooling for contributors, run as `cargo xtask`.
//!
//! Start reading at `test_run.rs` for what the whole test run consists of, at `server.rs` for what a test
//! server is, and at `tidy.rs` for the checks.

mod account;
mod bench;
mod bench_sinks;
mod cargo;
mod cli;
mod command;
mod fleet;
mod install;
mod interrupt;
mod light;
mod port;
mod process;
mod requirement;
mod run_dir;
mod server;
mod servers;
mod services;
mod sim;
mod steps;
mod test_count;
mod test_program;
mod test_queue;
mod test_run;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::cli::{Cli, Task};
use crate::interrupt::Interrupted;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        // Asked for, so nothing to explain; 130 is what shells report for a program ended by Ctrl-C.
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("{Interrupted}: everything that was started is stopped");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    interrupt::listen()?;
    match &cli.command {
        Task::Test(args) => return Ok(test_run::run(args)),
        Task::Services(args) => services::run(args)?,
        Task::Tidy => tidy::run()?,
        Task::Bench(args) => bench::run(args)?,
        Task::Sim(args) => sim::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
