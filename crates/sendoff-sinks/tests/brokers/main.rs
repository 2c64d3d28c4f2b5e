//! Every sink against its real broker: the suite of the test kit, each case with a broker process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;
mod nats;
mod redis;

use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use sendoff::testkit::{SinkHarness, sink_suite};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(4);
    let mut trials = Vec::new();
    suite(&mut trials, "redis", redis::is_missing(), || redis::Redis::start(None));
    suite(&mut trials, "redis_dedupe", redis::is_missing(), || redis::Redis::start(Some(redis::WINDOW)));
    trials.extend(redis::trials());
    suite(&mut trials, "nats", nats::is_missing(), nats::Nats::start);
    trials.extend(nats::trials());
    let missing = [("redis", redis::is_missing()), ("nats", nats::is_missing())];
    for (name, _) in missing.iter().filter(|(_, is_missing)| *is_missing) {
        let _ = writeln!(std::io::stderr(), "skipped, not there: {name}; `cargo xtask test` installs it");
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn suite<H, Open, Opening>(trials: &mut Vec<Trial>, name: &str, is_missing: bool, open: Open)
where
    H: SinkHarness,
    Open: Fn() -> Opening + Clone + Send + 'static,
    Opening: Future<Output = H> + Send,
{
    for case in sink_suite::<H>() {
        let open = open.clone();
        let name = format!("{name}::{}", case.name);
        let run = move || async move { (case.run)(Arc::new(open().await)).await };
        trials.push(trial(name, is_missing, run));
    }
}

/// One test with a runtime of its own; ignored if its broker is neither there nor required.
fn trial<Run, Running>(name: String, is_missing: bool, run: Run) -> Trial
where
    Run: FnOnce() -> Running + Send + 'static,
    Running: Future<Output = ()> + Send,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(run());
        Ok(())
    })
    .with_ignored_flag(is_missing)
}
