//! `sendoff inbox`: what consumers have handled.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::inbox::{ConsumerStats, InboxStats, Inspect};
use sendoff::outbox::COUNT_MAX;
use serde::Serialize;

use super::batches::all;
use super::migrate;
use super::purge::PurgeShape;
use crate::args::{InboxArgs, InboxCommand, InboxPurgeArgs, PartStatsArgs, StoreArgs};
use crate::exit::{Answer, refuse};
use crate::output::{Table, count, print, print_json, span};
use crate::part::Part;
use crate::site::Site;

/// Copies come within this time in any case: what is younger is only forgotten if that is really meant.
const SURELY_NEEDED: Duration = Duration::from_secs(60 * 60);

/// What an inbox remembers.
#[derive(Serialize, JsonSchema)]
pub(super) struct StatsShape<'s> {
    /// In the order of their names.
    consumers: Vec<ConsumerShape<'s>>,
    /// There are more consumers.
    has_more: bool,
    /// What its tables and indexes take on the disk; null where the database does not know.
    bytes: Option<u64>,
    /// No count goes further.
    count_max: u64,
}

/// What is remembered of a consumer.
#[derive(Serialize, JsonSchema)]
struct ConsumerShape<'s> {
    consumer: &'s str,
    /// Events that it has handled.
    seen: u64,
    /// Keys that it follows.
    keys: u64,
    /// How long ago it handled the oldest of these events.
    oldest_seconds: Option<f64>,
    /// How long ago it handled the newest.
    newest_seconds: Option<f64>,
}

impl<'s> ConsumerShape<'s> {
    fn of(stats: &'s ConsumerStats) -> Self {
        Self {
            consumer: &stats.consumer,
            seen: stats.seen,
            keys: stats.keys,
            oldest_seconds: stats.oldest.map(|age| age.as_secs_f64()),
            newest_seconds: stats.newest.map(|age| age.as_secs_f64()),
        }
    }
}

/// Does what is asked.
pub(crate) async fn run(args: &InboxArgs) -> Result<Answer> {
    match &args.command {
        InboxCommand::Stats(args) => stats(args).await,
        InboxCommand::Purge(args) => purge(args).await,
        InboxCommand::Migrate(args) => migrate::of(args, Part::Inbox).await,
    }
}

async fn open(args: &StoreArgs) -> Result<Arc<dyn Inspect>> {
    Site::of_part(args, Part::Inbox).await?.inbox().await
}

async fn stats(args: &PartStatsArgs) -> Result<Answer> {
    let stats = open(&args.store).await?.stats().await?;
    if args.json {
        let InboxStats { consumers, has_more, bytes } = &stats;
        let consumers = consumers.iter().map(ConsumerShape::of).collect();
        print_json(&StatsShape { consumers, has_more: *has_more, bytes: *bytes, count_max: COUNT_MAX })?;
        return Ok(Answer::Yes);
    }
    if stats.consumers.is_empty() {
        print("no consumer has handled anything that is remembered\n")?;
        return Ok(Answer::Yes);
    }
    let mut table = Table::new(&["CONSUMER", "#EVENTS", "#KEYS", "OLDEST", "NEWEST"]);
    let age = |age: Option<Duration>| age.map_or_else(|| "-".to_owned(), |age| format!("{} ago", span(age)));
    for consumer in &stats.consumers {
        table.row([
            consumer.consumer.clone(),
            count(consumer.seen, COUNT_MAX),
            count(consumer.keys, COUNT_MAX),
            age(consumer.oldest),
            age(consumer.newest),
        ]);
    }
    table.print()?;
    if let Some(bytes) = stats.bytes {
        print(&format!("on the disk: {}\n", size(bytes)))?;
    }
    if stats.has_more {
        eprintln!("there are more consumers: these are the first {}", stats.consumers.len());
    }
    Ok(Answer::Yes)
}

/// Bytes, as people say it.
fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if size < 1_024.0 {
            let digits = usize::from(unit != "bytes");
            return format!("{size:.digits$} {unit}");
        }
        size /= 1_024.0;
    }
    format!("{size:.1} TiB")
}

async fn purge(args: &InboxPurgeArgs) -> Result<Answer> {
    if args.older_than < SURELY_NEEDED && !args.yes {
        refuse!(
            "this forgets what was handled within the last hour, and a copy of it that still arrives is handled again: give a longer --older-than, or say --yes"
        );
    }
    let inbox = open(&args.store).await?;
    let purged = all("rows", || inbox.purge(args.older_than, args.batch)).await?;
    if args.json {
        print_json(&PurgeShape { purged })?;
    } else {
        print(&format!("{purged} rows are forgotten\n"))?;
    }
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_can_be_read() {
        let sizes = [0, 1_023, 1_024, 40_960, 5 << 20, 3 << 30, 2 << 40].map(size);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.0 KiB", "40.0 KiB", "5.0 MiB", "3.0 GiB", "2.0 TiB"]);
    }
}
