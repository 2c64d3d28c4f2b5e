//! `cargo xtask bench`: a benchmark with the servers it needs.

use anyhow::Result;

use crate::cli::{Bench, BenchArgs};
use crate::fleet::Fleet;
use crate::server::Durability;
use crate::{bench_sinks, cargo, command, install, servers};

/// What a benchmark is called, where it is, and what it runs against.
struct Plan {
    package: &'static str,
    name: &'static str,
    features: &'static str,
    servers: &'static [&'static str],
}

const CLAIM: Plan = Plan {
    package: "sendoff",
    name: "claim",
    features: "testkit,postgres,sqlite,mysql",
    servers: &["postgres15", "postgres18", "mariadb"],
};

const OUTBOX: Plan = Plan {
    package: "sendoff",
    name: "outbox",
    features: "testkit,postgres,sqlite,mysql",
    servers: &["postgres15", "postgres18"],
};

const ADOPTED: Plan = Plan { name: "adopted", ..OUTBOX };

const TASKS: Plan = Plan { name: "tasks", ..OUTBOX };

/// By itself, outside the workspace.
const TASK_PEERS: &str = "benches/task-peers/Cargo.toml";

/// Builds the benchmark, starts its servers, runs it, stops them.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let plan = match args.bench {
        Bench::Claim => CLAIM,
        Bench::Outbox => OUTBOX,
        Bench::Adopted => ADOPTED,
        Bench::Tasks => TASKS,
        Bench::TaskPeers => return task_peers(args),
        Bench::Sinks => return bench_sinks::run(&args.only, args.events, args.rounds, args.keep),
    };
    let cargo_args = ["bench", "-p", plan.package, "--bench", plan.name, "--features", plan.features];
    let names: Vec<String> = plan.servers.iter().map(|&name| name.to_owned()).collect();
    let servers = servers::select(&names, &[])?;
    // A compiler running beside the servers would spoil nothing yet, but keep them waiting.
    command::run(cargo::cargo(cargo_args).arg("--no-run"))?;
    install::install(&servers)?;
    let fleet = Fleet::start(&servers, args.keep, Durability::Disk)?;
    command::run(cargo::cargo(cargo_args).envs(fleet.environment()))
}

/// The same for a package that is not of the workspace.
fn task_peers(args: &BenchArgs) -> Result<()> {
    let servers = servers::select(&["postgres15".to_owned()], &[])?;
    command::run(&mut cargo::cargo(["build", "--release", "--manifest-path", TASK_PEERS]))?;
    install::install(&servers)?;
    let fleet = Fleet::start(&servers, args.keep, Durability::Disk)?;
    let mut bench = cargo::cargo(["run", "--release", "--quiet", "--manifest-path", TASK_PEERS, "--"]);
    bench.args(["--tasks", &args.tasks.to_string(), "--concurrency", &args.concurrency.to_string()]);
    bench.args(["--rounds", &args.rounds.to_string()]);
    if !args.only.is_empty() {
        bench.args(["--only", &args.only.join(",")]);
    }
    command::run(bench.envs(fleet.environment()))
}
