//! Events as they are shown, one by one.

use super::counts::LaneStates;
use super::{Arg, RowReader, SqlDatabase, SqlOutbox};
use crate::error::{StoreError, StoreErrorKind};
use crate::event::EventId;
use crate::outbox::{EventState, ListQuery, Listed, Reason};
use crate::stores::sql::Statement;

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn list_state(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        let mut listed = match query.state {
            EventState::Unprocessed => {
                let mut listed = self.list_hot(query).await?;
                listed.extend(self.list_parked(query, &[Reason::Delayed]).await?);
                listed
            }
            EventState::Processing | EventState::Abandoned => self.list_hot(query).await?,
            EventState::Failed => {
                self.list_parked(query, &[Reason::Retry, Reason::Behind, Reason::Blocked]).await?
            }
            EventState::Dead => self.list_table(query, include_str!("list_dead.sql")).await?,
            EventState::Published => self.list_table(query, include_str!("list_published.sql")).await?,
        };
        listed.sort_by_key(|listed| listed.event.position);
        // One that was moved aside between two reads is in both.
        listed.dedup_by_key(|listed| listed.event.position);
        listed.truncate(query.limit as usize);
        Ok(listed)
    }

    async fn list_hot(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        let lanes = LaneStates::new(&self.lane_infos(&query.target).await?);
        let parts = lanes.of(query.state).into_iter().map(|lane| {
            let mut args = page(query);
            args.push(("lane", Arg::from(lane)));
            args.push(("above", Arg::from(query.after.max(lanes.floor(lane)))));
            args
        });
        let parts: Vec<_> = parts.collect();
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let mut args = page(query);
        args.push(("parts", Arg::Union(include_str!("list_events_lane.sql"), parts)));
        self.read_listed(&self.templates.fill(include_str!("list_events.sql"), &args)?).await
    }

    async fn list_parked(&self, query: &ListQuery, reasons: &[Reason]) -> Result<Vec<Listed>, StoreError> {
        let parts = reasons.iter().map(|reason| {
            let mut args = page(query);
            args.push(("reason", Arg::from(reason.word())));
            args.push(("above", Arg::from(query.after)));
            args
        });
        let mut args = page(query);
        args.push(("parts", Arg::Union(include_str!("list_parked_reason.sql"), parts.collect())));
        self.read_listed(&self.templates.fill(include_str!("list_parked.sql"), &args)?).await
    }

    async fn list_table(&self, query: &ListQuery, template: &'static str) -> Result<Vec<Listed>, StoreError> {
        let mut args = page(query);
        args.push(("above", Arg::from(query.after)));
        self.read_listed(&self.templates.fill(template, &args)?).await
    }

    /// One event, wherever it is. Where a host has used its id again, the one that is furthest from its end.
    pub(super) async fn locate(&self, id: EventId) -> Result<Option<Listed>, StoreError> {
        let found = self.read_listed(&self.locate_statement(id)?).await?;
        Ok(nearest(found))
    }

    pub(super) fn locate_statement(&self, id: EventId) -> Result<Statement, StoreError> {
        self.templates.fill(include_str!("locate.sql"), &[("event_id", self.templates.event_id(id))])
    }

    async fn read_listed(&self, statement: &Statement) -> Result<Vec<Listed>, StoreError> {
        self.read("inspect", statement).await?.into_iter().map(RowReader::listed).collect()
    }
}

/// Of several events with one id: in the event table, parked, dead, published; then the first.
pub(super) fn nearest(found: Vec<Listed>) -> Option<Listed> {
    found.into_iter().min_by_key(|listed| {
        let rank = match listed.state {
            EventState::Dead => 2,
            EventState::Published => 3,
            _ => i32::from(listed.reason.is_some()),
        };
        (rank, listed.event.position)
    })
}

fn page(query: &ListQuery) -> Vec<(&'static str, Arg)> {
    vec![
        ("target", Arg::from(query.target.as_str())),
        ("state", Arg::from(query.state.word())),
        ("limit", Arg::from(query.limit)),
    ]
}

impl RowReader {
    /// A row of `locate.sql`, or of one that lists.
    pub(super) fn listed(mut self) -> Result<Listed, StoreError> {
        let word = self.text("state")?;
        let state = EventState::ALL.into_iter().find(|state| state.word() == word).ok_or_else(|| {
            StoreError::new(StoreErrorKind::Corrupt, "inspect", "outbox", format!("unknown state `{word}`"))
        })?;
        let target = self.text("target")?;
        // An event that cannot be read whole is shown without its headers.
        let (mut event, _) = self.event(&target)?;
        let reason = self.optional_text("reason")?;
        let due_at = self.optional_moment("due_at")?;
        event.attempts = self.attempts()?;
        let failure = self.failure()?;
        let since = self.optional_moment("since")?;
        let reason = reason.as_deref().and_then(Reason::from_word);
        Ok(Listed { event, state, reason, due_at, failure, since })
    }
}
