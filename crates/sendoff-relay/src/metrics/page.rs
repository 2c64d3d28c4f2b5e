//! Metrics as Prometheus reads them: its text format, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use sendoff::outbox::EventState;

use super::histogram::{BOUNDS, Histogram};
use super::outbox::OutboxView;
use super::{self as metrics, ALL, Metric};
use crate::RelayHandle;

/// What is read with one scrape: all values of a metric together, whichever relay or outbox they are of.
#[derive(Debug, Default)]
pub struct Page {
    samples: BTreeMap<&'static str, String>,
}

impl Page {
    /// The type of the text.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Adds a value; `labels` in the order in which the metric has them.
    pub fn add(&mut self, metric: &Metric, labels: &[&str], value: f64) {
        self.sample(metric, "", labels, None, value);
    }

    /// Adds the figures of a relay.
    pub fn relay(&mut self, store: &str, relay: &RelayHandle) {
        for (name, target) in &relay.targets {
            let labels = [store, name.as_str()];
            let (figures, stats) = (target.counters.figures(), target.stats());
            let lanes = target.lanes();
            for (metric, value) in [
                (&metrics::EVENTS_CLAIMED, figures.claimed),
                (&metrics::EVENTS_PUBLISHED, figures.published),
                (&metrics::EVENTS_RETRIED, figures.retried),
                (&metrics::EVENTS_GIVEN_UP, figures.given_up),
                (&metrics::EVENTS_RELEASED, figures.released),
                (&metrics::EVENTS_LATE, figures.late),
                (&metrics::EVENTS_UNANSWERED, figures.unanswered),
                (&metrics::EVENTS_IN_FLIGHT, figures.in_flight),
                (&metrics::PAYLOAD_IN_FLIGHT, figures.bytes_in_flight),
                (&metrics::PUBLISH_TIMEOUTS, figures.timeouts),
                (&metrics::SINK_DOWN, figures.down),
                (&metrics::BREAKER_OPEN, u64::from(!target.breaker().is_closed())),
                (&metrics::SETTLES_STALE, figures.stale),
                (&metrics::DELIVERIES_STALE, figures.stale_deliveries),
                (&metrics::SETTLES_MISSING, figures.missing),
                (&metrics::STORE_ERRORS, figures.store_errors),
                (&metrics::RELAY_WORKERS, lanes.len() as u64),
                (&metrics::LANES_OWNED, lanes.iter().sum::<usize>() as u64),
                (&metrics::LANES_TAKEN, stats.taken),
                (&metrics::LANES_LOST, stats.lost),
            ] {
                self.add(metric, &labels, value as f64);
            }
            self.histogram(&metrics::PUBLISH_DURATION, &labels, &target.publish_duration);
            self.histogram(&metrics::DELIVERY_AGE, &labels, &target.delivery_age);
        }
    }

    /// Adds what an outbox holds, and how long ago that was read.
    pub fn outbox(&mut self, store: &str, view: &OutboxView, read: Duration) {
        self.add(&metrics::OUTBOX_READ_AGE, &[store], read.as_secs_f64());
        for counts in &view.counts.targets {
            let target = counts.target.as_str();
            for state in EventState::ALL {
                let labels = [store, target, state.word()];
                self.add(&metrics::OUTBOX_EVENTS, &labels, counts.of(state) as f64);
            }
            let oldest = counts.oldest.unwrap_or_default().as_secs_f64();
            let labels = [store, target];
            self.add(&metrics::OUTBOX_OLDEST_AGE, &labels, oldest);
            if !view.has_lanes {
                continue;
            }
            self.add(&metrics::OUTBOX_PAUSED, &labels, f64::from(u8::from(counts.paused)));
            self.add(&metrics::OUTBOX_LANES_UNOWNED, &labels, view.lanes_unowned(target) as f64);
            self.add(&metrics::OUTBOX_LANES_CAREFUL, &labels, view.lanes_careful(target) as f64);
            for (reason, keys) in view.parked_keys(target) {
                self.add(&metrics::OUTBOX_PARKED_KEYS, &[store, target, reason.word()], keys as f64);
            }
        }
        for (target, live) in view.workers().into_iter().filter(|_| view.has_lanes) {
            self.add(&metrics::OUTBOX_WORKERS, &[store, target], live as f64);
        }
    }

    /// All of it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for metric in ALL {
            let Some(samples) = self.samples.get(metric.name) else { continue };
            let Metric { name, kind, help, .. } = metric;
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
            text.push_str(samples);
        }
        text
    }

    fn histogram(&mut self, metric: &Metric, labels: &[&str], histogram: &Histogram) {
        let cumulative = histogram.cumulative();
        let total = cumulative.last().copied().unwrap_or_default() as f64;
        for (bound, count) in BOUNDS.iter().zip(&cumulative) {
            self.sample(metric, "_bucket", labels, Some(&bound.to_string()), *count as f64);
        }
        self.sample(metric, "_bucket", labels, Some("+Inf"), total);
        self.sample(metric, "_sum", labels, None, histogram.sum().as_secs_f64());
        self.sample(metric, "_count", labels, None, total);
    }

    fn sample(&mut self, metric: &Metric, suffix: &str, labels: &[&str], at_most: Option<&str>, value: f64) {
        let text = self.samples.entry(metric.name).or_default();
        let named = metric.labels.iter().copied().zip(labels.iter().copied());
        let named = named.chain(at_most.map(|bound| ("le", bound)));
        let labels: Vec<String> =
            named.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(text, "{}{suffix}{{{}}} {value}", metric.name, labels.join(","));
    }
}

/// A label's value: a host may call a target what it likes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_metric_stand_together_and_names_stay_in_their_place() {
        let mut page = Page::default();
        page.add(&metrics::EVENTS_CLAIMED, &["eu", "a\"b\\c\nd"], 7.0);
        page.add(&metrics::STORE_UP, &["eu"], 1.0);
        page.add(&metrics::EVENTS_CLAIMED, &["us", "default"], 0.0);
        let claimed = metrics::EVENTS_CLAIMED.help;
        let expected = format!(
            "# HELP sendoff_store_up {}\n# TYPE sendoff_store_up gauge\nsendoff_store_up{{store=\"eu\"}} 1\n\
             # HELP sendoff_events_claimed_total {claimed}\n# TYPE sendoff_events_claimed_total counter\n\
             sendoff_events_claimed_total{{store=\"eu\",target=\"a\\\"b\\\\c\\nd\"}} 7\n\
             sendoff_events_claimed_total{{store=\"us\",target=\"default\"}} 0\n",
            metrics::STORE_UP.help
        );
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn a_histogram_has_its_steps_its_sum_and_its_count() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_millis(30));
        let mut page = Page::default();
        page.histogram(&metrics::PUBLISH_DURATION, &["s", "t"], &histogram);
        let text = page.text();
        for line in [
            "sendoff_publish_duration_seconds_bucket{store=\"s\",target=\"t\",le=\"0.025\"} 0",
            "sendoff_publish_duration_seconds_bucket{store=\"s\",target=\"t\",le=\"0.05\"} 1",
            "sendoff_publish_duration_seconds_bucket{store=\"s\",target=\"t\",le=\"+Inf\"} 1",
            "sendoff_publish_duration_seconds_sum{store=\"s\",target=\"t\"} 0.03",
            "sendoff_publish_duration_seconds_count{store=\"s\",target=\"t\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
