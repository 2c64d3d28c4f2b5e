//! Kafka, as far as it is to be had: the client library brings a cluster for tests, and kcat reads what is in it.

use anyhow::Result;

use crate::account::Account;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `kafka`: the independent reader at `SENDOFF_TEST_KCAT`.
pub(crate) struct Kafka;

const READER: Need = Need::Program("kcat");
/// librdkafka is compiled with the sink, by make, and speaks TLS by OpenSSL.
const MAKE: Need = Need::Program("make");
const OPENSSL: Need = Need::File("/usr/include/openssl/ssl.h");
const PKG_CONFIG: Need = Need::Program("pkg-config");

impl Server for Kafka {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            Requirement::new(READER, "kcat"),
            Requirement::new(MAKE, "make"),
            Requirement::new(OPENSSL, "libssl-dev"),
            Requirement::new(PKG_CONFIG, "pkgconf"),
        ]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let reader = READER.locate()?;
        let told = Account::Ourselves.command(&reader, site.dir).arg("-V").output()?;
        Ok(Running {
            name: self.name(),
            version: parse_version(&String::from_utf8_lossy(&told.stdout)),
            nodes: Vec::new(),
            env: vec![("SENDOFF_TEST_KCAT", reader.display().to_string())],
        })
    }
}

/// `Version 1.7.1 (JSON, Avro, …)`
fn parse_version(output: &str) -> String {
    output.split_whitespace().skip_while(|word| *word != "Version").nth(1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_behind_the_word() {
        let output = "kcat - Apache Kafka producer and consumer tool\nVersion 1.7.1 (JSON, Avro)";
        assert_eq!(parse_version(output), "1.7.1");
        assert_eq!(parse_version(""), "");
    }
}
