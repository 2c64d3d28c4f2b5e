//! `cargo xtask bench sinks`: a PostgreSQL outbox through the relay into every broker, beside the broker by itself and the relay by itself.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::fleet::Fleet;
use crate::server::Durability;
use crate::{cargo, command, install, servers};

/// What the brokers are started with, and the store is.
const SERVERS: [&str; 9] =
    ["postgres15", "mariadb", "python", "redis", "nats", "rabbitmq", "mosquitto", "fauxqs", "kafka"];

/// As `cargo xtask test` builds them, so that nothing is built twice.
const BROKERS: [&str; 6] = ["test", "-q", "--workspace", "--all-features", "--test", "brokers"];
const PROGRAM: [&str; 6] = ["build", "--release", "-p", "sendoff-cli", "--features", "full"];

/// What is asked for: half of what the broker takes, or four fifths of what the relay gives to nobody, whichever is lower.
const OF_SINK: f64 = 0.5;
const OF_NULL: f64 = 0.8;

const HEADINGS: [&str; 8] = [
    "sink",
    "events/s",
    "sink alone",
    "ratio",
    "null sink",
    "ratio",
    "faults",
    "0.5 of the one or 0.8 of the other",
];

/// Where a sink is.
struct Place {
    name: String,
    url: String,
    environment: Vec<(String, String)>,
}

/// Builds everything, starts the brokers, measures one after the other, prints a table.
pub(crate) fn run(sinks: &[String], events: u32, rounds: u16, keep: bool) -> Result<()> {
    let names = SERVERS.map(str::to_owned);
    let servers = servers::select(&names, &[])?;
    install::install(&servers)?;
    command::run(&mut cargo::cargo(PROGRAM))?;
    command::run(cargo::cargo(BROKERS).arg("--no-run"))?;
    let fleet = Fleet::start(&servers, keep, Durability::Disk)?;
    let environment = fleet.environment();
    let store = environment.iter().find(|(name, _)| name == "SENDOFF_TEST_POSTGRES15");
    let store = &store.context("PostgreSQL has no address")?.1;
    let (brokers, places) = Brokers::start(&environment)?;
    let unknown = sinks.iter().find(|name| places.iter().all(|place| place.name != **name));
    if let Some(unknown) = unknown {
        let known: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        bail!("there is no sink {unknown}; there are {}", known.join(", "));
    }
    let mut table = format!("{}\n", row(&HEADINGS.map(str::to_owned)));
    let mut faults = 0;
    for place in places.iter().filter(|place| sinks.is_empty() || sinks.contains(&place.name)) {
        eprintln!("{}: {events} events, {rounds} rounds", place.name);
        let (line, wrong) = measured(place, store, events, rounds)?;
        writeln!(table, "{line}")?;
        faults += wrong;
    }
    drop(brokers);
    println!("{table}");
    ensure!(faults == 0, "{faults} events were lost, duplicated or out of order");
    Ok(())
}

/// The test binary of the brokers, which keeps them running until its standard input ends.
struct Brokers {
    child: Child,
    until: Option<ChildStdin>,
}

impl Brokers {
    fn start(environment: &[(String, String)]) -> Result<(Self, Vec<Place>)> {
        let mut command = cargo::cargo(BROKERS);
        command.envs(environment.iter().cloned()).env("SENDOFF_TEST_SERVE_BROKERS", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let until = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let brokers = Self { child, until };
        let mut places = Vec::new();
        for line in lines {
            let line = line?;
            if line == "ready" {
                return Ok((brokers, places));
            }
            places.extend(Place::parse(&line));
        }
        bail!("the brokers could not be started")
    }
}

impl Drop for Brokers {
    fn drop(&mut self) {
        drop(self.until.take());
        let _ = self.child.wait();
    }
}

impl Place {
    /// `NAME URL [VARIABLE=VALUE …]`
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (name, url) = (words.next()?.to_owned(), words.next()?.to_owned());
        let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self { name, url, environment: words.filter_map(pair).collect() })
    }
}

/// A line of the table, and how many events went wrong.
fn measured(place: &Place, store: &str, events: u32, rounds: u16) -> Result<(String, u64)> {
    let mut command = Command::new(cargo::root().join("target/release/sendoff"));
    command.envs(place.environment.iter().cloned());
    command.args(["bench", "drain", "--json", "--store", store, "--sink", &place.url]);
    command.args(["--events", &events.to_string(), "--rounds", &rounds.to_string()]);
    let printed = command::capture(&mut command).with_context(|| place.name.clone())?;
    let report: Value = serde_json::from_str(&printed).context("what it printed is no JSON")?;
    let figure = |name: &str| report[name].as_f64().with_context(|| format!("no {name} in {report}"));
    let (rate, sink, null) =
        (figure("events_per_s")?, figure("sink_events_per_s")?, figure("null_events_per_s")?);
    let (of_sink, of_null) = (figure("ratio_sink")?, figure("ratio_null")?);
    let faults = ["lost", "duplicated", "out_of_order"].map(|name| report[name].as_u64().unwrap_or(u64::MAX));
    let is_met = of_sink >= OF_SINK || of_null >= OF_NULL;
    let line = row(&[
        place.name.clone(),
        format!("{rate:.0}"),
        format!("{sink:.0}"),
        format!("{of_sink:.2}"),
        format!("{null:.0}"),
        format!("{of_null:.2}"),
        faults.map(|fault| fault.to_string()).join("/"),
        if is_met { "met" } else { "not met" }.to_owned(),
    ]);
    Ok((line, faults.iter().fold(0, |sum, fault| sum.saturating_add(*fault))))
}

fn row(cells: &[String; 8]) -> String {
    let [name, rest @ ..] = cells;
    let rest: Vec<String> = rest.iter().map(|cell| format!("{cell:>10}")).collect();
    format!("{name:<10} {}", rest.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_a_sink_is_and_what_it_needs() {
        let place = Place::parse("sqs sqs:http://127.0.0.1:1/q AWS_REGION=us-east-1 X=a=b").unwrap();
        assert_eq!((place.name.as_str(), place.url.as_str()), ("sqs", "sqs:http://127.0.0.1:1/q"));
        assert_eq!(place.environment[1], ("X".to_owned(), "a=b".to_owned()));
        assert!(Place::parse("").is_none());
    }
}
