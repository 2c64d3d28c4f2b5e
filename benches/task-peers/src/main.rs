//! Tasks of sendoff beside other queues on PostgreSQL, each through its public interface: how fast tasks are enqueued, and how fast as many that are ready are run to their end by its own workers, with a handler that only counts.
//!
//! `cargo xtask bench task-peers` runs it against a server whose commits wait for the disk. Only ratios within one run count: systems take turns, in another order each round, each time in a new database, and the ratio is to sendoff in
//! the same round; medians are printed. The clock of a run begins when workers that are connected are told to work, and ends when the database has every task as completed. Nothing is asserted about speed; tasks that were missed or run twice are
//! printed, and end the program with an error.

mod database;
mod measure;
mod report;
mod systems;
mod tally;

use anyhow::{Result, bail, ensure};
use clap::Parser;

use self::measure::{Measured, Plan};
use self::report::Row;
use self::systems::System;

/// With so many workers, and as many producers.
const WORKERS: [u32; 2] = [1, 4];

/// Tasks of sendoff beside other queues on PostgreSQL.
#[derive(Debug, Parser)]
struct Args {
    /// The server's address; databases are created and dropped there
    #[arg(long, value_name = "URL", env = "SENDOFF_TEST_POSTGRES15")]
    server: String,
    /// So many tasks each time
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    tasks: u32,
    /// Each is measured so often
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// A worker runs so many tasks at a time
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// Only these beside sendoff
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',')]
    only: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let systems = chosen(&args.only)?;
    println!("{} tasks, {} at a time by each worker, {} rounds", args.tasks, args.concurrency, args.rounds);
    report::print_settings(&systems);
    let mut rows: Vec<Row> = Vec::new();
    for workers in WORKERS {
        rows.extend(systems.iter().map(|system| Row::new(workers, system.package())));
    }
    let mut number = 0;
    for round in 0..usize::from(args.rounds) {
        for (block, workers) in WORKERS.into_iter().enumerate() {
            for turn in 0..systems.len() {
                // Whoever comes after another has the server as that one left it.
                let place = (turn + round) % systems.len();
                let plan = Plan {
                    server: &args.server,
                    number,
                    workers,
                    tasks: args.tasks,
                    concurrency: args.concurrency,
                };
                let measured = measure::measure(&*systems[place], &plan).await;
                eprintln!(
                    "round {}, {workers} workers, {}: {}",
                    round + 1,
                    systems[place].package(),
                    said(&measured)
                );
                rows[block * systems.len() + place].add(measured);
                number += 1;
            }
        }
    }
    print!("{}", report::table(&rows));
    ensure!(
        rows.iter().all(Row::is_sound),
        "tasks were missed, repeated or not settled, or could not be measured"
    );
    Ok(())
}

fn said(measured: &Result<Measured>) -> String {
    match measured {
        Ok(measured) => format!("{:.0} enqueued/s, {:.0} run/s", measured.enqueued, measured.run),
        Err(error) => format!("{error:#}"),
    }
}

fn chosen(only: &[String]) -> Result<Vec<Box<dyn System>>> {
    let mut systems = systems::all();
    let known: Vec<&str> = systems.iter().skip(1).map(|system| system.package()).collect();
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no {unknown} here; there are {}", known.join(", "));
    }
    let mut is_first = true;
    systems.retain(|system| {
        std::mem::take(&mut is_first) || only.is_empty() || only.iter().any(|name| name == system.package())
    });
    Ok(systems)
}
