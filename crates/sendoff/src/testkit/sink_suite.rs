//! The one list of what a sink promises.

use super::sinks::{arrive, fail};
use super::{Case, SinkHarness};

macro_rules! cases {
    ($($module:ident::$name:ident,)*) => {
        vec![$(Case { name: stringify!($name), run: |harness| Box::pin($module::$name(harness)) },)*]
    };
}

/// Every case, for one harness. Each wants a harness, and so a broker, of its own: cases kill it, and count what has come.
pub fn sink_suite<H: SinkHarness>() -> Vec<Case<H>> {
    cases![
        arrive::everything_about_an_event_arrives,
        arrive::ten_thousand_events_arrive_in_the_order_of_their_keys,
        arrive::nothing_is_sent_for_nothing,
        arrive::what_is_sent_again_is_told_by_its_id,
        fail::an_event_that_cannot_be_sent_is_rejected_and_the_others_are_delivered,
        fail::a_broker_that_is_gone_is_down_and_comes_back,
        fail::a_broker_that_does_not_answer_is_down_and_comes_back,
        fail::a_broker_that_is_restarted_is_used_again,
        fail::a_line_that_is_cut_loses_nothing,
        fail::a_black_hole_is_down_and_comes_back,
        fail::a_slow_line_is_no_failure,
        fail::a_call_that_is_dropped_leaves_the_sink_usable,
    ]
}
