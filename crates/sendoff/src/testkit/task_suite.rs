//! Everything that [`tasks::Store`](crate::tasks::Store) and its [`Inspect`](crate::tasks::Inspect) promise, as a list of cases.

use super::Case;
use super::task_harness::TaskHarness;
use super::tasks::{check, claim, create, inspect, limits, order, settle, workers};

macro_rules! cases {
    ($($module:ident::$name:ident,)*) => {
        vec![$(Case { name: stringify!($name), run: |harness| Box::pin($module::$name(harness)) },)*]
    };
}

/// The whole suite for stores of tasks. Every case is a promise, and gets a harness of its own.
pub fn task_suite<H: TaskHarness>() -> Vec<Case<H>> {
    cases![
        create::a_task_is_claimed_once_it_is_marked_ready,
        create::what_is_rolled_back_was_never_there,
        create::a_unique_key_has_one_live_task,
        create::a_task_beyond_the_limits_is_refused,
        claim::a_claim_reads_the_entries_and_nothing_else,
        claim::the_entry_goes_with_the_claim,
        claim::a_claim_steps_over_what_is_locked,
        claim::a_claim_is_told,
        claim::claimed_tasks_are_running,
        claim::concurrent_claims_take_nothing_twice,
        claim::a_claim_takes_its_kinds_and_no_more_than_its_limit,
        order::higher_priority_goes_first_then_what_was_due_first,
        order::a_task_for_later_is_not_claimed_before_its_time,
        order::a_retry_is_not_claimable_before_its_time,
        order::a_task_that_becomes_due_takes_its_turn,
        settle::a_settlement_needs_the_claim_that_stands,
        settle::many_are_completed_at_once_and_each_is_answered,
        settle::of_two_claims_of_one_task_the_one_that_stands_is_completed,
        settle::a_failure_is_final,
        settle::attempts_run_out,
        settle::a_task_is_cancelled_wherever_it_stands,
        settle::an_attempt_has_a_time_limit_that_can_be_moved,
        settle::progress_is_seen_and_only_its_owners,
        workers::tasks_of_a_lost_worker_are_returned,
        workers::tasks_of_an_unknown_worker_are_returned,
        workers::a_worker_that_is_alive_keeps_its_tasks,
        workers::a_lost_worker_stays_lost,
        workers::a_worker_that_leaves_returns_what_it_has,
        workers::a_task_that_kills_its_workers_fails,
        workers::two_of_one_name_are_two,
        limits::a_limit_is_kept_by_all_together,
        limits::a_limit_holds_up_no_other_kind,
        check::an_entry_without_a_task_is_deleted,
        check::an_entry_of_a_task_that_ended_is_deleted,
        check::a_ready_task_without_an_entry_is_entered,
        check::what_is_whole_is_left_alone,
        check::entries_that_nobody_takes_are_seen,
        inspect::tasks_are_listed_page_by_page,
        inspect::an_operator_tries_a_task_again,
        inspect::a_task_whose_key_is_taken_is_not_tried_again,
        inspect::what_ended_long_ago_is_purged,
    ]
}
