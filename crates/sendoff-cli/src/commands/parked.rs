//! `sendoff parked`: the keys that wait.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::KeyInfo;
use serde::Serialize;

use crate::args::ParkedArgs;
use crate::exit::Answer;
use crate::output::{Table, failure, moment, print, print_json};
use crate::shape::{FailureShape, Moment, reasons};

/// The keys of a target that wait.
#[derive(Serialize, JsonSchema)]
pub(super) struct Parked<'k> {
    target: &'k str,
    keys: Vec<KeyShape<'k>>,
}

/// A key that waits.
#[derive(Serialize, JsonSchema)]
struct KeyShape<'k> {
    lane: u16,
    /// Null: an event without one.
    key: Option<&'k str>,
    /// The position of the event that it waits for.
    position: i64,
    #[schemars(extend("enum" = reasons()))]
    reason: &'static str,
    /// Null: when an operator says so.
    due_at: Option<Moment>,
    /// So many events wait behind it.
    behind: u64,
    failure: Option<FailureShape>,
}

impl<'k> KeyShape<'k> {
    fn of(key: &'k KeyInfo) -> Self {
        Self {
            lane: key.lane,
            key: key.key.as_deref(),
            position: key.position,
            reason: key.reason.word(),
            due_at: key.due_at.map(Moment),
            behind: key.behind,
            failure: key.failure.as_ref().map(FailureShape::of),
        }
    }
}

/// Shows them.
pub(crate) async fn run(args: &ParkedArgs) -> Result<Answer> {
    let keys = super::open_own(&args.store, "parked").await?.parked_keys(&args.target, args.limit).await?;
    if args.json {
        print_json(&Parked { target: &args.target, keys: keys.iter().map(KeyShape::of).collect() })?;
        return Ok(Answer::Yes);
    }
    if keys.is_empty() {
        print(&format!("no key of target {:?} waits\n", args.target))?;
        return Ok(Answer::Yes);
    }
    let mut table = Table::new(&["KEY", "WHY", "#POSITION", "#BEHIND", "DUE", "ERROR"]);
    for key in &keys {
        table.row([
            key.key.clone().unwrap_or_else(|| "-".to_owned()),
            key.reason.word().to_owned(),
            key.position.to_string(),
            key.behind.to_string(),
            key.due_at.map_or_else(|| "when told to".to_owned(), moment),
            failure(key.failure.as_ref()),
        ]);
    }
    table.print()?;
    Ok(Answer::Yes)
}
