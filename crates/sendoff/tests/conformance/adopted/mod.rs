//! Adopted tables: each kind of host on each database.

mod bundles;
mod cases;
mod framework;
pub(crate) mod host;
mod mappings;
mod operator;
mod plans;
mod races;
mod side;

use libtest_mimic::Trial;

use self::host::{Host, Kind, Place, Pool};
use crate::servers::Server;
use crate::trial;

pub(crate) const PLACES: [Place; 4] = [
    Place::Sqlite,
    Place::Server(Server::Postgres15),
    Place::Server(Server::Postgres18),
    Place::Server(Server::Mariadb),
];

macro_rules! trials {
    ($trials:ident, $kinds:expr, $($module:ident::$case:ident,)*) => {
        $(for kind in $kinds {
            for place in PLACES {
                let name = format!("{}::adopted::{}::{}", place.name(), kind.name(), stringify!($case));
                let run = move || async move { $module::$case(Host::new(kind, place).await).await };
                $trials.push(trial(name, place.server(), run));
            }
        })*
    };
}

/// Rows that many claim at once in a PostgreSQL database that `open` names: `name` comes before each case.
pub(crate) fn contended<Opening>(
    name: &str,
    server: Server,
    open: impl Fn() -> Opening + Copy + Send + 'static,
) -> Vec<Trial>
where
    Opening: Future<Output = String> + Send,
{
    let mut trials = Vec::new();
    macro_rules! cases {
        ($kinds:expr, $($module:ident::$case:ident,)*) => {
            $(for kind in $kinds {
                let name = format!("{name}::adopted::{}::{}", kind.name(), stringify!($case));
                let run = move || async move {
                    let url = open().await;
                    let pool = Pool::Postgres(sqlx::PgPool::connect(&url).await.unwrap());
                    $module::$case(Host::over(kind, pool, url).await).await;
                };
                trials.push(trial(name, Some(server), run));
            })*
        };
    }
    cases!(
        Kind::OWN,
        cases::every_row_is_delivered_and_marked,
        cases::two_workers_share_and_take_nothing_twice,
        cases::a_key_is_handed_out_in_order_where_that_is_wanted,
    );
    cases!(
        Kind::BESIDE,
        cases::two_workers_share_and_take_nothing_twice,
        cases::a_key_is_handed_out_in_order_where_that_is_wanted,
        side::each_outcome_is_written,
        side::a_late_commit_is_delivered,
    );
    trials
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    trials!(
        trials,
        Kind::OWN,
        cases::every_row_is_delivered_and_marked,
        cases::an_active_lease_is_never_taken_and_an_expired_one_is,
        cases::a_lease_is_kept_for_as_long_as_its_worker_lives,
        cases::a_lost_lease_settles_nothing,
        cases::each_outcome_is_written,
        cases::attempts_run_out,
        cases::a_row_that_kills_its_workers_is_tried_alone_and_given_up,
        cases::what_cannot_be_read_is_given_up,
        cases::a_stop_gives_back_what_is_in_hand,
        cases::a_row_that_the_host_has_locked_is_waited_for,
        cases::two_workers_share_and_take_nothing_twice,
        cases::a_key_is_handed_out_in_order_where_that_is_wanted,
        cases::every_state_is_listed,
        mappings::a_missing_column_is_named_with_the_statement_that_adds_it,
        mappings::a_column_of_the_wrong_type_is_named_with_the_statement_that_changes_it,
        mappings::an_id_that_is_not_unique_is_refused_with_the_index_that_makes_it_so,
        mappings::a_missing_index_is_named_with_the_statement_that_makes_it,
        mappings::what_cannot_work_is_refused,
        plans::an_index_serves_each_claim_without_a_sort,
    );
    trials!(
        trials,
        [Kind::Framework],
        framework::claim_batch_takes_what_is_eligible_for_its_broker,
        framework::each_find_reads_its_rows_and_changes_none,
    );
    trials!(
        trials,
        Kind::BESIDE,
        cases::an_active_lease_is_never_taken_and_an_expired_one_is,
        cases::a_lease_is_kept_for_as_long_as_its_worker_lives,
        cases::a_stop_gives_back_what_is_in_hand,
        cases::two_workers_share_and_take_nothing_twice,
        cases::a_key_is_handed_out_in_order_where_that_is_wanted,
        side::every_row_is_delivered_and_what_is_beside_is_bounded,
        side::a_lost_lease_settles_nothing,
        side::each_outcome_is_written,
        side::attempts_run_out,
        side::a_row_that_the_host_takes_back_is_forgotten,
        side::an_index_serves_each_claim_without_a_sort,
        side::a_late_commit_is_delivered,
    );
    for kinds in [Kind::OWN, Kind::BESIDE] {
        trials!(
            trials,
            kinds,
            races::four_processes_take_nothing_twice_and_lose_nothing,
            races::rows_of_a_killed_process_come_back_after_its_lease,
            races::a_frozen_process_settles_nothing,
            operator::each_row_stands_in_one_state,
            operator::a_shadow_claims_nothing,
        );
    }
    trials.extend(bundles::trials());
    trials.extend(side::trials());
    trials
}
