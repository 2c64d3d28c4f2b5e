//! An outbox in memory: the reference that the SQL stores are compared with, and enough for tests.

mod inspect;
mod operate;
mod published;
mod tables;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use self::published::History;
use self::tables::{ParkedRow, Tables, WorkerRow};
use super::{MemoryDatabase, MemoryTable, after};
use crate::claim::{
    ClaimSpec, ClaimSpecBuilder, Claimable as _, Key, Record, Table, Timestamp, Value, col, now_plus,
};
use crate::error::StoreError;
use crate::event::{EventId, Limits, NewEvent};
use crate::outbox::{
    Census, Fetch, Fetched, Flush, Hold, HorizonProbe, LANES, Lane, LaneFloor, LaneSet, Leased, Member, Page,
    ParkedFetch, Peer, Place, Reason, Settled, SinkDown, Store, Token, WorkerId, leases,
};

/// An outbox in memory, with a clock of its own.
#[derive(Debug, Clone)]
pub struct MemoryOutbox {
    database: MemoryDatabase,
    lanes: MemoryTable<Record>,
    tables: Arc<Mutex<Tables>>,
    limits: Limits,
}

impl MemoryOutbox {
    /// An empty one.
    ///
    /// # Errors
    /// None in practice: the tables are its own.
    pub fn new() -> Result<Self, StoreError> {
        let database = MemoryDatabase::new();
        let columns = ["target", "lane", "owner", "epoch", "lease_until", "floor", "crashes", "named"];
        let lanes = database.create(Table::new("lane", ["target", "lane"])?, &columns)?;
        let tables = Arc::new(Mutex::new(Tables::new(History::new(&database)?)));
        Ok(Self { database, lanes, tables, limits: Limits::default() })
    }

    /// Takes events within these limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps published events as history.
    #[must_use]
    pub fn keep_published(self, keep: bool) -> Self {
        self.tables().keep_published = keep;
        self
    }

    /// Moves this outbox's clock forward.
    pub fn advance(&self, by: Duration) {
        self.database.advance(by);
    }

    /// What this outbox's clock shows.
    pub fn now(&self) -> Timestamp {
        self.database.lock().now()
    }

    /// A host's transaction: its events are there when it commits, and never if it does not.
    pub fn begin(&self) -> MemoryTransaction {
        MemoryTransaction { outbox: self.clone(), rows: Vec::new() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change to a lane under its token: a claim of that one row.
    async fn under(&self, target: &str, token: Token, change: ClaimSpecBuilder) -> Result<bool, StoreError> {
        let current = col("owner").eq(token.worker.0).and(col("epoch").eq(token.epoch));
        let spec = change.eligible(current).build()?;
        let key = Key(vec![target.into(), Value::Int(token.lane.into())]);
        Ok(self.lanes.claim_one(&spec, &key).await?.is_some())
    }

    /// The tokens that are current.
    fn current(&self, target: &str, tokens: &[Token]) -> HashSet<Lane> {
        let rows = self.lanes.rows();
        let is_current = |token: &Token| {
            rows.iter().any(|row| {
                row.get("target") == Some(&target.into())
                    && row.get("lane") == Some(&Value::Int(token.lane.into()))
                    && row.get("owner") == Some(&Value::Uuid(token.worker.0))
                    && row.get("epoch") == Some(&Value::Int(token.epoch))
            })
        };
        tokens.iter().filter(|token| is_current(token)).map(|token| token.lane).collect()
    }
}

/// A host's transaction on a [`MemoryOutbox`].
#[derive(Debug)]
pub struct MemoryTransaction {
    outbox: MemoryOutbox,
    rows: Vec<Fetched>,
}

impl MemoryTransaction {
    /// Writes events. Their positions are taken now, whenever the transaction commits.
    ///
    /// # Errors
    /// `Rejected` for an event beyond the limits; then none was written.
    pub fn enqueue(&mut self, events: &[NewEvent]) -> Result<Vec<EventId>, StoreError> {
        for event in events {
            event.check(&self.outbox.limits)?;
        }
        let now = self.outbox.now();
        let mut tables = self.outbox.tables();
        let rows: Vec<Fetched> = events.iter().map(|event| tables.row(event, now)).collect();
        let ids = rows.iter().map(|row| row.event.event_id).collect();
        tables.open.extend(rows.iter().map(|row| row.event.position));
        self.rows.extend(rows);
        Ok(ids)
    }

    /// Makes its events visible.
    ///
    /// # Errors
    /// `Rejected` if an event's id is there already; then none is visible.
    pub fn commit(mut self) -> Result<(), StoreError> {
        let rows = std::mem::take(&mut self.rows);
        let mut tables = self.outbox.tables();
        tables.close(&rows);
        tables.insert(rows)
    }
}

impl Drop for MemoryTransaction {
    /// Rolled back: its positions stay empty.
    fn drop(&mut self) {
        self.outbox.tables().close(&self.rows);
    }
}

fn lane_spec() -> ClaimSpecBuilder {
    ClaimSpec::on("lane")
}

#[async_trait]
impl Store for MemoryOutbox {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let until = after(now, member.lease);
        let sink_down = tables.workers.remove(&member.worker).and_then(|row| row.sink_down);
        let (target, name) = (member.target.clone(), member.name.clone());
        let row = WorkerRow { target, name, scope: member.scope, since: now, until, sink_down };
        tables.workers.insert(member.worker, row);
        let target = Value::from(member.target.as_str());
        if !self.lanes.rows().iter().any(|row| row.get("target") == Some(&target)) {
            let rows: Vec<Vec<(&str, Value)>> = (0..LANES)
                .map(|lane| {
                    let zero = || Value::Int(0);
                    let lane = Value::Int(lane.into());
                    vec![
                        ("target", target.clone()),
                        ("lane", lane),
                        ("epoch", zero()),
                        ("floor", zero()),
                        ("crashes", zero()),
                    ]
                })
                .collect();
            self.lanes.insert(&rows)?;
        }
        Ok(())
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let live = |(_, row): &(&WorkerId, &WorkerRow)| row.target == member.target && row.until >= now;
        let peer = |(worker, row): (&WorkerId, &WorkerRow)| Peer { worker: *worker, scope: row.scope };
        let workers = tables.workers.iter().filter(live).map(peer).collect();
        Ok(Census { workers, paused: tables.paused.contains(&member.target) })
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        let table = crate::claim::TableName::parse("lane")
            .map_err(|error| StoreError::rejected("lease", "lane", error.to_string()))?;
        leases::take(&self.lanes, &table, member, &[], lanes, most).await
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        let now = self.now();
        if let Some(row) = self.tables().workers.get_mut(&member.worker) {
            row.until = after(now, member.lease);
        }
        let mut kept = HashSet::new();
        for token in tokens {
            let change = lane_spec().set("lease_until", now_plus(member.lease));
            if self.under(&member.target, *token, change).await? {
                kept.insert(token.lane);
            }
        }
        Ok(kept)
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        for token in tokens {
            let change = lane_spec()
                .set("owner", Value::Null)
                .set("lease_until", Value::Null)
                .set("named", Value::Null);
            self.under(&member.target, *token, change).await?;
        }
        Ok(())
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        let owner = Value::Uuid(member.worker.0);
        let mut tokens = Vec::new();
        for row in self.lanes.rows().iter().filter(|row| row.get("owner") == Some(&owner)) {
            if let (Some(Value::Int(lane)), Some(Value::Int(epoch))) = (row.get("lane"), row.get("epoch")) {
                let lane = Lane::try_from(*lane).unwrap_or_default();
                tokens.push(Token { worker: member.worker, lane, epoch: *epoch });
            }
        }
        self.give(member, &tokens).await?;
        self.tables().workers.remove(&member.worker);
        Ok(())
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let mut page = Page::default();
        for lane in &want.lanes {
            let mut bytes = 0;
            for row in tables.hot_above(&want.target, lane.lane, lane.above).take(lane.limit as usize) {
                if bytes >= want.bytes_per_lane {
                    break;
                }
                if page.events.len() == want.limit as usize {
                    page.ends_in = Some(lane.lane);
                    return Ok(page);
                }
                bytes += row.event.payload.len() as u64;
                let mut row = row.clone();
                row.hold = tables.hold(&row, now);
                row.later = row.later.filter(|later| *later > now);
                page.events.push(row);
            }
        }
        Ok(page)
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let lanes: HashSet<Lane> = want.lanes.iter().map(|lane| lane.lane).collect();
        let mut heads: Vec<&ParkedRow> = tables.heads(&want.target, &lanes).collect();
        heads.sort_by_key(|head| (head.due_at, head.row.event.position));
        let next = heads.iter().filter_map(|head| head.due_at).find(|due| *due > now);
        heads.retain(|head| head.due_at.is_some_and(|due| due <= now));
        let due = heads.iter().map(|head| head.row.event.lane).collect();
        let mut events = Vec::new();
        for head in heads {
            let left = want.limit as usize - events.len().min(want.limit as usize);
            if left == 0 {
                break;
            }
            let mut row = head.row.clone();
            row.hold = if head.reason() == Reason::Delayed { tables.hold(&row, now) } else { Hold::Free };
            events.push(row);
            if head.reason() != Reason::Delayed {
                events.extend(tables.behind(&head.row).take(left - 1).cloned());
            }
        }
        let micros = next.map(|due| due.as_micros() - now.as_micros());
        let next_due = micros.map(|micros| Duration::from_micros(micros.unsigned_abs()));
        Ok(ParkedFetch { events, next_due, due })
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        let tables = self.tables();
        let place = (member.target.clone(), lane, position);
        // What stands for a diverted key is no event.
        let parked = || {
            let parked = tables.parked.get(&place).filter(|parked| parked.reason() != Reason::Diverted);
            parked.map(|parked| parked.row.clone())
        };
        Ok(tables.hot.get(&place).cloned().or_else(parked))
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        self.under(&member.target, token, lane_spec().set("named", position)).await
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let settled = self.apply(flush);
        for token in flush.tokens.iter().filter(|token| flush.calm.contains(&token.lane)) {
            let change = lane_spec().set("crashes", 0).set("named", Value::Null);
            self.under(&flush.target, *token, change).await?;
        }
        Ok(settled)
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        Ok(Some(self.tables().sequence))
    }

    /// Known at once: the open transactions and their positions are on record.
    async fn horizon(&self, _: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        let tables = self.tables();
        Ok(Some(tables.open.first().map_or(tables.sequence, |lowest| lowest - 1)))
    }

    async fn note_sink(&self, member: &Member, down: Option<&str>) -> Result<(), StoreError> {
        let since = self.now().as_micros();
        if let Some(row) = self.tables().workers.get_mut(&member.worker) {
            row.sink_down = down.map(|error| SinkDown { since, error: error.to_owned() });
        }
        Ok(())
    }

    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        for LaneFloor { token, floor } in lanes {
            self.under(&member.target, *token, lane_spec().set("floor", *floor)).await?;
        }
        Ok(())
    }
}

impl MemoryOutbox {
    /// One lock is held across check and change: whoever takes the lane over meanwhile cannot read it before this is done.
    fn apply(&self, flush: &Flush) -> Settled {
        let now = self.now();
        let mut tables = self.tables();
        let current = self.current(&flush.target, &flush.tokens);
        let mut settled = Settled::default();
        let mut keys = HashSet::new();
        for settlement in &flush.settlements {
            if !current.contains(&settlement.lane) {
                settled.stale.insert(settlement.lane);
            } else if !tables.is_as_read(&flush.target, settlement)
                || !tables.apply(&flush.target, settlement, now)
            {
                settled.missing.insert(settlement.position);
            }
            keys.extend(settlement.key.clone().map(|key| (settlement.lane, key)));
        }
        for (lane, key) in keys {
            tables.promote(&flush.target, lane, &key, now);
        }
        settled
    }
}

fn place_hot(mut row: Fetched) -> Fetched {
    row.place = Place::Hot(None);
    row
}
