//! The `sendoff` program: the relay as a process, the operator's commands, demo, benchmark.

mod admin;
mod adopt;
mod args;
mod bench;
mod commands;
mod config;
mod demo;
mod doctor;
mod exit;
mod output;
mod part;
mod place;
mod retention;
mod run;
mod shape;
mod site;
mod table;
mod telemetry;
mod wire;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use self::args::{Arguments, Command};
use self::exit::Answer;

/// An event is a dozen small allocations, made by one thread and freed by another: what glibc does with those was a third of the relay's own time (ADR 0020).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime could not start: {error}");
            return ExitCode::from(exit::code(&error.into()));
        }
    };
    match runtime.block_on(run_command(arguments.command)) {
        Ok(answer) => answer.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(exit::code(&error))
        }
    }
}

async fn run_command(command: Command) -> Result<Answer> {
    let held = |held: bool| if held { Answer::Yes } else { Answer::No };
    match command {
        Command::Run(args) => run::run(&args).await.map(|()| Answer::Yes),
        Command::Probe(args) => commands::probe::run(&args).await,
        Command::Migrate(args) => commands::migrate::run(&args).await,
        Command::Enqueue(args) => commands::enqueue::run(&args).await,
        Command::Status(args) => commands::status::run(&args).await,
        Command::List(args) => commands::list::run(&args).await,
        Command::Show(args) => commands::show::run(&args).await,
        Command::Explain(args) => commands::explain::run(&args).await,
        Command::Lanes(args) => commands::lanes::run(&args).await,
        Command::Workers(args) => commands::workers::run(&args).await,
        Command::Parked(args) => commands::parked::run(&args).await,
        Command::Adopt(args) => adopt::run(&args).await,
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Cancel(args) => commands::cancel::run(&args).await,
        Command::Redrive(args) => commands::redrive::run(&args).await,
        Command::Discard(args) => commands::discard::run(&args).await,
        Command::Pause(args) => commands::pause::run(&args, true).await,
        Command::Resume(args) => commands::pause::run(&args, false).await,
        Command::Purge(args) => commands::purge::run(&args).await,
        Command::Tasks(args) => commands::tasks::run(&args).await,
        Command::Inbox(args) => commands::inbox::run(&args).await,
        Command::Demo(args) => demo::run(&args).await.map(held),
        Command::DemoWorker(args) => demo::worker::run(&args).await.map(|()| Answer::Yes),
        Command::Bench(args) => bench::run(&args).await.map(held),
        Command::BenchProducer(args) => bench::produce(&args).await.map(|()| Answer::Yes),
        Command::Config(args) => commands::config::run(&args).await,
        Command::Completions(args) => commands::man::completions(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Schemas(args) => commands::schemas::run(&args),
    }
}
