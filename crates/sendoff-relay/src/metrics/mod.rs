//! Every metric there is, once: its name, what it means, and how it is written for Prometheus. `docs/metrics.md` is made from this list.

mod histogram;
mod outbox;
mod page;

pub(crate) use histogram::Histogram;
pub use outbox::OutboxView;
pub use page::Page;

/// What a metric's value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, from 0 when the process starts.
    Counter,
    /// It rises and falls.
    Gauge,
    /// How many observations were at most so large.
    Histogram,
}

impl Kind {
    /// The kind in a word, as Prometheus has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What its value does.
    pub kind: Kind,
    /// What its values are told apart by.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($name:ident: $text:literal, $kind:ident, [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $name: Metric =
                Metric { name: $text, kind: Kind::$kind, labels: &[$($label),*], help: $help };
        )*

        /// All of them, in the order in which they are shown.
        pub const ALL: &[&Metric] = &[$(&$name),*];
    };
}

metrics! {
    BUILD_INFO: "sendoff_build_info", Gauge, ["version"], "1, with the version of the program.";
    STORE_UP: "sendoff_store_up", Gauge, ["store"], "Whether the store answered when it was last asked.";
    STORE_ANSWER_AGE: "sendoff_store_answer_age_seconds", Gauge, ["store"], "Since when the store has not answered.";

    EVENTS_CLAIMED: "sendoff_events_claimed_total", Counter, ["store", "target"], "Events claimed, those that were given back included.";
    EVENTS_PUBLISHED: "sendoff_events_published_total", Counter, ["store", "target"], "Events that the sink has acknowledged, and whose delivery is written down.";
    EVENTS_RETRIED: "sendoff_events_retried_total", Counter, ["store", "target"], "Attempts that failed and will be repeated.";
    EVENTS_GIVEN_UP: "sendoff_events_given_up_total", Counter, ["store", "target"], "Events given up: rejected, or out of attempts.";
    EVENTS_RELEASED: "sendoff_events_released_total", Counter, ["store", "target"], "Events given back untried: behind a failure of their key, or while the sink was down.";
    EVENTS_LATE: "sendoff_events_late_total", Counter, ["store", "target"], "Of those, the ones whose lease was about to end.";
    EVENTS_UNANSWERED: "sendoff_events_unanswered_total", Counter, ["store", "target"], "Events that a call of the sink gave no answer for: without the sink's receipt none counts as delivered, and they are sent again.";
    EVENTS_IN_FLIGHT: "sendoff_events_in_flight", Gauge, ["store", "target"], "Events claimed and not settled.";
    PAYLOAD_IN_FLIGHT: "sendoff_payload_in_flight_bytes", Gauge, ["store", "target"], "The bytes of their payloads.";
    PUBLISH_DURATION: "sendoff_publish_duration_seconds", Histogram, ["store", "target"], "How long a call of the sink took, whatever it answered.";
    PUBLISH_TIMEOUTS: "sendoff_publish_timeouts_total", Counter, ["store", "target"], "Calls of the sink that took too long.";
    DELIVERY_AGE: "sendoff_delivery_age_seconds", Histogram, ["store", "target"], "How old events were when the sink had acknowledged them: from the statement that wrote them, by the database's clock, to now, by this machine's.";
    SINK_DOWN: "sendoff_sink_down_total", Counter, ["store", "target"], "Times that the sink was found down.";
    BREAKER_OPEN: "sendoff_breaker_open", Gauge, ["store", "target"], "Whether the sink is taken to be down: nothing is sent, and no attempt is spent.";
    SETTLES_STALE: "sendoff_settles_stale_total", Counter, ["store", "target"], "Outcomes refused, since the lane had gone to another worker. They changed nothing.";
    DELIVERIES_STALE: "sendoff_deliveries_stale_total", Counter, ["store", "target"], "Of those, deliveries: the sink has the event, and another worker delivers it again.";
    SETTLES_MISSING: "sendoff_settles_missing_total", Counter, ["store", "target"], "Outcomes of events that were gone: cancelled, or settled by a try whose reply was lost.";
    STORE_ERRORS: "sendoff_store_errors_total", Counter, ["store", "target"], "Calls of the store that failed and were repeated.";
    RELAY_WORKERS: "sendoff_relay_workers", Gauge, ["store", "target"], "Workers of this process.";
    LANES_OWNED: "sendoff_lanes_owned", Gauge, ["store", "target"], "Lanes that this process has.";
    LANES_TAKEN: "sendoff_lanes_taken_total", Counter, ["store", "target"], "Lanes that this process has leased.";
    LANES_LOST: "sendoff_lanes_lost_total", Counter, ["store", "target"], "Lanes that others took from this process before it gave them back: it was frozen, or cut off.";

    OUTBOX_EVENTS: "sendoff_outbox_events", Gauge, ["store", "target", "state"], "Events of the outbox by their state, each counted up to 100000.";
    OUTBOX_OLDEST_AGE: "sendoff_outbox_oldest_age_seconds", Gauge, ["store", "target"], "How long ago the oldest event that is not delivered was written; 0 if there is none.";
    OUTBOX_PARKED_KEYS: "sendoff_outbox_parked_keys", Gauge, ["store", "target", "reason"], "Keys that wait, by why they do, counted up to 100 in all.";
    OUTBOX_PAUSED: "sendoff_outbox_paused", Gauge, ["store", "target"], "Whether an operator has paused the target.";
    OUTBOX_WORKERS: "sendoff_outbox_workers", Gauge, ["store", "target"], "Workers that are registered and have a lease, wherever they run.";
    OUTBOX_LANES_UNOWNED: "sendoff_outbox_lanes_unowned", Gauge, ["store", "target"], "Lanes that no live worker has.";
    OUTBOX_LANES_CAREFUL: "sendoff_outbox_lanes_careful", Gauge, ["store", "target"], "Lanes whose owners were lost twice in a row or more: worked one event at a time.";
    OUTBOX_READ_AGE: "sendoff_outbox_read_age_seconds", Gauge, ["store"], "How long ago the figures of the outbox were read.";
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn names_are_as_prometheus_wants_them() {
        let names: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name is there twice");
        for metric in ALL {
            let is_word =
                |text: &str| text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
            assert!(metric.name.starts_with("sendoff_") && is_word(metric.name), "{}", metric.name);
            assert!(metric.labels.iter().all(|label| is_word(label)), "{}", metric.name);
            assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
            let is_time = metric.name.contains("_age") || metric.name.contains("_duration");
            assert_eq!(is_time, metric.name.ends_with("_seconds"), "{}: the unit is missing", metric.name);
        }
    }

    /// `docs/metrics.md`.
    fn markdown() -> String {
        let mut text = include_str!("head.md").to_owned();
        let is_of_the_outbox = |metric: &Metric| metric.name.starts_with("sendoff_outbox_");
        let is_of_a_target = |metric: &Metric| metric.labels.contains(&"target");
        let mut section = |heading: &str, belongs: &dyn Fn(&Metric) -> bool| {
            let _ = write!(
                text,
                "\n## {heading}\n\n| metric | kind | labels | what it says |\n|---|---|---|---|\n"
            );
            for metric in ALL.iter().filter(|metric| belongs(metric)) {
                let Metric { name, kind, labels, help } = metric;
                let _ = writeln!(text, "| `{name}` | {} | {} | {help} |", kind.word(), labels.join(", "));
            }
        };
        section("The process", &|metric| !is_of_the_outbox(metric) && !is_of_a_target(metric));
        section("Its relays", &|metric| !is_of_the_outbox(metric) && is_of_a_target(metric));
        section("The outbox, wherever its relays run", &is_of_the_outbox);
        text.push_str(include_str!("checks.md"));
        text
    }

    #[test]
    fn the_page_of_the_documentation_is_what_the_list_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let text = markdown();
        if std::env::var_os("SENDOFF_UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == text,
            "docs/metrics.md is old: SENDOFF_UPDATE_SNAPSHOTS=1 writes it anew"
        );
    }
}
