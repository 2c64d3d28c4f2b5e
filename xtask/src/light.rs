//! What a small build must not pull in.

use anyhow::{Result, ensure};

use crate::{cargo, command};

/// Clients of brokers: each comes with the feature of its sink, and with nothing else.
const CLIENTS: [&str; 8] =
    ["redis", "async-nats", "lapin", "rdkafka", "rumqttc", "aws-sdk-sqs", "aws-sdk-sns", "reqwest"];

/// Nothing of the kind in the program without its features.
pub(crate) fn run() -> Result<()> {
    let args = ["tree", "-p", "sendoff-cli", "--no-default-features", "-e", "normal", "--prefix", "none"];
    let tree = command::capture(&mut cargo::cargo(args))?;
    let heavy = found(&tree);
    ensure!(heavy.is_empty(), "without its features the program still pulls in {}", heavy.join(", "));
    eprintln!("no broker's client in {} packages", tree.lines().count());
    Ok(())
}

fn found(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| CLIENTS.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_found_by_its_name() {
        assert_eq!(found("sendoff v0.1.0\nredis v1.8.1\nredisx v1.0.0\n"), ["redis"]);
        assert!(found("").is_empty());
    }
}
