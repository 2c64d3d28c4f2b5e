//! The one list of what an outbox promises.

use super::outboxes::{
    apart, cancel, crash, dead, delayed, enqueue, exclusive, explain, fence, inspect, lanes, order, overlap,
    parked, race, ranges, redrive, settle, share, texts, walk,
};
use super::{Case, StoreHarness};

macro_rules! cases {
    ($($module:ident::$name:ident,)*) => {
        vec![$(Case { name: stringify!($name), run: |harness| Box::pin($module::$name(harness)) },)*]
    };
}

/// Every case, for one harness. Each wants a harness of its own: cases count events, lanes and workers.
pub fn store_suite<H: StoreHarness>() -> Vec<Case<H>> {
    [writing(), owning(), delivering(), waiting(), operating()].into_iter().flatten().collect()
}

/// What the host writes, and who may read it.
fn writing<H: StoreHarness>() -> Vec<Case<H>> {
    cases![
        enqueue::committed_events_are_read_and_rolled_back_ones_never,
        enqueue::an_open_transaction_shows_nothing,
        enqueue::positions_rise_in_the_order_of_writing,
        enqueue::events_of_a_key_share_a_lane,
        enqueue::targets_stay_apart,
        enqueue::an_event_id_is_kept_or_made,
        enqueue::a_duplicate_id_fails_the_host_and_leaves_nothing,
        enqueue::every_field_survives,
        enqueue::what_is_beyond_a_limit_is_refused_and_nothing_written,
        enqueue::what_is_just_within_the_limits_is_taken,
        texts::hostile_texts_survive,
        texts::targets_with_hostile_names_work,
        texts::keys_that_look_alike_stay_apart,
    ]
}

/// Who has a lane, and what nobody else may do meanwhile.
fn owning<H: StoreHarness>() -> Vec<Case<H>> {
    cases![
        lanes::lanes_are_taken_up_to_the_number_asked_for,
        lanes::a_live_lease_is_not_taken,
        lanes::an_expired_lease_is_taken_and_counts_a_crash,
        lanes::a_released_lane_is_taken_at_once_and_counts_no_crash,
        lanes::a_hand_over_does_not_forget_crashes,
        lanes::every_lease_has_a_higher_epoch,
        lanes::renewing_keeps_what_is_still_ones_own,
        lanes::an_old_token_renews_gives_and_names_nothing,
        lanes::a_worker_that_takes_its_lane_again_has_a_new_token,
        lanes::lanes_of_different_targets_are_independent,
        lanes::the_census_knows_the_living_in_the_order_of_their_ids,
        lanes::a_named_event_is_handed_to_the_next_owner,
        share::a_lone_worker_has_every_lane_at_once,
        share::two_workers_share_and_one_is_left_with_all,
        share::many_workers_have_equal_shares,
        share::two_workers_of_one_name_share_no_lane,
        share::a_lane_is_handed_over_when_nothing_of_it_is_in_flight,
        share::a_worker_that_lost_its_registration_joins_again,
        share::a_worker_keeps_its_leases_for_as_long_as_it_lives,
        share::a_worker_that_stops_leaves_nothing_behind,
        share::a_stop_waits_for_what_is_in_flight,
        share::what_is_not_settled_within_the_grace_is_delivered_again,
        ranges::workers_of_two_ranges_deliver_their_own_lanes,
        ranges::workers_of_one_range_share_it,
        ranges::workers_without_a_range_have_the_rest_and_what_is_left_behind,
        ranges::a_lane_that_nobody_may_have_is_said_to_be_so,
        ranges::no_lane_is_taken_but_those_that_are_wanted,
        ranges::a_range_is_known_to_the_others_for_as_long_as_its_worker_is,
        ranges::a_worker_that_may_have_no_lane_does_not_start,
        exclusive::one_works_and_the_next_takes_over_when_it_stops,
        exclusive::the_next_takes_over_when_one_is_lost,
        exclusive::of_many_that_start_at_once_one_works,
        exclusive::one_works_in_each_range,
        exclusive::who_loses_what_they_go_by_stops_at_once,
        exclusive::beside_workers_that_share_it_has_its_share,
        fence::a_stale_token_settles_nothing,
        fence::a_stale_token_settles_no_parked_event,
        fence::the_lease_of_a_lost_owner_is_as_stale,
        fence::the_successors_result_stands,
        fence::one_stale_lane_holds_up_no_other,
        fence::a_worker_that_lost_its_lanes_is_told_so,
        fence::the_deadline_lies_within_the_lease,
        fence::nothing_is_handed_out_past_the_deadline,
    ]
}

/// What is handed out, in which order, and what becomes of it.
fn delivering<H: StoreHarness>() -> Vec<Case<H>> {
    cases![
        order::a_key_is_handed_out_in_order_and_no_more_of_it_while_it_is_in_flight,
        order::keys_do_not_wait_for_each_other,
        order::a_long_backlog_of_one_key_does_not_hold_up_its_lane,
        order::events_without_a_key_are_handed_out_in_bulk,
        order::no_more_than_the_window_is_in_flight,
        order::prefetching_hands_nothing_out_twice,
        order::an_event_that_commits_late_is_delivered,
        order::transactions_one_after_the_other_keep_their_order,
        order::a_fetch_reads_what_it_was_asked_for,
        overlap::what_is_settled_during_a_fetch_is_not_handed_out_again,
        overlap::a_key_goes_on_when_its_event_is_delivered,
        overlap::what_is_delivered_and_not_settled_comes_again,
        overlap::a_key_that_fails_during_a_fetch_keeps_its_order,
        overlap::what_is_given_back_during_a_fetch_comes_again,
        overlap::a_lane_lost_during_a_fetch_hands_out_nothing_that_settles,
        overlap::a_settlement_whose_answer_was_lost_can_be_repeated,
        overlap::a_failed_fetch_loses_nothing,
        overlap::a_failed_move_is_made_up_for,
        apart::nothing_is_moved_past_an_event_that_is_given_back_later,
        apart::what_came_with_a_delayed_event_that_fails_keeps_its_order,
        apart::a_diverted_key_takes_along_what_is_given_back_later,
        apart::a_diverted_key_is_followed_one_event_at_a_time,
        apart::many_diverted_keys_are_all_followed,
        apart::a_crash_counts_once_though_the_answer_was_lost,
        apart::a_lane_given_back_is_not_handed_out_from,
        settle::published_events_are_gone,
        settle::published_events_are_kept_as_history_where_wanted,
        settle::each_outcome_is_written_and_counted,
        settle::what_was_given_back_comes_again_at_once_and_spent_no_attempt,
        settle::settling_again_changes_nothing,
        settle::rows_that_are_gone_are_named_as_missing,
        settle::an_event_between_two_published_ones_survives_them,
        settle::one_settlement_takes_every_kind_of_change,
        settle::a_long_error_is_cut_and_kept,
    ]
}

/// What has to wait, and what has waited long enough.
fn waiting<H: StoreHarness>() -> Vec<Case<H>> {
    cases![
        parked::a_retry_comes_after_its_pause_and_not_before,
        parked::later_events_of_the_key_wait_and_other_keys_go_on,
        parked::hot_events_of_a_parked_key_are_moved_behind_it,
        parked::the_rest_of_a_run_may_be_given_back_apart,
        parked::a_long_tail_follows_its_head_in_order,
        parked::a_parked_run_that_fails_half_way_keeps_its_order,
        parked::a_fetch_of_parked_events_gives_heads_that_are_due_and_what_is_behind,
        parked::an_event_behind_nothing_is_due,
        parked::the_next_of_a_key_is_due_when_its_head_goes,
        parked::how_a_key_stands_is_told_with_its_events,
        parked::many_parked_keys_all_come_back,
        delayed::a_delayed_event_comes_when_it_is_time_and_its_key_does_not_wait,
        delayed::an_event_for_a_time_that_has_passed_is_due,
        delayed::a_delayed_event_is_not_handed_out_before_its_time,
        delayed::a_delayed_event_of_a_parked_key_waits_its_turn,
        delayed::a_delayed_event_closes_its_key_to_nobody,
        delayed::a_delayed_event_before_a_parked_one_is_delivered,
        delayed::a_delayed_event_that_fails_holds_its_key,
        dead::skip_buries_the_event_and_its_key_goes_on,
        dead::block_keeps_the_key_until_an_operator_comes,
        dead::divert_sends_the_rest_of_the_key_after_it,
        dead::divert_takes_what_is_parked_behind,
        dead::an_event_without_a_key_is_given_up_alone,
        dead::attempts_and_cause_are_kept_through_retries,
        dead::keys_given_up_together_stay_apart,
        redrive::one_event_comes_back_before_its_successors,
        redrive::a_key_comes_back_in_sequence,
        redrive::a_redrive_is_bounded_by_its_limit,
        redrive::a_redrive_of_nothing_is_nothing,
        redrive::parked_events_are_due_at_once_when_redriven,
        redrive::a_dead_event_comes_back_before_a_parked_one,
        redrive::a_diverted_key_that_comes_back_in_part_stays_diverted,
        redrive::a_redrive_diverts_no_other_key,
        redrive::what_came_back_can_fail_again,
        redrive::an_event_redriven_under_way_waits_for_its_key,
        redrive::a_blocked_event_redriven_alone_frees_its_key,
        walk::the_next_of_a_key_is_handed_out_and_no_other,
        crash::what_a_lost_worker_had_in_hand_is_delivered_again,
        crash::crashes_are_forgotten_when_the_lane_got_past_them,
        crash::a_lane_that_lost_two_owners_is_worked_carefully,
        crash::the_crash_of_a_careful_owner_names_its_event,
        crash::an_event_that_kills_its_workers_ends_as_a_dead_letter,
        crash::an_event_that_lost_a_worker_is_tried_alone,
        crash::without_crashes_nothing_is_written_down,
        crash::an_event_that_was_settled_is_not_accused,
        crash::a_lane_is_calm_when_what_is_left_waits,
    ]
}

/// What an operator sees and does; and all of it at once.
fn operating<H: StoreHarness>() -> Vec<Case<H>> {
    cases![
        inspect::events_are_counted_and_listed_by_state,
        inspect::the_oldest_event_that_waits_is_known,
        inspect::lists_are_paged_by_position,
        inspect::every_list_is_paged,
        inspect::what_is_listed_says_all_that_is_known,
        inspect::lanes_are_shown_with_their_owners,
        inspect::workers_are_shown_with_their_lanes,
        inspect::parked_keys_are_shown_with_what_waits_behind,
        inspect::a_purge_deletes_what_is_old_in_batches,
        inspect::what_is_dead_can_be_discarded,
        inspect::a_key_goes_on_when_what_diverted_it_is_discarded,
        inspect::a_paused_target_hands_out_nothing,
        explain::there_is_no_such_event,
        explain::it_was_published,
        explain::no_worker_is_there,
        explain::it_is_leased_by_whom_and_until_when,
        explain::its_sink_is_down,
        explain::its_worker_is_lost,
        explain::it_is_not_due,
        explain::it_is_parked_or_behind_one_that_is,
        explain::it_waits_for_an_operator,
        explain::it_is_dead,
        explain::its_target_is_paused,
        cancel::an_event_that_is_not_in_flight_is_taken_out,
        cancel::an_event_that_may_be_in_flight_stays,
        cancel::an_event_behind_one_that_is_due_may_be_in_flight,
        cancel::a_parked_head_is_taken_out_and_its_key_goes_on,
        cancel::an_event_for_later_is_taken_out,
        cancel::the_lane_of_a_lost_worker_keeps_nothing_from_being_taken_out,
        cancel::dead_letters_are_not_cancelled,
        cancel::what_is_behind_a_cancelled_event_is_due,
        race::producers_and_workers_race_and_nothing_is_lost_or_doubled,
    ]
}
