//! Tasks beyond the suite: runners, processes that are killed and frozen, migrations, plans, and events that reach the outbox.

pub(crate) mod journal;
mod migrations;
mod plans;
mod publish;
mod runner;
pub(crate) mod torture;
pub(crate) mod worker;

use libtest_mimic::Trial;
use sendoff::testkit::TaskHarness;

use self::journal::Journal;
use crate::harness::outbox::Path;
use crate::harness::tasks::{memory, mysql, postgres, sqlite};
use crate::servers::Server;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! processes {
        ($store:expr, $server:expr, $open:expr) => {
            let name = |case: &str| format!("{}::tasks::{case}", $store);
            trials.push(trial(
                name("eight_processes_are_killed_and_nothing_is_lost"),
                $server,
                move || async move {
                    let harness = $open.await;
                    let (url, names) = (harness.url.clone(), harness.names.clone());
                    Journal::open(&url, &names).await.create().await;
                    let tasks = harness.submit_all((0..torture::race_tasks()).map(|_| torture::work())).await;
                    torture::race_with_kills($store, &*harness.inspect, &url, &names, &tasks).await;
                },
            ));
            trials.push(trial(name("a_long_handler_keeps_its_task"), $server, move || async move {
                let harness = $open.await;
                let (url, names) = (harness.url.clone(), harness.names.clone());
                Journal::open(&url, &names).await.create().await;
                let tasks = harness.submit_all([torture::work()]).await;
                torture::long_handler(&*harness.inspect, &url, &names, tasks[0]).await;
            }));
            trials.push(trial(name("a_frozen_runner_completes_nothing"), $server, move || async move {
                let harness = $open.await;
                let (url, names) = (harness.url.clone(), harness.names.clone());
                Journal::open(&url, &names).await.create().await;
                let tasks = harness.submit_all([torture::work()]).await;
                torture::frozen(&*harness.inspect, &url, &names, tasks[0]).await;
            }));
        };
    }
    processes!("sqlite", None, sqlite());
    processes!("mariadb", Some(Server::Mariadb), mysql(Server::Mariadb));
    processes!("postgres15", Some(Server::Postgres15), postgres(Server::Postgres15, Path::Fast));
    processes!("postgres18", Some(Server::Postgres18), postgres(Server::Postgres18, Path::Fast));
    runners(&mut trials, "memory", None, memory);
    runners(&mut trials, "sqlite", None, sqlite);
    runners(&mut trials, "mariadb", Some(Server::Mariadb), || mysql(Server::Mariadb));
    runners(&mut trials, "postgres15", Some(Server::Postgres15), || postgres(Server::Postgres15, Path::Fast));
    trials.extend(migrations::trials());
    trials.extend(plans::trials());
    trials.extend(publish::trials());
    trials
}

/// Every case of a runner, each with tasks of its own.
fn runners<H, Open, Opening>(trials: &mut Vec<Trial>, store: &str, server: Option<Server>, open: Open)
where
    H: TaskHarness,
    Open: Fn() -> Opening + Clone + Send + 'static,
    Opening: Future<Output = H> + Send,
{
    for (name, run) in runner::cases::<H>() {
        let open = open.clone();
        let name = format!("{store}::tasks::{name}");
        trials.push(trial(name, server, move || async move { run(std::sync::Arc::new(open().await)).await }));
    }
}
