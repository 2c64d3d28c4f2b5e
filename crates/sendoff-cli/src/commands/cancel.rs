//! `sendoff cancel`: takes out an event that is not in flight.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::EventId;
use sendoff::outbox::Cancelled;
use serde::Serialize;

use crate::args::CancelArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};
use crate::shape::Id;

/// What became of a cancellation.
#[derive(Serialize, JsonSchema)]
pub(super) struct CancelShape {
    event_id: Id,
    #[schemars(extend("enum" = ["yes", "no_such_event", "may_be_in_flight"]))]
    cancelled: &'static str,
    /// Who may have it in flight.
    worker: Option<Id>,
}

impl CancelShape {
    fn of(event: EventId, cancelled: &Cancelled) -> Self {
        let (cancelled, worker) = match cancelled {
            Cancelled::Yes => ("yes", None),
            Cancelled::NoSuchEvent => ("no_such_event", None),
            Cancelled::MayBeInFlight { worker } => ("may_be_in_flight", Some(Id::of(worker))),
        };
        Self { event_id: Id::of(event), cancelled, worker }
    }
}

/// Does it, or says why not.
pub(crate) async fn run(args: &CancelArgs) -> Result<Answer> {
    let event = args.event;
    let cancelled = super::open_own(&args.store, "cancel").await?.cancel(event, &super::operator()).await?;
    if args.json {
        print_json(&CancelShape::of(event, &cancelled))?;
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
