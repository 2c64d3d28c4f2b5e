//! The figures of a measurement, under the names that programs know.

use clap::ValueEnum as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::Measure;

/// What was measured. What a measurement does not have is null.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Report {
    #[schemars(extend("enum" = Measure::value_variants().iter().map(Measure::word).collect::<Vec<_>>()))]
    pub(crate) measure: String,
    /// What `events_per_s` is the rate of, for people.
    #[serde(skip)]
    pub(crate) label: &'static str,
    pub(crate) events: u64,
    pub(crate) seconds: f64,
    pub(crate) events_per_s: f64,
    /// The bare statements of the store, without the relay.
    pub(crate) floor_events_per_s: Option<f64>,
    /// `SELECT … FOR UPDATE SKIP LOCKED` and a status column, 100 at a time.
    pub(crate) adr003_events_per_s: Option<f64>,
    /// The same, as many at a time as the relay.
    pub(crate) adr003_equal_batch_events_per_s: Option<f64>,
    pub(crate) ratio_floor: Option<f64>,
    pub(crate) ratio_adr003: Option<f64>,
    pub(crate) ratio_adr003_equal_batch: Option<f64>,
    /// The sink by itself, with the same client and no database.
    pub(crate) sink_events_per_s: Option<f64>,
    /// The relay to nowhere.
    pub(crate) null_events_per_s: Option<f64>,
    pub(crate) ratio_sink: Option<f64>,
    pub(crate) ratio_null: Option<f64>,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) out_of_order: u64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) bulk_events_per_s: Option<f64>,
    pub(crate) rss_mib: Option<f64>,
    pub(crate) cpu_us_per_event: Option<f64>,
    pub(crate) wal_bytes_per_event: Option<f64>,
}

impl Report {
    /// What was delivered is what was written.
    pub(crate) fn holds(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.out_of_order == 0
    }

    pub(crate) fn print(&self) {
        let line = |name: &str, text: String| println!("{name:>34}  {text}");
        let rate = |rate: f64| format!("{rate:>12.0} events/s");
        line("events", format!("{:>12}", self.events));
        line("seconds", format!("{:>12.2}", self.seconds));
        line(self.label, rate(self.events_per_s));
        let others = [
            ("bare statements of the store", self.floor_events_per_s, self.ratio_floor),
            ("SKIP LOCKED and status, batch 100", self.adr003_events_per_s, self.ratio_adr003),
            ("… with the same batch", self.adr003_equal_batch_events_per_s, self.ratio_adr003_equal_batch),
            ("the sink by itself", self.sink_events_per_s, self.ratio_sink),
            ("the relay to nowhere", self.null_events_per_s, self.ratio_null),
        ];
        for (name, other, ratio) in others {
            if let Some(other) = other {
                let ratio = ratio.map(|ratio| format!("   ours is {ratio:.2} x")).unwrap_or_default();
                line(name, rate(other) + &ratio);
            }
        }
        if let Some(bulk) = self.bulk_events_per_s {
            line("1,000 in one statement", rate(bulk));
        }
        let figures = [
            ("p50", self.p50_ms, "ms"),
            ("p99", self.p99_ms, "ms"),
            ("memory", self.rss_mib, "MiB"),
            ("CPU of this process, per event", self.cpu_us_per_event, "us"),
            ("WAL per event", self.wal_bytes_per_event, "bytes"),
        ];
        for (name, figure, unit) in figures {
            if let Some(figure) = figure {
                line(name, format!("{figure:>12.1} {unit}"));
            }
        }
        let checks = format!("{:>12}", format!("{}/{}/{}", self.lost, self.duplicated, self.out_of_order));
        line("lost/duplicated/out of order", checks);
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

/// The value that so many percent are at or below.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied()
}
