//! Every store against the suite of `sendoff::testkit`, on its fast path and on the floor, and what
//! only one database can be asked.
//!
//! Memory and SQLite need nothing. A server is tested when its variable names one; `cargo xtask test`
//! starts them all and requires them. What has no server is listed as ignored, with its name.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod adopted;
mod claimer;
mod examples;
mod galera;
mod harness;
mod inbox;
mod isolation;
mod jobs;
mod mariadb;
mod outbox_crash;
mod outbox_faults;
mod outbox_migrations;
mod outbox_poison;
mod outbox_postgres;
mod outbox_torture;
mod outbox_unreadable;
mod outbox_worker;
mod pgbouncer;
mod postgres;
mod processes;
mod removal;
mod retention;
mod servers;
mod sqlite;
mod tasks;
mod two_methods;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use sendoff::testkit::{ClaimHarness, Floor, StoreHarness, TaskHarness, claim_suite};

use self::harness::outbox::Path;
use self::servers::Server;

fn main() -> ExitCode {
    // The races between processes start this program again as one of the claimers.
    if claimer::is_wanted() {
        return claimer::run();
    }
    if outbox_worker::is_wanted() {
        return outbox_worker::run();
    }
    if inbox::consumer::is_wanted() {
        return inbox::consumer::run();
    }
    if tasks::worker::is_wanted() {
        return tasks::worker::run();
    }
    let mut arguments = Arguments::from_args();
    // Most of a test's time is waiting for a server or a lease, and for a lease alone where there is no server.
    arguments.test_threads.get_or_insert(if servers::is_full_run() { 4 } else { 12 });
    servers::report_missing();
    let mut trials = suites();
    for more in [
        adopted::trials(),
        sqlite::trials(),
        postgres::trials(),
        pgbouncer::trials(),
        mariadb::trials(),
        galera::trials(),
        processes::trials(),
        removal::trials(),
        retention::trials(),
        outbox_faults::trials(),
        outbox_migrations::trials(),
        outbox_poison::trials(),
        outbox_unreadable::trials(),
        outbox_postgres::trials(),
        outbox_crash::trials(),
        examples::trials(),
        inbox::trials(),
        isolation::trials(),
        tasks::trials(),
    ] {
        trials.extend(more);
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Every suite on every store.
fn suites() -> Vec<Trial> {
    let mut trials = Vec::new();
    suite(&mut trials, "memory", None, || async { harness::memory::Memory::new() });
    store_suite(&mut trials, "memory", None, harness::memory_outbox::open);
    for (word, path) in [("fast", Path::Fast), ("floor", Path::Floor)] {
        let name = |store: &str| format!("{store}::{word}");
        store_suite(&mut trials, &name("sqlite"), None, move || harness::outbox::sqlite(path));
        for server in [Server::Postgres15, Server::Postgres18] {
            let open = move || harness::outbox::postgres(server, path);
            store_suite(&mut trials, &name(server.name()), Some(server), open);
        }
        let open = move || harness::outbox::mysql(Server::Mariadb, path);
        store_suite(&mut trials, &name("mariadb"), Some(Server::Mariadb), open);
    }
    task_suite(&mut trials, "memory", None, harness::tasks::memory);
    task_suite(&mut trials, "sqlite", None, harness::tasks::sqlite);
    task_suite(&mut trials, "mariadb", Some(Server::Mariadb), || harness::tasks::mysql(Server::Mariadb));
    for (word, path) in [("fast", Path::Fast), ("floor", Path::Floor)] {
        for server in [Server::Postgres15, Server::Postgres18] {
            let open = move || harness::tasks::postgres(server, path);
            task_suite(&mut trials, &format!("{}::{word}", server.name()), Some(server), open);
        }
    }
    let open = move || harness::outbox::pgbouncer(Path::Fast);
    store_suite(&mut trials, "pgbouncer", Some(Server::Pgbouncer), open);
    suite(&mut trials, "sqlite", None, harness::sqlite::open);
    for server in [Server::Postgres15, Server::Postgres18] {
        suite(&mut trials, server.name(), Some(server), move || harness::postgres::open(server));
    }
    suite(&mut trials, "pgbouncer", Some(Server::Pgbouncer), harness::postgres::open_pooled);
    suite(&mut trials, "mariadb", Some(Server::Mariadb), || harness::mysql::open(Server::Mariadb));
    // Its fast path is the floor.
    trials.extend(claim_suite().into_iter().map(|case| {
        let run = move || async move { (case.run)(Arc::new(two_methods::TwoMethods::default())).await };
        trial(format!("two_methods::{}", case.name), None, run)
    }));
    trials
}

/// The whole suite for one store, twice.
fn suite<H, Open, Opening>(trials: &mut Vec<Trial>, store: &str, server: Option<Server>, open: Open)
where
    H: ClaimHarness,
    Open: Fn() -> Opening + Clone + Send + 'static,
    Opening: Future<Output = H> + Send,
{
    for case in claim_suite::<H>() {
        let open = open.clone();
        let name = format!("{store}::fast::{}", case.name);
        trials.push(trial(name, server, move || async move { (case.run)(Arc::new(open().await)).await }));
    }
    for case in claim_suite::<Floor<H>>() {
        let open = open.clone();
        let name = format!("{store}::floor::{}", case.name);
        trials.push(trial(
            name,
            server,
            move || async move { (case.run)(Arc::new(Floor(open().await))).await },
        ));
    }
}

/// The outbox suite for one store, each case on an outbox of its own.
fn store_suite<H, Open, Opening>(trials: &mut Vec<Trial>, store: &str, server: Option<Server>, open: Open)
where
    H: StoreHarness,
    Open: Fn() -> Opening + Clone + Send + 'static,
    Opening: Future<Output = H> + Send,
{
    for case in sendoff::testkit::store_suite::<H>() {
        let open = open.clone();
        let name = format!("{store}::outbox::{}", case.name);
        trials.push(trial(name, server, move || async move { (case.run)(Arc::new(open().await)).await }));
    }
}

/// The task suite for one store, each case on tables of its own.
fn task_suite<H, Open, Opening>(trials: &mut Vec<Trial>, store: &str, server: Option<Server>, open: Open)
where
    H: TaskHarness,
    Open: Fn() -> Opening + Clone + Send + 'static,
    Opening: Future<Output = H> + Send,
{
    for case in sendoff::testkit::task_suite::<H>() {
        let open = open.clone();
        let name = format!("{store}::tasks::{}", case.name);
        trials.push(trial(name, server, move || async move { (case.run)(Arc::new(open().await)).await }));
    }
}

/// One test with a runtime of its own; ignored if its server is neither there nor required.
fn trial<Run, Running>(name: String, server: Option<Server>, run: Run) -> Trial
where
    Run: FnOnce() -> Running + Send + 'static,
    Running: Future<Output = ()> + Send,
{
    let ignored = server.is_some_and(|server| server.is_missing() && !server.is_required());
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
        runtime.block_on(run());
        Ok(())
    })
    .with_ignored_flag(ignored)
}
