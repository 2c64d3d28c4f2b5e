//! The command line: what there is to say. What is done is in the file of the command's name.

mod adopt;
mod bench;
mod config;
mod demo;
mod doctor;
mod enqueue;
mod inbox;
mod inspect;
mod operate;
mod relay;
mod tasks;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

pub(crate) use adopt::AdoptArgs;
pub(crate) use bench::{BenchArgs, BenchProducerArgs, Measure};
pub(crate) use config::{ConfigArgs, ConfigCommand};
pub(crate) use demo::{DemoArgs, DemoWorkerArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use enqueue::EnqueueArgs;
pub(crate) use inbox::{InboxArgs, InboxCommand, InboxPurgeArgs};
pub(crate) use inspect::{EventArgs, LanesArgs, ListArgs, ParkedArgs, StatusArgs, WorkersArgs};
pub(crate) use operate::{
    CancelArgs, DiscardArgs, PauseArgs, PurgeArgs, PurgeWhat, RedriveArgs, SelectionArgs,
};
pub(crate) use relay::{MigrateArgs, ProbeArgs, RunArgs};
pub(crate) use tasks::{
    TaskArgs, TaskChangeArgs, TaskLimitArgs, TaskListArgs, TaskPurgeArgs, TasksArgs, TasksCommand,
};

/// Gets every committed event to its broker, and nothing that was rolled back.
#[derive(Debug, Parser)]
#[command(name = "sendoff", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 the answer is no; 2 wrong arguments; 3 something could
  not be reached or failed; 4 the tables are missing or of another version
First steps: sendoff demo; then sendoff config init, migrate and run";

/// Which outbox.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgs {
    /// The database: postgres://…, mysql://…, sqlite:PATH; or the name of one of several stores of the configuration
    #[arg(long, value_name = "URL", env = "SENDOFF_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// The schema of the tables (PostgreSQL), or what their names begin with [default: sendoff, or sendoff_]
    #[arg(long, value_name = "NAME", env = "SENDOFF_NAMES")]
    pub(crate) names: Option<String>,
    /// The configuration file, which names the database if --store does not
    #[arg(long, value_name = "FILE", env = "SENDOFF_CONFIG")]
    pub(crate) config: Option<std::path::PathBuf>,
}

/// `sendoff tasks stats` and `sendoff inbox stats`
#[derive(Debug, Args)]
pub(crate) struct PartStatsArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Relay an outbox's events to a sink, until SIGTERM or SIGINT
    ///
    /// The first signal stops claiming, finishes what is in flight and gives the lanes back; a second one quits at once.
    #[command(after_help = "Examples:
  sendoff run --store postgres://localhost/shop --sink stdout:
  sendoff run --store sqlite:shop.db --sink file:/var/log/shop/events.jsonl
  sendoff run --config sendoff.toml")]
    Run(RunArgs),
    /// Ask a running `sendoff run` whether it is alive or ready
    ///
    /// The answer is that of its admin listener; the exit code is 1 if it is no. For health checks where there is no curl.
    #[command(
        after_help = "Examples:
  sendoff probe                                   is it ready?
  sendoff probe healthz --admin 127.0.0.1:9464    is it alive?",
        hide = true
    )]
    Probe(ProbeArgs),
    /// Make the outbox's tables, or bring them up to date
    #[command(after_help = "Examples:
  sendoff migrate --store postgres://localhost/shop
  sendoff migrate --store postgres://localhost/shop --print | psql shop
  sendoff migrate --store postgres://localhost/shop --check || echo 'migrate first'")]
    Migrate(MigrateArgs),
    /// Write one event, or one for each line of JSON on standard input
    ///
    /// A line is an object: topic, and what is wanted of key, target, payload (any JSON), payload_text, payload_base64, content_type, headers, id, deliver_at (2026-01-31T12:00:00Z). The lines that
    /// the file sink writes are taken as well. They are committed a batch at a time; a line that is wrong is named, and nothing of its batch is written.
    #[command(after_help = "Examples:
  sendoff enqueue orders.placed --key order-7 --payload '{\"total\": 99}'
  sendoff enqueue --lines < events.jsonl
  sendoff enqueue --lines --skip 41000 < events.jsonl    go on after line 41000")]
    Enqueue(EnqueueArgs),
    /// How many events stand where, for each target
    #[command(after_help = "Examples:
  sendoff status
  sendoff status --watch
  sendoff status --json | jq '.targets[].dead'")]
    Status(StatusArgs),
    /// List the events of a state
    #[command(after_help = "Examples:
  sendoff list dead
  sendoff list failed --target billing --limit 20
  sendoff list dead --after 48210    the page behind position 48210")]
    List(ListArgs),
    /// Everything that is known of one event
    #[command(after_help = "Example:
  sendoff show 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001")]
    Show(EventArgs),
    /// Why an event has not been delivered
    #[command(after_help = "Example:
  sendoff explain 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001")]
    Explain(EventArgs),
    /// The lanes of a target, and who has them
    Lanes(LanesArgs),
    /// The workers that are registered
    Workers(WorkersArgs),
    /// The keys that wait, for a retry or for an operator
    Parked(ParkedArgs),
    /// Look at a table that you have, and write its configuration
    ///
    /// It says what its columns mean and how sure that is, what has to be done first, and what cannot be had. It changes nothing; with --shadow it also reads what waits, and says what would be delivered. The exit code is 1 if the table
    /// cannot be adopted.
    #[command(after_help = "Examples:
  sendoff adopt outbox_events --store postgres://localhost/shop
  sendoff adopt shop.outbox --shadow
  sendoff adopt shop.outbox --write sendoff.toml
  sendoff adopt --config sendoff.toml --shadow    as that file maps it")]
    Adopt(AdoptArgs),
    /// Look for what is wrong with the database or the outbox
    ///
    /// It says how to mend it, and changes nothing itself. What it finds is a problem, a warning or a note; the exit code is 1 if there is a problem or a warning. docs/runbook.md has a section for every
    /// finding's code.
    #[command(after_help = "Examples:
  sendoff doctor
  sendoff doctor --target billing --workers 3    and say so if there are not three
  sendoff doctor --json | jq -r '.findings[].code'")]
    Doctor(DoctorArgs),
    /// Take out an event that is not in flight
    Cancel(CancelArgs),
    /// Try dead and parked events again
    ///
    /// Each comes before the later ones of its key.
    #[command(after_help = "Examples:
  sendoff redrive 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001
  sendoff redrive --key order-7
  sendoff redrive --all --dry-run
  sendoff redrive --all --rate 100
  sendoff redrive --cause rejected --topic orders.placed")]
    Redrive(RedriveArgs),
    /// Delete dead events for good
    #[command(after_help = "Examples:
  sendoff discard 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001
  sendoff discard --key order-7 --dry-run
  sendoff discard --all --error 'no such customer' --yes")]
    Discard(DiscardArgs),
    /// Stop the workers of a target, wherever they run, from claiming
    Pause(PauseArgs),
    /// Let the workers of a target go on
    Resume(PauseArgs),
    /// Delete history and dead events that are old
    #[command(after_help = "Examples:
  sendoff purge published --older-than 7d
  sendoff purge dead --older-than 90d --target billing")]
    Purge(PurgeArgs),
    /// Look at tasks that services run, try them again, call them off
    #[command(after_help = "Examples:
  sendoff tasks stats
  sendoff tasks list --status failed
  sendoff tasks retry 0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001")]
    Tasks(TasksArgs),
    /// Look at what consumers have handled, and forget what is old
    #[command(after_help = "Examples:
  sendoff inbox stats
  sendoff inbox purge --older-than 7d")]
    Inbox(InboxArgs),
    /// Watch it work while workers are killed and frozen
    ///
    /// Producers commit and roll back, workers deliver, one is killed and one is frozen. Without --store it uses SQLite in a temporary file and needs no server. It ends with a verdict: lost, duplicated, out of order, delivered
    /// though rolled back. The exit code is 1 if a guarantee did not hold.
    #[command(after_help = "Examples:
  sendoff demo
  sendoff demo --events 100000 --store postgres://localhost/shop
  sendoff demo --json | jq .lost")]
    Demo(DemoArgs),
    /// One worker process of the demo.
    #[command(hide = true)]
    DemoWorker(DemoWorkerArgs),
    /// Measure a server: rates and latencies, beside its bare statements
    ///
    /// Both in the same run. It works in tables of its own, which it removes, and checks what it delivered.
    #[command(after_help = "Examples:
  sendoff bench drain --store postgres://localhost/shop
  sendoff bench latency --store postgres://localhost/shop --json
  sendoff bench steady --store sqlite:/tmp/bench.db --workers 2")]
    Bench(BenchArgs),
    /// The host of a latency measurement.
    #[command(hide = true)]
    BenchProducer(BenchProducerArgs),
    /// Write, check or describe a configuration file
    #[command(after_help = "Examples:
  sendoff config init > sendoff.toml
  sendoff config check sendoff.toml
  sendoff config check sendoff.toml --connect    and ask every server that it names
  sendoff config schema > sendoff.schema.json    for an editor")]
    Config(ConfigArgs),
    /// Print what a shell needs to complete this command line
    #[command(after_help = "Example:
  sendoff completions bash > /etc/bash_completion.d/sendoff")]
    Completions(CompletionsArgs),
    /// Write the manual pages to a directory
    #[command(after_help = "Example:
  sendoff man /usr/local/share/man/man1")]
    Man(ManArgs),
    /// Write the JSON schemas of what --json prints to a directory
    #[command(after_help = "Example:
  sendoff schemas /usr/local/share/sendoff/schemas")]
    Schemas(SchemasArgs),
}

/// `sendoff completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `sendoff man`
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Where to; without it, the first page goes to standard output
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: Option<std::path::PathBuf>,
}

/// `sendoff schemas`
#[derive(Debug, Args)]
pub(crate) struct SchemasArgs {
    /// Where to
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: std::path::PathBuf,
}

/// The command line as it is described to shells and manuals.
pub(crate) fn described() -> clap::Command {
    Arguments::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        described().debug_assert();
    }

    #[test]
    fn help_fits_a_screen() {
        for width in [80, 100] {
            let help = described().term_width(width).render_help().to_string();
            assert!(help.lines().count() <= 40, "{} lines\n{help}", help.lines().count());
            let longest = help.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{longest:?}\n{help}");
        }
    }
}
