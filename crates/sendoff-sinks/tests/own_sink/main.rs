//! A sink by somebody else, with a broker of its own, and the suite over both. `docs/writing-a-sink.md` is about it.

#![allow(clippy::unwrap_used)]

mod broker;
mod sink;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use sendoff::testkit::sink_suite;

use self::broker::Broker;

fn main() -> ExitCode {
    let trials = sink_suite::<Broker>().into_iter().map(|case| {
        Trial::test(case.name, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(async { (case.run)(Arc::new(Broker::start().await)).await });
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
