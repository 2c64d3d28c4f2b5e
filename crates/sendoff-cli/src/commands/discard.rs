//! `sendoff discard`: dead events are deleted for good.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::{Discard, Selection};
use serde::Serialize;

use super::selection::{PAGE, Wanted};
use crate::args::DiscardArgs;
use crate::exit::{Answer, refuse};
use crate::output::{print, print_json};

/// What was done, or would be.
#[derive(Serialize, JsonSchema)]
pub(super) struct DiscardShape {
    dry_run: bool,
    discarded: u64,
}

/// Does it, a page at a time.
pub(crate) async fn run(args: &DiscardArgs) -> Result<Answer> {
    let wanted = Wanted::of(&args.bulk.selection, &args.bulk.target);
    if !wanted.is_one() && !args.bulk.dry_run && !args.yes {
        refuse!("this may delete many events for good: see how many with --dry-run, then say --yes");
    }
    let inspect = super::open_own(&args.bulk.store, "discard").await?;
    let ask =
        |selection, limit| Discard { selection, limit, dry_run: args.bulk.dry_run, by: super::operator() };
    let mut discarded = 0;
    match wanted {
        Wanted::All(selection) if args.bulk.dry_run => {
            let limit = u32::try_from(args.bulk.limit).unwrap_or(u32::MAX);
            discarded = inspect.discard(&ask(selection, limit)).await?;
        }
        Wanted::All(selection) => loop {
            let limit = u32::try_from(args.bulk.limit - discarded).unwrap_or(u32::MAX).min(PAGE);
            let gone = if limit > 0 { inspect.discard(&ask(selection.clone(), limit)).await? } else { 0 };
            discarded += gone;
            if gone == 0 {
                break;
            }
        },
        Wanted::Matching(filter) => {
            for event in filter.find(&*inspect, &args.bulk.target, args.bulk.limit).await? {
                discarded += inspect.discard(&ask(Selection::Event(event), 1)).await?;
            }
        }
    }
    if args.bulk.json {
        print_json(&DiscardShape { dry_run: args.bulk.dry_run, discarded })?;
    } else {
        let would = if args.bulk.dry_run { "would be" } else { "are" };
        print(&format!("{discarded} dead events {would} deleted\n"))?;
    }
    if discarded == 0 {
        eprintln!("nothing that was asked for is dead; what waits is taken out by `sendoff cancel`");
        return Ok(Answer::No);
    }
    Ok(Answer::Yes)
}
