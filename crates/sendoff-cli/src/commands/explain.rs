//! `sendoff explain`: why an event has not been delivered, in a sentence and in facts.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::outbox::{COUNT_MAX, Explanation, Failure, Lane, WorkerId};
use sendoff::{Attempts, EventId};
use serde::Serialize;

use crate::args::EventArgs;
use crate::exit::Answer;
use crate::output::{moment, print, print_json, visible};
use crate::shape::{FailureShape, Id, Moment};

/// Why an event has not been delivered: in a word, in a sentence, and the facts behind it. What the case does not have is null.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Explained {
    event_id: Option<Id>,
    #[schemars(extend("enum" = WHY))]
    why: &'static str,
    sentence: String,
    /// What can be done about it.
    advice: Option<String>,
    /// It was delivered then, or is to be.
    at: Option<Moment>,
    /// It is dead, its worker is lost or its sink is down since then.
    since: Option<Moment>,
    /// It is tried again then; or its lane is leased until then.
    until: Option<Moment>,
    /// The event of its key that goes first, and its position.
    behind: Option<Id>,
    position: Option<i64>,
    lane: Option<u16>,
    /// Who has its lane, or had it, and by which name.
    worker: Option<Id>,
    name: Option<String>,
    /// So many events of its lane go first.
    before: Option<u64>,
    /// How often the sink refused it, and how often its worker died with it in hand.
    failures: Option<u32>,
    crashes: Option<u32>,
    /// What went wrong with it.
    failure: Option<FailureShape>,
    /// What the sink said that is down.
    sink_error: Option<String>,
}

/// The cases.
const WHY: [&str; 13] = [
    "no_such_event",
    "published",
    "dead",
    "not_due",
    "parked",
    "behind",
    "target_paused",
    "no_worker",
    "unleased",
    "uncovered",
    "leased",
    "sink_down",
    "abandoned",
];

impl Explained {
    fn of(id: EventId, explanation: &Explanation) -> Self {
        let (sentence, advice) = sentence(id, explanation);
        let known = Self { event_id: Some(Id::of(id)), sentence, advice, ..Self::facts(explanation) };
        match explanation {
            Explanation::Dead { attempts, .. } | Explanation::Parked { attempts, .. } => {
                Self { failures: Some(attempts.failures), crashes: Some(attempts.crashes), ..known }
            }
            _ => known,
        }
    }

    fn facts(explanation: &Explanation) -> Self {
        let why = |why| Self { why, ..Self::default() };
        match explanation {
            Explanation::NoSuchEvent => why("no_such_event"),
            Explanation::Published { at } => Self { at: Some(Moment(*at)), ..why("published") },
            Explanation::Dead { since, failure, .. } => {
                Self { since: Some(Moment(*since)), failure: Some(FailureShape::of(failure)), ..why("dead") }
            }
            Explanation::NotDue { at } => Self { at: Some(Moment(*at)), ..why("not_due") },
            Explanation::Parked { until, failure, .. } => Self {
                until: until.map(Moment),
                failure: failure.as_ref().map(FailureShape::of),
                ..why("parked")
            },
            Explanation::Behind { event, position } => {
                Self { behind: Some(Id::of(event)), position: Some(*position), ..why("behind") }
            }
            Explanation::TargetPaused => why("target_paused"),
            Explanation::NoWorker => why("no_worker"),
            Explanation::Unleased { lane } => Self { lane: Some(*lane), ..why("unleased") },
            Explanation::Uncovered { lane } => Self { lane: Some(*lane), ..why("uncovered") },
            Explanation::Leased { lane, worker, name, until, before } => Self {
                until: Some(Moment(*until)),
                before: Some(*before),
                ..Self::owned(*lane, *worker, Some(name), "leased")
            },
            Explanation::SinkDown { lane, worker, name, down } => Self {
                since: Some(Moment(down.since)),
                sink_error: Some(down.error.clone()),
                ..Self::owned(*lane, *worker, Some(name), "sink_down")
            },
            Explanation::Abandoned { lane, worker, since } => {
                Self { since: Some(Moment(*since)), ..Self::owned(*lane, *worker, None, "abandoned") }
            }
        }
    }

    fn owned(lane: Lane, worker: WorkerId, name: Option<&String>, why: &'static str) -> Self {
        Self { lane: Some(lane), worker: Some(Id::of(worker)), name: name.cloned(), why, ..Self::default() }
    }
}

/// Explains it.
pub(crate) async fn run(args: &EventArgs) -> Result<Answer> {
    let explanation = super::open_own(&args.store, "explain").await?.explain(args.event).await?;
    if args.json {
        print_json(&Explained::of(args.event, &explanation))?;
    } else {
        let (sentence, advice) = sentence(args.event, &explanation);
        print(&format!("{}\n", visible(&sentence)))?;
        if let Some(advice) = advice {
            print(&format!("{}\n", visible(&advice)))?;
        }
    }
    Ok(if explanation == Explanation::NoSuchEvent { Answer::No } else { Answer::Yes })
}

/// What is so, and what can be done about it.
fn sentence(id: EventId, explanation: &Explanation) -> (String, Option<String>) {
    match explanation {
        Explanation::NoSuchEvent => (
            format!(
                "There is no event {id}: it was delivered and is not kept, was cancelled, or never committed."
            ),
            None,
        ),
        Explanation::Published { at } => (format!("It was delivered at {}.", moment(*at)), None),
        Explanation::Dead { since, failure, attempts } => (
            format!("It is dead since {}, after {}: {}.", moment(*since), tries(*attempts), reason(failure)),
            Some(format!(
                "`sendoff redrive {id}` tries it again, before the later ones of its key; `sendoff discard {id}` deletes it"
            )),
        ),
        Explanation::NotDue { at } => {
            (format!("It is to be delivered at {}, which is not yet.", moment(*at)), None)
        }
        Explanation::Parked { until, failure, attempts } => parked(id, *until, failure.as_ref(), *attempts),
        Explanation::Behind { event, position } => (
            format!("It waits behind event {event} of its key, at position {position}, which goes first."),
            Some(format!("`sendoff explain {event}` says what that one waits for")),
        ),
        Explanation::TargetPaused => (
            "Its target is paused by an operator.".to_owned(),
            Some("`sendoff resume TARGET` lets it go on".to_owned()),
        ),
        Explanation::NoWorker => (
            "No worker is there for its target.".to_owned(),
            Some(
                "`sendoff run` with this target starts one; `sendoff workers` shows who is there".to_owned(),
            ),
        ),
        Explanation::Unleased { lane } => {
            (format!("No worker has its lane, {lane}, yet; one will take it within a lease."), None)
        }
        Explanation::Uncovered { lane } => uncovered(*lane),
        Explanation::Leased { lane, worker, name, until, before } => {
            let (until, first) = (moment(*until), goes_first(*before));
            (format!("Worker {worker} ({name}) has its lane, {lane}, until {until}: {first}."), None)
        }
        Explanation::SinkDown { worker, name, down, .. } => (
            format!(
                "Its sink is down since {}, says worker {worker} ({name}): {}. It is delivered when the sink is back; no attempt is spent meanwhile.",
                moment(down.since),
                down.error.trim_end_matches('.')
            ),
            Some(
                "`sendoff config check FILE --connect` asks every server that a configuration names"
                    .to_owned(),
            ),
        ),
        Explanation::Abandoned { lane, worker, since } => (
            format!(
                "Worker {worker} had its lane, {lane}, and was lost: its lease ended at {}. The next worker takes it over.",
                moment(*since)
            ),
            Some("`sendoff workers` shows whether one is there".to_owned()),
        ),
    }
}

/// It failed: until when it waits, or for whom.
fn parked(
    id: EventId,
    until: Option<i64>,
    failure: Option<&Failure>,
    attempts: Attempts,
) -> (String, Option<String>) {
    let redrive = format!("`sendoff redrive {id}` tries it again now");
    let tries = tries(attempts);
    let why = failure.map(|failure| format!(": {}", reason(failure))).unwrap_or_default();
    match until {
        Some(until) => {
            (format!("It failed and is tried again at {}, after {tries}{why}.", moment(until)), Some(redrive))
        }
        None => (
            format!(
                "Its attempts ran out after {tries}, and it waits for an operator, as its key does{why}."
            ),
            Some(format!("{redrive}; `sendoff cancel {id}` takes it out, and its key goes on")),
        ),
    }
}

fn uncovered(lane: Lane) -> (String, Option<String>) {
    let sentence = format!(
        "Nobody has its lane, {lane}, and nobody will take it: the workers of its target were all started for other lanes."
    );
    let advice = format!(
        "`sendoff workers` shows which lanes each may have; start one that may have {lane}: `sendoff run` without --lanes, or with it among them"
    );
    (sentence, Some(advice))
}

/// What goes before it, in its lane.
fn goes_first(before: u64) -> String {
    match before {
        0 => "it is in flight, or is next".to_owned(),
        COUNT_MAX.. => format!("{COUNT_MAX} or more events of the lane go first"),
        1 => "one event of the lane goes first".to_owned(),
        count => format!("{count} events of the lane go first"),
    }
}

fn tries(attempts: Attempts) -> String {
    let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    match (attempts.failures, attempts.crashes) {
        (0, 0) => "no attempt".to_owned(),
        (failures, 0) => format!("failing {}", times(failures)),
        (0, crashes) => format!("crashing its worker {}", times(crashes)),
        (failures, crashes) => {
            format!("failing {} and crashing its worker {}", times(failures), times(crashes))
        }
    }
}

fn reason(failure: &Failure) -> String {
    format!("{}, {}", failure.cause.word(), failure.error.trim_end_matches('.'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use sendoff::outbox::{Cause, SinkDown};

    use super::*;

    const ID: &str = "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001";
    const AT: i64 = 1_700_000_000_000_000;
    const WHEN: &str = "2023-11-14T22:13:20.000Z";

    fn said(explanation: &Explanation) -> (String, String) {
        let (sentence, advice) = sentence(ID.parse().unwrap(), explanation);
        (sentence, advice.unwrap_or_default())
    }

    fn all_say(cases: impl IntoIterator<Item = (Explanation, String, &'static str)>) {
        for (explanation, expected, advice) in cases {
            assert!(WHY.contains(&Explained::facts(&explanation).why), "{explanation:?}");
            let (sentence, said_advice) = said(&explanation);
            assert_eq!(sentence, expected);
            assert!(
                said_advice.contains(advice) && said_advice.is_empty() == advice.is_empty(),
                "{said_advice}"
            );
        }
    }

    #[test]
    fn what_failed_or_is_over_has_its_sentence() {
        let failure = Failure::new(Cause::Transient, "no room.");
        let failed = Attempts { failures: 3, crashes: 0 };
        all_say([
            (
                Explanation::NoSuchEvent,
                format!(
                    "There is no event {ID}: it was delivered and is not kept, was cancelled, or never committed."
                ),
                "",
            ),
            (Explanation::Published { at: AT }, format!("It was delivered at {WHEN}."), ""),
            (
                Explanation::Dead {
                    since: AT,
                    failure: failure.clone(),
                    attempts: Attempts { failures: 1, crashes: 2 },
                },
                format!(
                    "It is dead since {WHEN}, after failing once and crashing its worker 2 times: transient, no room."
                ),
                "sendoff redrive",
            ),
            (
                Explanation::NotDue { at: AT },
                format!("It is to be delivered at {WHEN}, which is not yet."),
                "",
            ),
            (
                Explanation::Parked { until: Some(AT), failure: Some(failure.clone()), attempts: failed },
                format!("It failed and is tried again at {WHEN}, after failing 3 times: transient, no room."),
                "sendoff redrive",
            ),
            (
                Explanation::Parked { until: None, failure: None, attempts: failed },
                "Its attempts ran out after failing 3 times, and it waits for an operator, as its key does."
                    .to_owned(),
                "sendoff cancel",
            ),
        ]);
    }

    #[test]
    fn what_waits_has_its_sentence() {
        let worker = WorkerId(ID.parse().unwrap());
        let leased =
            |before| Explanation::Leased { lane: 7, worker, name: "a".to_owned(), until: AT, before };
        all_say([
            (
                Explanation::Behind { event: ID.parse().unwrap(), position: 4 },
                format!("It waits behind event {ID} of its key, at position 4, which goes first."),
                "sendoff explain",
            ),
            (Explanation::TargetPaused, "Its target is paused by an operator.".to_owned(), "sendoff resume"),
            (Explanation::NoWorker, "No worker is there for its target.".to_owned(), "sendoff run"),
            (
                Explanation::Unleased { lane: 7 },
                "No worker has its lane, 7, yet; one will take it within a lease.".to_owned(),
                "",
            ),
            (
                Explanation::Uncovered { lane: 7 },
                "Nobody has its lane, 7, and nobody will take it: the workers of its target were all started for other lanes."
                    .to_owned(),
                "without --lanes",
            ),
            (
                leased(0),
                format!("Worker {worker} (a) has its lane, 7, until {WHEN}: it is in flight, or is next."),
                "",
            ),
            (
                leased(1),
                format!(
                    "Worker {worker} (a) has its lane, 7, until {WHEN}: one event of the lane goes first."
                ),
                "",
            ),
            (
                leased(COUNT_MAX),
                format!(
                    "Worker {worker} (a) has its lane, 7, until {WHEN}: 100000 or more events of the lane go first."
                ),
                "",
            ),
            (
                Explanation::SinkDown {
                    lane: 7,
                    worker,
                    name: "a".to_owned(),
                    down: SinkDown { since: AT, error: "refused.".to_owned() },
                },
                format!(
                    "Its sink is down since {WHEN}, says worker {worker} (a): refused. It is delivered when the sink is back; no attempt is spent meanwhile."
                ),
                "--connect",
            ),
            (
                Explanation::Abandoned { lane: 7, worker, since: AT },
                format!(
                    "Worker {worker} had its lane, 7, and was lost: its lease ended at {WHEN}. The next worker takes it over."
                ),
                "sendoff workers",
            ),
        ]);
    }
}
