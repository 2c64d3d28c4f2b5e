//! An operator asks and mends: every store answers as the one in memory does.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod order;
mod random;
mod scenario;

use self::bench::Bench;

/// A server's address. None: it is not there, and need not be.
fn server(name: &str, variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    let required = std::env::var("SENDOFF_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word == name || word == "all");
    assert!(url.is_some() || !is_required, "{name} is required, but {variable} is not set");
    url
}

async fn postgres(name: &str, variable: &str) -> Option<Bench> {
    Some(Bench::postgres(&server(name, variable)?).await)
}

async fn mariadb() -> Option<Bench> {
    Some(Bench::mysql(&server("mariadb", "SENDOFF_TEST_MARIADB")?).await)
}

macro_rules! on_every_store {
    ($compare:path, $postgres15:ident, $postgres18:ident, $mariadb:ident, $sqlite:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $sqlite() {
            $compare(Bench::sqlite().await).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $postgres15() {
            if let Some(bench) = postgres("postgres15", "SENDOFF_TEST_POSTGRES15").await {
                $compare(bench).await;
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $postgres18() {
            if let Some(bench) = postgres("postgres18", "SENDOFF_TEST_POSTGRES18").await {
                $compare(bench).await;
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $mariadb() {
            if let Some(bench) = mariadb().await {
                $compare(bench).await;
            }
        }
    };
}

on_every_store!(
    scenario::compare,
    an_operators_day_on_postgres15,
    an_operators_day_on_postgres18,
    an_operators_day_on_mariadb,
    an_operators_day_on_sqlite
);
on_every_store!(
    random::compare,
    any_operations_on_postgres15,
    any_operations_on_postgres18,
    any_operations_on_mariadb,
    any_operations_on_sqlite
);
on_every_store!(
    order::compare,
    redriven_keys_stay_in_order_on_postgres15,
    redriven_keys_stay_in_order_on_postgres18,
    redriven_keys_stay_in_order_on_mariadb,
    redriven_keys_stay_in_order_on_sqlite
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redriven_keys_stay_in_order_in_memory() {
    order::compare(Bench::memory()).await;
}
