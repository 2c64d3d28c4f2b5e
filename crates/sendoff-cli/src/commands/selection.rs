//! Which events an operator means.

use anyhow::Result;
use sendoff::EventId;
use sendoff::outbox::{Cause, EventState, Inspect, ListQuery, Listed, Selection};

use crate::args::SelectionArgs;

/// So many events are looked at or changed at a time.
pub(super) const PAGE: u32 = 500;

/// What was asked for.
#[derive(Debug)]
pub(super) enum Wanted<'a> {
    /// The store can tell which.
    All(Selection),
    /// Dead ones that are looked at one by one.
    Matching(Filter<'a>),
}

impl<'a> Wanted<'a> {
    pub(super) fn of(args: &'a SelectionArgs, target: &str) -> Self {
        let filter = Filter {
            topic: args.topic.as_deref(),
            cause: args.cause.map(Cause::from),
            error: args.error.as_deref(),
        };
        let target = target.to_owned();
        match (args.event, &args.key) {
            (Some(event), _) => Self::All(Selection::Event(event)),
            (None, Some(key)) => Self::All(Selection::Key { target, key: key.clone() }),
            (None, None) if filter.is_empty() => Self::All(Selection::Target(target)),
            (None, None) => Self::Matching(filter),
        }
    }

    /// One event and no more.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Self::All(Selection::Event(_)))
    }
}

/// What a dead event must be like.
#[derive(Debug)]
pub(super) struct Filter<'a> {
    topic: Option<&'a str>,
    cause: Option<Cause>,
    error: Option<&'a str>,
}

impl Filter<'_> {
    fn is_empty(&self) -> bool {
        self.topic.is_none() && self.cause.is_none() && self.error.is_none()
    }

    fn takes(&self, listed: &Listed) -> bool {
        let failure = listed.failure.as_ref();
        self.topic.is_none_or(|topic| listed.event.topic == topic)
            && self.cause.is_none_or(|cause| failure.is_some_and(|failure| failure.cause == cause))
            && self.error.is_none_or(|text| failure.is_some_and(|failure| failure.error.contains(text)))
    }

    /// The dead ones of a target that are like it, up to `limit`, lowest position first.
    pub(super) async fn find(&self, inspect: &dyn Inspect, target: &str, limit: u64) -> Result<Vec<EventId>> {
        let mut found = Vec::new();
        let mut query =
            ListQuery { target: target.to_owned(), state: EventState::Dead, after: i64::MIN, limit: PAGE };
        loop {
            let page = inspect.list(&query).await?;
            for listed in page.iter().filter(|listed| self.takes(listed)) {
                if found.len() as u64 == limit {
                    return Ok(found);
                }
                found.push(listed.event.event_id);
            }
            match page.last() {
                Some(last) if page.len() == PAGE as usize => query.after = last.event.position,
                _ => return Ok(found),
            }
        }
    }
}
