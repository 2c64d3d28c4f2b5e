//! The `sendoff` program: the relay as a process, demo, benchmark; the operator's commands are to come.

mod args;
mod bench;
mod demo;
mod run;
mod site;
mod wire;

use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Arguments, Command};

/// A guarantee did not hold.
const BROKEN: u8 = 1;
/// It could not be done: a server that is not there, a wrong argument.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime could not start: {error}");
            return ExitCode::from(FAILED);
        }
    };
    let done = runtime.block_on(async {
        match arguments.command {
            Command::Run(args) => run::run(&args).await.map(|()| true),
            Command::Migrate(args) => run::migrate(&args).await.map(|()| true),
            Command::Demo(args) => demo::run(&args).await,
            Command::DemoWorker(args) => demo::worker::run(&args).await.map(|()| true),
            Command::Bench(args) => bench::run(&args).await,
            Command::BenchProducer(args) => bench::produce(&args).await.map(|()| true),
        }
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}
