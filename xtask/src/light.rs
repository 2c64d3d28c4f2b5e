//! What a small build must not pull in.

use anyhow::{Result, ensure};

use crate::{cargo, command};

/// Clients of brokers: each comes with the feature of its sink, and with nothing else.
const CLIENTS: [&str; 8] =
    ["redis", "async-nats", "lapin", "rdkafka", "rumqttc", "aws-sdk-sqs", "aws-sdk-sns", "reqwest"];

/// Those that a first build does without: they take longer than all the rest.
const HEAVY: [&str; 4] = ["rdkafka", "aws-config", "aws-sdk-sqs", "aws-sdk-sns"];

/// Nothing of the kind in the program without its features, and nothing heavy in the one that people build first.
pub(crate) fn run() -> Result<()> {
    check(&["--no-default-features"], &CLIENTS)?;
    check(&[], &HEAVY)
}

fn check(features: &[&str], unwanted: &[&str]) -> Result<()> {
    let args = ["tree", "-p", "sendoff-cli", "-e", "normal", "--prefix", "none"];
    let tree = command::capture(cargo::cargo(args).args(features))?;
    let found = found(&tree, unwanted);
    let shown = features.first().unwrap_or(&"its default features");
    ensure!(found.is_empty(), "with {shown} the program still pulls in {}", found.join(", "));
    eprintln!("with {shown}: none of {} in {} packages", unwanted.join(", "), tree.lines().count());
    Ok(())
}

fn found<'t>(tree: &'t str, unwanted: &[&str]) -> Vec<&'t str> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| unwanted.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_found_by_its_name() {
        assert_eq!(found("sendoff v0.1.0\nredis v1.8.1\nredisx v1.0.0\n", &CLIENTS), ["redis"]);
        assert!(found("", &CLIENTS).is_empty());
    }
}
