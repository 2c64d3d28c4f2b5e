//! The `sendoff` program: daemon, operator's commands, demo and benchmark. Its commands come with the outbox and
//! the relay; for now it tells its version.

use clap::Parser;

/// Gets every committed event to its broker, and nothing that was rolled back.
#[derive(Debug, Parser)]
#[command(name = "sendoff", version, arg_required_else_help = true)]
struct Arguments {}

fn main() {
    Arguments::parse();
}
