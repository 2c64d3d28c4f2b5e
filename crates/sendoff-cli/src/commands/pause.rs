//! `sendoff pause` and `sendoff resume`.

use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::PauseArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};

/// How a target stands now.
#[derive(Serialize, JsonSchema)]
pub(super) struct PauseShape<'t> {
    target: &'t str,
    paused: bool,
}

/// Stops a target, or lets it go on. Workers notice with their next renewal.
pub(crate) async fn run(args: &PauseArgs, paused: bool) -> Result<Answer> {
    let inspect = super::open_own(&args.store, if paused { "pause" } else { "resume" }).await?;
    inspect.set_paused(&args.target, paused, &super::operator()).await?;
    if args.json {
        print_json(&PauseShape { target: &args.target, paused })?;
    } else {
        let what = if paused { "is paused: `sendoff resume` lets it go on" } else { "goes on" };
        print(&format!("target {:?} {what}\n", args.target))?;
    }
    let is_known = inspect
        .counts()
        .await?
        .targets
        .iter()
        .any(|counts| counts.target == args.target && !(paused && is_empty(counts)));
    if !is_known {
        eprintln!("note: nothing was ever written for target {:?}", args.target);
    }
    Ok(Answer::Yes)
}

/// A target that is only known for being paused.
fn is_empty(counts: &sendoff::outbox::TargetCounts) -> bool {
    sendoff::outbox::EventState::ALL.iter().all(|state| counts.of(*state) == 0)
}
