//! The inbox on every database: what a consumer writes in its own transaction, and consumers that are killed.

mod cases;
pub(crate) mod consumer;
mod crashes;
pub(crate) mod host;
mod migrations;

use std::future::Future;

use libtest_mimic::Trial;

use self::host::TestInbox;
use crate::servers::Server;
use crate::trial;

/// Where an inbox is kept.
const DATABASES: [Option<Server>; 4] =
    [None, Some(Server::Postgres15), Some(Server::Postgres18), Some(Server::Mariadb)];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for server in DATABASES {
        let named = |case: &str| format!("{}::inbox::{case}", server.map_or("sqlite", Server::name));
        let migrations =
            trial(named("migrations_run_twice_and_at_once"), server, move || migrations::run(server));
        trials.push(migrations);
        let mut add = |name: &str, case: Case| {
            let run = move || async move { case(TestInbox::open(server).await).await };
            trials.push(trial(named(name), server, run));
        };
        for (name, case) in cases::all() {
            add(name, case);
        }
        add("each_effect_is_there_once_though_consumers_are_killed", |inbox| {
            Box::pin(crashes::with_once(inbox))
        });
        add("without_it_effects_are_doubled", |inbox| Box::pin(crashes::without_once(inbox)));
    }
    trials
}

/// One case, on an inbox of its own.
type Case = fn(TestInbox) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
