//! `cargo xtask sim`: the relay's simulation, for many more seeds than a test run has time for.

use anyhow::Result;

use crate::cli::SimArgs;
use crate::{cargo, command};

/// Runs the seeds, optimised: there is enough to do for that to pay.
pub(crate) fn run(args: &SimArgs) -> Result<()> {
    let mut sim = cargo::cargo(["test", "--release", "-p", "sendoff-relay", "--test", "sim"]);
    sim.args(["--", "--exact", "seeds"]);
    sim.env_remove("SIM_SEED");
    command::run(sim.env("SIM_FROM", args.from.to_string()).env("SIM_SEEDS", args.seeds.to_string()))
}
