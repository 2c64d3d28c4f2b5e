//! `sendoff cancel`: takes out an event that is not in flight.

use anyhow::Result;
use sendoff::outbox::Cancelled;

use crate::args::CancelArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};

/// Does it, or says why not.
pub(crate) async fn run(args: &CancelArgs) -> Result<Answer> {
    let event = args.event;
    let cancelled = super::open(&args.store).await?.cancel(event, &super::operator()).await?;
    if args.json {
        print_json(&cancelled)?;
    }
    match cancelled {
        Cancelled::Yes if args.json => {}
        Cancelled::Yes => print(&format!("event {event} is taken out\n"))?,
        Cancelled::NoSuchEvent => {
            eprintln!(
                "there is no event {event} that waits; `sendoff show {event}` says whether it is dead or delivered"
            );
        }
        Cancelled::MayBeInFlight { worker } => eprintln!(
            "event {event} stays: worker {worker} has its lane and may be publishing it; pause its target first, then try again"
        ),
    }
    Ok(if cancelled == Cancelled::Yes { Answer::Yes } else { Answer::No })
}
