//! `sendoff purge`: deletes what is old, a batch at a time.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::Purge;
use serde::Serialize;

use super::batches::all;
use crate::args::{PurgeArgs, PurgeWhat};
use crate::exit::Answer;
use crate::output::{print, print_json};

/// How many were deleted.
#[derive(Serialize, JsonSchema)]
pub(super) struct PurgeShape {
    pub(super) purged: u64,
}

/// Until nothing that old is left.
pub(crate) async fn run(args: &PurgeArgs) -> Result<Answer> {
    let inspect = super::open_own(&args.store, "purge").await?;
    let (target, older_than) = (args.target.clone(), args.older_than);
    let purge = match args.what {
        PurgeWhat::Published => Purge::Published { target, older_than },
        PurgeWhat::Dead => Purge::Dead { target, older_than },
    };
    let purged = all("events", || inspect.purge(&purge, args.batch)).await?;
    if args.json {
        print_json(&PurgeShape { purged })?;
    } else {
        print(&format!("{purged} events are deleted\n"))?;
    }
    Ok(Answer::Yes)
}
