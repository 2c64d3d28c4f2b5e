//! What a relay would deliver, for people and for programs.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::adopted::{Listing, Shadow};
use sendoff::claim::Timestamp;
use sendoff::{DEFAULT_TARGET, PAYLOAD_BYTES_MAX};
use serde::Serialize;

use crate::args::AdoptArgs;
use crate::config::TableConfig;
use crate::exit::Refused;
use crate::output::{Table, moment, print, span};
use crate::shape::{Id, Moment};
use crate::table::Opened;

/// What would be delivered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShadowJson {
    /// So many rows wait, of those that were looked at.
    rows: u64,
    /// Nothing waits that was not looked at.
    whole: bool,
    /// How long ago the oldest was written, if a column says so.
    oldest_seconds: Option<f64>,
    /// The payloads of all.
    bytes: u64,
    /// The largest payload.
    bytes_max: u64,
    /// So many payloads have more bytes than sendoff's own outbox takes; brokers may reject them.
    large: u64,
    /// By target and topic.
    topics: Vec<TopicJson>,
    /// What would be given up at once.
    refused: Vec<RefusedJson>,
    /// In the order in which they would be claimed.
    first: Vec<FirstJson>,
}

/// A topic of a target.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopicJson {
    target: String,
    topic: String,
    rows: u64,
    /// The configuration has this target.
    served: bool,
}

/// Rows that would be given up, for one reason.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RefusedJson {
    why: String,
    rows: u64,
    /// The host's id of the first.
    first: String,
}

/// One event.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FirstJson {
    /// The host's id of its row.
    row: String,
    /// What it would be delivered as; null: it cannot be read.
    event: Option<EventJson>,
    /// Why it cannot be read.
    error: Option<String>,
}

/// An event as it would be delivered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventJson {
    id: Id,
    topic: String,
    key: Option<String>,
    created_at: Moment,
    bytes: usize,
    headers: usize,
}

/// Looks, and changes nothing.
pub(super) async fn look(
    opened: &Opened,
    table: &TableConfig,
    targets: &[String],
    args: &AdoptArgs,
) -> Result<ShadowJson> {
    let (mapping, beside) = table.mapped().map_err(Refused)?;
    let shadow = opened.shadow(&mapping, beside.as_ref(), args.first, args.limit).await?;
    Ok(ShadowJson::of(shadow, targets))
}

fn age(at: Timestamp) -> Duration {
    let now = Timestamp::from(SystemTime::now()).as_micros();
    Duration::from_micros(u64::try_from(now.saturating_sub(at.as_micros())).unwrap_or_default())
}

fn first(listing: &Listing) -> FirstJson {
    let event = listing.event.as_ref().ok().map(|event| EventJson {
        id: Id::of(event.event_id),
        topic: event.topic.clone(),
        key: event.key.clone(),
        created_at: Moment(event.created_at.as_micros()),
        bytes: event.payload.len(),
        headers: event.headers.len(),
    });
    FirstJson { row: listing.id(), event, error: listing.event.as_ref().err().cloned() }
}

impl ShadowJson {
    fn of(shadow: Shadow, targets: &[String]) -> Self {
        let only = targets.first().map_or(DEFAULT_TARGET, String::as_str);
        let topics = shadow.topics.into_iter().map(|((target, topic), rows)| {
            // Where no column says it, all are for the only one.
            let target = if target.is_empty() { only.to_owned() } else { target };
            TopicJson { served: targets.contains(&target), target, topic, rows }
        });
        let refused = shadow.refusals.into_iter();
        let refused =
            refused.map(|(why, refusal)| RefusedJson { why, rows: refusal.rows, first: refusal.first });
        Self {
            rows: shadow.examined,
            whole: shadow.is_whole,
            oldest_seconds: shadow.oldest.map(|at| age(at).as_secs_f64()),
            bytes: shadow.bytes,
            bytes_max: shadow.bytes_max,
            large: shadow.large,
            topics: topics.collect(),
            refused: refused.collect(),
            first: shadow.first.iter().map(first).collect(),
        }
    }

    pub(super) fn print(&self) -> Result<()> {
        let more = if self.whole { "" } else { " and more" };
        let oldest = self.oldest_seconds.map(|seconds| span(Duration::from_secs_f64(seconds.max(0.0))));
        let oldest = oldest.map(|age| format!(", the oldest for {age}")).unwrap_or_default();
        let rows = if self.rows == 1 { "row waits" } else { "rows wait" };
        print(&format!(
            "\nShadow: nothing was claimed. {}{more} {rows}{oldest}; {} bytes of payload, {} the largest.\n",
            self.rows, self.bytes, self.bytes_max
        ))?;
        if !self.topics.is_empty() {
            print("\n")?;
            let mut table = Table::new(&["TARGET", "TOPIC", "#ROWS", ""]);
            for topic in &self.topics {
                let served = if topic.served { "" } else { "no such target: these would wait" };
                table.row([
                    topic.target.clone(),
                    topic.topic.clone(),
                    topic.rows.to_string(),
                    served.to_owned(),
                ]);
            }
            table.print()?;
        }
        if self.large > 0 {
            print(&format!(
                "\n{} payloads have more than {PAYLOAD_BYTES_MAX} bytes: a broker may reject them.\n",
                self.large
            ))?;
        }
        if !self.refused.is_empty() {
            print("\nWould be given up at once, as dead:\n")?;
            let mut table = Table::new(&["#ROWS", "THE FIRST", "WHY"]);
            for refused in &self.refused {
                table.row([refused.rows.to_string(), refused.first.clone(), refused.why.clone()]);
            }
            table.print()?;
        }
        if !self.first.is_empty() {
            print("\nThe first:\n")?;
            let mut table = Table::new(&["ROW", "TOPIC", "KEY", "WRITTEN", "#BYTES", "#HEADERS"]);
            for row in &self.first {
                match &row.event {
                    Some(event) => table.row([
                        row.row.clone(),
                        event.topic.clone(),
                        event.key.clone().unwrap_or_else(|| "-".to_owned()),
                        moment(event.created_at.0),
                        event.bytes.to_string(),
                        event.headers.to_string(),
                    ]),
                    None => table.row([
                        row.row.clone(),
                        "-".to_owned(),
                        "-".to_owned(),
                        row.error.clone().unwrap_or_default(),
                        "-".to_owned(),
                        "-".to_owned(),
                    ]),
                }
            }
            table.print()?;
        }
        Ok(())
    }
}
