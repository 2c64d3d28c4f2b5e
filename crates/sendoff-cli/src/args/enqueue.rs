//! The command line of `enqueue`.

use clap::Args;
use sendoff::EventId;

use super::StoreArgs;

/// `sendoff enqueue`
#[derive(Debug, Args)]
pub(crate) struct EnqueueArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Where it is published
    #[arg(value_name = "TOPIC", required_unless_present = "lines")]
    pub(crate) topic: Option<String>,
    /// Its ordering key
    #[arg(long, value_name = "KEY", conflicts_with = "lines")]
    pub(crate) key: Option<String>,
    /// Its content: text, or @FILE, or - for standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "lines")]
    pub(crate) payload: Option<String>,
    /// What the content is [default: application/json if it is JSON]
    #[arg(long, value_name = "MEDIA-TYPE", conflicts_with = "lines")]
    pub(crate) content_type: Option<String>,
    /// What travels with it; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header, conflicts_with = "lines")]
    pub(crate) headers: Vec<(String, String)>,
    /// Its identity [default: a new one]
    #[arg(long, value_name = "UUID", conflicts_with = "lines")]
    pub(crate) id: Option<EventId>,
    /// Not before this moment: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_rfc3339_weak, conflicts_with = "lines")]
    pub(crate) deliver_at: Option<std::time::SystemTime>,
    /// Which target delivers it
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// An event for each line of JSON on standard input
    #[arg(long, conflicts_with = "topic")]
    pub(crate) lines: bool,
    /// Leave out so many lines first: they were written by an earlier call
    #[arg(long, value_name = "N", default_value_t = 0, requires = "lines")]
    pub(crate) skip: u64,
    /// So many lines are committed at a time
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "lines", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Print what was written as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
