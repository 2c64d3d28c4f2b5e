//! Taking one event out.

use super::explain::Head;
use super::listing::nearest;
use super::operate::Locked;
use super::{Arg, RowReader, SqlDatabase, SqlOutbox, SqlTransaction};
use crate::error::StoreError;
use crate::event::EventId;
use crate::outbox::{Cancelled, EventState, Lane, Listed, Reason};
use crate::stores::sql::retry;

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn cancel_event(&self, id: EventId, by: &str) -> Result<Cancelled, StoreError> {
        let subject = self.templates.names.subject();
        retry("cancel", &subject, self.database.time_to_try(), || self.cancel_once(id, by)).await
    }

    async fn cancel_once(&self, id: EventId, by: &str) -> Result<Cancelled, StoreError> {
        let mut transaction = self.database.begin("cancel").await?;
        let cancelled = self.cancel_in(transaction.as_mut(), id).await?;
        if cancelled != Cancelled::Yes {
            transaction.rollback().await?;
            return Ok(cancelled);
        }
        transaction.execute(&self.operation(by, &format!("cancel event {id}"), 1)?).await?;
        transaction.commit().await?;
        Ok(cancelled)
    }

    async fn cancel_in(
        &self,
        transaction: &mut dyn SqlTransaction,
        id: EventId,
    ) -> Result<Cancelled, StoreError> {
        let Some(seen) = self.find_open(transaction, id).await? else { return Ok(Cancelled::NoSuchEvent) };
        let lane = self.lock_lane(transaction, &seen.event.target, seen.event.lane).await?;
        // Again, now that nobody can move it. It never changes its lane.
        let Some(found) = self.find_open(transaction, id).await? else { return Ok(Cancelled::NoSuchEvent) };
        if (&found.event.target, found.event.lane) != (&seen.event.target, seen.event.lane) {
            return Ok(Cancelled::NoSuchEvent);
        }
        if let (Some(worker), false) = (lane.owner, lane.expired)
            && self.may_be_in_flight(transaction, &found).await?
        {
            return Ok(Cancelled::MayBeInFlight { worker });
        }
        let event = &found.event;
        let place = (event.target.as_str(), event.lane);
        let template = if found.reason.is_some() {
            include_str!("delete_parked.sql")
        } else {
            include_str!("delete_events.sql")
        };
        if self.change_rows(transaction, template, place, &[event.position]).await? == 0 {
            return Ok(Cancelled::NoSuchEvent);
        }
        if let Some(key) = &event.key {
            self.promote_keys(transaction, place, &[key.as_str()]).await?;
        }
        Ok(Cancelled::Yes)
    }

    /// The event, if it is neither dead nor delivered.
    async fn find_open(
        &self,
        transaction: &mut dyn SqlTransaction,
        id: EventId,
    ) -> Result<Option<Listed>, StoreError> {
        let rows = transaction.query(&self.locate_statement(id)?).await?;
        let found =
            rows.into_iter().map(|row| RowReader::new(row).listed()).collect::<Result<Vec<_>, _>>()?;
        let is_open = |found: &Listed| !matches!(found.state, EventState::Dead | EventState::Published);
        Ok(nearest(found).filter(is_open))
    }

    /// Locks a lane, and makes it first where no worker has come yet: one that comes now must wait.
    async fn lock_lane(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        lane: Lane,
    ) -> Result<Locked, StoreError> {
        if let Some(locked) = self.lock_lanes(transaction, target, [lane]).await?.remove(&lane) {
            return Ok(locked);
        }
        let rows = Arg::Rows(vec![vec![Arg::from(target), Arg::from(lane)]]);
        let make = self.templates.fill(include_str!("join_lanes.sql"), &[("rows", rows)])?;
        transaction.execute(&make).await?;
        let locked = self.lock_lanes(transaction, target, [lane]).await?.remove(&lane);
        Ok(locked.unwrap_or(Locked { owner: None, expired: false }))
    }

    /// Whether the owner of its lane may have it in hand: what waits behind an event that is due is handed out together with it.
    async fn may_be_in_flight(
        &self,
        transaction: &mut dyn SqlTransaction,
        found: &Listed,
    ) -> Result<bool, StoreError> {
        let Some(reason) = found.reason else { return Ok(true) };
        if self.is_past(transaction, found).await? {
            return Ok(true);
        }
        if reason != Reason::Behind {
            return Ok(false);
        }
        let Some(statement) = self.head_statement(&found.event)? else { return Ok(false) };
        let head = transaction.query(&statement).await?.pop();
        let head = head.map(|row| Head::read(RowReader::new(row))).transpose()?;
        Ok(head.is_some_and(|head| head.is_due))
    }

    async fn is_past(
        &self,
        transaction: &mut dyn SqlTransaction,
        found: &Listed,
    ) -> Result<bool, StoreError> {
        let Some(due) = found.due_at else { return Ok(false) };
        let statement = self.templates.fill("SELECT {now} AS now", &[])?;
        let row = transaction.query(&statement).await?.pop();
        let now = row.map(|row| RowReader::new(row).moment("now")).transpose()?;
        Ok(now.is_none_or(|now| due <= now))
    }
}
