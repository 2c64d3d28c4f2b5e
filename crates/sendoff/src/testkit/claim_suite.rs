//! The one list of what a claim promises.

use super::claims::{
    keys, leases, limits, names, order, predicates, property, races, removal_races, removals, values,
};
use super::{Case, ClaimHarness};

/// Every case, for one harness. Run them all, and all again over [`Floor`](super::Floor).
pub fn claim_suite<H: ClaimHarness>() -> Vec<Case<H>> {
    macro_rules! cases {
        ($($module:ident::$name:ident,)*) => {
            vec![$(Case { name: stringify!($name), run: |harness| Box::pin($module::$name(harness)) },)*]
        };
    }
    cases![
        limits::a_claim_takes_no_more_than_its_limit,
        limits::a_limit_of_zero_takes_nothing,
        limits::a_large_claim_takes_every_row_it_was_asked_for,
        limits::nothing_eligible_is_an_empty_answer,
        limits::a_claim_is_visible_to_others_when_it_returns,
        limits::rows_come_back_as_the_claim_left_them,
        order::rows_come_back_in_order,
        order::ties_come_in_any_order_but_together,
        order::descending_and_second_columns_count,
        order::null_goes_where_the_database_puts_it,
        order::null_goes_where_the_spec_puts_it,
        order::the_order_is_that_of_the_rows_before_the_claim,
        keys::text_keys,
        keys::uuid_keys,
        keys::composite_keys,
        keys::timestamp_keys,
        leases::an_active_lease_is_never_taken,
        leases::an_expired_lease_is_taken,
        leases::a_lease_set_by_the_database_clock_lasts_as_long_as_it_says,
        values::every_kind_of_value_can_be_set_and_compared,
        values::null_can_be_set,
        values::adding_counts_null_as_zero,
        predicates::each_comparison_takes_its_rows,
        predicates::unknown_is_not_true,
        predicates::conditions_nest,
        predicates::the_head_of_a_group_goes_first,
        predicates::heads_are_raced_for,
        names::names_that_need_quoting_are_quoted,
        names::unknown_columns_are_refused_by_name,
        names::values_of_the_wrong_kind_are_refused,
        names::the_key_cannot_be_set,
        names::a_spec_for_another_table_is_refused,
        races::sixteen_claimers_take_batches_of_7,
        races::sixteen_claimers_take_batches_of_100,
        races::two_claimers_of_everything_share_nothing,
        removals::removed_rows_come_in_order_and_no_more_than_the_limit,
        removals::removed_rows_come_back_as_they_were_and_are_gone,
        removals::a_removal_limited_to_zero_takes_nothing,
        removals::a_large_removal_takes_every_row_it_was_asked_for,
        removals::removals_find_rows_by_any_key,
        removals::removals_quote_names_and_bind_values,
        removals::removals_go_by_the_database_clock,
        removals::the_head_of_a_group_is_removed_first,
        removals::a_row_that_others_took_is_not_removed,
        removals::what_is_wrong_with_a_removal_is_refused,
        removal_races::sixteen_claimers_remove_batches_of_7,
        removal_races::sixteen_claimers_remove_batches_of_100,
        removal_races::two_removals_of_everything_share_nothing,
        removal_races::removals_beside_marks_share_nothing,
        property::random_claims_agree_with_the_memory_store,
    ]
}
