//! RabbitMQ as a program: a test of a sink starts a node of its own, kills it and starts it again.

use anyhow::{Context, Result};

use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `rabbitmq`, at `SENDOFF_TEST_RABBITMQ`.
pub(crate) struct RabbitMq;

/// Not the one on the path, which changes to a user of its own first.
const PROGRAM: Need = Need::File("/usr/lib/rabbitmq/bin/rabbitmq-server");
const READER: Need = Need::File("/usr/lib/python3/dist-packages/pika/__init__.py");

impl Server for RabbitMq {
    fn name(&self) -> &'static str {
        "rabbitmq"
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![Requirement::new(PROGRAM, "rabbitmq-server"), Requirement::new(READER, "python3-pika")]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let program = PROGRAM.locate()?;
        let control = program.parent().context("a directory of programs")?.join("rabbitmqctl");
        let version = command::capture(
            Account::Ourselves.command(&control, site.dir).arg("version").env("HOME", site.dir),
        )?;
        Ok(Running {
            name: self.name(),
            version: version.trim().to_owned(),
            nodes: Vec::new(),
            env: vec![("SENDOFF_TEST_RABBITMQ", program.display().to_string())],
        })
    }
}
