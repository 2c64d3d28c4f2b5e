//! Mosquitto as a program: a test of a sink starts a broker of its own, kills it and starts it again.

use anyhow::Result;

use crate::account::Account;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `mosquitto`, at `SENDOFF_TEST_MOSQUITTO`.
pub(crate) struct Mosquitto;

const PROGRAM: Need = Need::Program("mosquitto");

impl Server for Mosquitto {
    fn name(&self) -> &'static str {
        "mosquitto"
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::new(PROGRAM, "mosquitto")]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let program = PROGRAM.locate()?;
        // It ends with a failure after it has told its version.
        let told = Account::Ourselves.command(&program, site.dir).arg("-h").output()?;
        Ok(Running {
            name: self.name(),
            version: parse_version(&String::from_utf8_lossy(&told.stdout)),
            nodes: Vec::new(),
            env: vec![("SENDOFF_TEST_MOSQUITTO", program.display().to_string())],
        })
    }
}

/// `mosquitto version 2.0.11`
fn parse_version(output: &str) -> String {
    output.split_whitespace().skip_while(|word| *word != "version").nth(1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_behind_the_word() {
        assert_eq!(parse_version("mosquitto version 2.0.11\n\nmosquitto is an MQTT broker"), "2.0.11");
        assert_eq!(parse_version(""), "");
    }
}
