//! libfaketime: no server, but a library that tests preload to set a process's clock hours off.

use anyhow::{Result, ensure};

use crate::account::Account;
use crate::command;
use crate::requirement::{Need, Requirement};
use crate::server::{Running, Server, Site};

/// `faketime`, at `SENDOFF_TEST_FAKETIME`.
pub(crate) struct FakeTime;

const LIBRARY: Need = Need::File("/usr/lib/*/faketime/libfaketime.so.1");
const DATE: Need = Need::Program("date");

impl Server for FakeTime {
    fn name(&self) -> &'static str {
        "faketime"
    }

    fn requirements(&self) -> Vec<Requirement> {
        // `faketime` depends on `libfaketime` and pulls it in.
        vec![Requirement::new(LIBRARY, "faketime"), Requirement::new(DATE, "coreutils")]
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let library = LIBRARY.locate()?;
        let year = command::capture(
            Account::Ourselves
                .command(&DATE.locate()?, site.dir)
                .env("LD_PRELOAD", &library)
                .env("FAKETIME", "@2001-02-03 04:05:06")
                .arg("+%Y"),
        )?;
        ensure!(year.trim() == "2001", "{} does not change the clock: `date` says {year}", library.display());
        Ok(Running {
            name: self.name(),
            version: "-".to_owned(),
            nodes: Vec::new(),
            env: vec![("SENDOFF_TEST_FAKETIME", library.display().to_string())],
        })
    }
}
