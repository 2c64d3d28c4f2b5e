//! Why an event has not been delivered, and which keys stand still.

use std::collections::HashMap;

use super::counts::count_max;
use super::store::paused_name;
use super::{Arg, RowReader, SqlDatabase, SqlOutbox};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::{Event, EventId};
use crate::outbox::{EventState, Explanation, KeyInfo, Lane, Listed, Reason, WorkerId};
use crate::stores::sql::Statement;

/// So many keys' followers are counted in one statement.
const KEYS_COUNTED: usize = 50;

/// The parked event that a key waits for.
pub(super) struct Head {
    pub(super) position: i64,
    pub(super) event: EventId,
    pub(super) is_due: bool,
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn explain_event(&self, id: EventId) -> Result<Explanation, StoreError> {
        let Some(found) = self.locate(id).await? else { return Ok(Explanation::NoSuchEvent) };
        let since = found.since.map_or(0, Timestamp::as_micros);
        match (found.state, found.reason, &found.failure) {
            (EventState::Published, ..) => Ok(Explanation::Published { at: since }),
            (EventState::Dead, _, Some(failure)) => {
                let failure = failure.clone();
                Ok(Explanation::Dead { since, failure, attempts: found.event.attempts })
            }
            (_, Some(Reason::Delayed), _) => {
                Ok(Explanation::NotDue { at: found.due_at.map_or(0, Timestamp::as_micros) })
            }
            (_, Some(reason), _) => self.explain_parked(found, reason).await,
            _ => self.explain_hot(&found).await,
        }
    }

    async fn explain_parked(&self, found: Listed, reason: Reason) -> Result<Explanation, StoreError> {
        if reason == Reason::Behind {
            let head = self.head_of_key(&found.event).await?;
            if let Some(head) = head.filter(|head| head.position != found.event.position) {
                return Ok(Explanation::Behind { event: head.event, position: head.position });
            }
        }
        Ok(Explanation::Parked {
            until: found.due_at.map(Timestamp::as_micros),
            failure: found.failure,
            attempts: found.event.attempts,
        })
    }

    async fn explain_hot(&self, found: &Listed) -> Result<Explanation, StoreError> {
        let event = &found.event;
        // Read as due only if it lies in the future.
        if let Some(later) = found.due_at {
            return Ok(Explanation::NotDue { at: later.as_micros() });
        }
        let lane = event.lane;
        let statement = self.templates.fill(
            include_str!("explain_lane.sql"),
            &[
                ("paused", Arg::from(paused_name(&event.target).as_str())),
                ("target", Arg::from(event.target.as_str())),
                ("lane", Arg::from(lane)),
            ],
        )?;
        let rows = self.read("explain", &statement).await?.pop();
        let Some(mut row) = rows else { return Ok(Explanation::Unleased { lane }) };
        let now = row.moment("now")?;
        if row.int("paused")? > 0 {
            return Ok(Explanation::TargetPaused);
        }
        if let Some(head) = self.head_of_key(event).await? {
            return Ok(Explanation::Behind { event: head.event, position: head.position });
        }
        let is_served = row.int("workers")? > 0;
        let owner = row.optional_uuid("owner")?.map(WorkerId);
        let name = row.optional_text("name")?.unwrap_or_default();
        let until = row.optional_moment("lease_until")?;
        let floor = row.optional_int("floor")?.unwrap_or_default();
        let is_held = owner.is_some() && until.is_some_and(|until| until >= now);
        if is_served && !is_held && !self.census_of(&event.target).await?.covered().contains(lane) {
            return Ok(Explanation::Uncovered { lane });
        }
        Ok(match (owner, until) {
            (Some(worker), Some(until)) if until < now => {
                Explanation::Abandoned { lane, worker, since: until.as_micros() }
            }
            (Some(worker), Some(until)) => {
                if let Some(down) = self.notes().await?.by_worker.remove(&worker) {
                    return Ok(Explanation::SinkDown { lane, worker, name, down });
                }
                let before = self.count_before(event, floor).await?;
                Explanation::Leased { lane, worker, name, until: until.as_micros(), before }
            }
            _ if is_served => Explanation::Unleased { lane },
            _ => Explanation::NoWorker,
        })
    }

    async fn count_before(&self, event: &Event, floor: i64) -> Result<u64, StoreError> {
        let statement = self.templates.fill(
            include_str!("count_before.sql"),
            &[
                ("target", Arg::from(event.target.as_str())),
                ("lane", Arg::from(event.lane)),
                ("above", Arg::from(floor)),
                ("id", Arg::from(event.position)),
                ("limit", count_max()),
            ],
        )?;
        let row = self.read("explain", &statement).await?.pop();
        Ok(row.map_or(Ok(0), |mut row| row.int("count"))?.unsigned_abs())
    }

    async fn head_of_key(&self, event: &Event) -> Result<Option<Head>, StoreError> {
        let Some(statement) = self.head_statement(event)? else { return Ok(None) };
        self.read("explain", &statement).await?.pop().map(Head::read).transpose()
    }

    /// None: the event has no key.
    pub(super) fn head_statement(&self, event: &Event) -> Result<Option<Statement>, StoreError> {
        let Some(key) = &event.key else { return Ok(None) };
        let args = [
            ("target", Arg::from(event.target.as_str())),
            ("lane", Arg::from(event.lane)),
            ("key", Arg::from(key.as_str())),
        ];
        self.templates.fill(include_str!("head_of_key.sql"), &args).map(Some)
    }

    pub(super) async fn keys_parked(&self, target: &str, limit: u32) -> Result<Vec<KeyInfo>, StoreError> {
        let parts = [Reason::Retry, Reason::Blocked, Reason::Diverted].map(|reason| {
            vec![
                ("target", Arg::from(target)),
                ("reason", Arg::from(reason.word())),
                ("limit", Arg::from(limit)),
            ]
        });
        let behind = self.templates.fill(
            include_str!("parked_heads_behind.sql"),
            &[("target", Arg::from(target)), ("most", count_max()), ("limit", Arg::from(limit))],
        )?;
        let mut keys = Vec::new();
        for statement in [self.templates.union(include_str!("parked_heads.sql"), parts)?, behind] {
            let rows = self.read("inspect", &statement).await?;
            keys.extend(rows.into_iter().map(RowReader::key_info).collect::<Result<Vec<_>, _>>()?);
        }
        keys.sort_by_key(|info| info.position);
        // One that changed between the two reads is in both.
        keys.dedup_by_key(|info| info.position);
        keys.truncate(limit as usize);
        self.count_behind(target, &mut keys).await?;
        Ok(keys)
    }

    async fn count_behind(&self, target: &str, keys: &mut [KeyInfo]) -> Result<(), StoreError> {
        let mut counts: HashMap<i64, u64> = HashMap::new();
        let with_key: Vec<(Lane, &str, i64)> =
            keys.iter().filter_map(|info| Some((info.lane, info.key.as_deref()?, info.position))).collect();
        for chunk in with_key.chunks(KEYS_COUNTED) {
            let parts = chunk.iter().map(|(lane, key, position)| {
                vec![
                    ("target", Arg::from(target)),
                    ("lane", Arg::from(*lane)),
                    ("key", Arg::from(*key)),
                    ("head", Arg::from(*position)),
                    ("limit", count_max()),
                ]
            });
            let statement = self.templates.union(include_str!("count_behind.sql"), parts)?;
            for mut row in self.read("inspect", &statement).await? {
                counts.insert(row.int("head")?, row.int("behind")?.unsigned_abs());
            }
        }
        for info in keys {
            info.behind = counts.get(&info.position).copied().unwrap_or_default();
        }
        Ok(())
    }
}

impl Head {
    pub(super) fn read(mut row: RowReader) -> Result<Self, StoreError> {
        let position = row.int("id")?;
        let event = EventId(row.uuid("event_id").unwrap_or_default());
        Ok(Self { position, event, is_due: row.int("is_due")? > 0 })
    }
}

impl RowReader {
    /// A row of `parked_heads.sql`.
    fn key_info(mut self) -> Result<KeyInfo, StoreError> {
        Ok(KeyInfo {
            position: self.int("id")?,
            lane: self.lane()?,
            key: self.optional_text("key")?,
            reason: self.reason()?,
            due_at: self.optional_moment("due_at")?.map(Timestamp::as_micros),
            failure: self.failure()?,
            behind: 0,
        })
    }
}
