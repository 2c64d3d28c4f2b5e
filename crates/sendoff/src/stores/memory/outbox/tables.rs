//! The tables of an outbox in memory, and what a settlement does to them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::super::after;
use super::published::History;
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::{Attempts, Event, EventId, NewEvent};
use crate::outbox::{
    Change, Due, Failure, Fetched, Hold, LANES, Lane, LaneSet, Place, Reason, Scope, Settlement, SinkDown,
    WorkerId, rests_on_marker,
};

/// Where a row stands: target, lane, position.
pub(super) type At = (String, Lane, i64);

#[derive(Debug, Clone)]
pub(super) struct ParkedRow {
    pub(super) row: Fetched,
    pub(super) due_at: Option<Timestamp>,
    pub(super) failure: Option<Failure>,
    pub(super) since: Timestamp,
}

impl ParkedRow {
    pub(super) fn reason(&self) -> Reason {
        self.row.reason.unwrap_or(Reason::Behind)
    }
}

#[derive(Debug, Clone)]
pub(super) struct DeadRow {
    pub(super) event: Event,
    pub(super) failure: Failure,
    pub(super) since: Timestamp,
}

#[derive(Debug, Clone)]
pub(super) struct WorkerRow {
    pub(super) target: String,
    pub(super) name: String,
    pub(super) scope: Scope,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    pub(super) sink_down: Option<SinkDown>,
}

/// What an operator did.
#[derive(Debug, Clone)]
#[allow(dead_code, reason = "kept as the SQL stores keep it, for people to read")]
pub(super) struct Operation {
    pub(super) at: Timestamp,
    pub(super) by: String,
    pub(super) what: String,
    pub(super) count: u64,
}

#[derive(Debug)]
pub(super) struct Tables {
    pub(super) sequence: i64,
    /// Positions of transactions that have neither committed nor rolled back.
    pub(super) open: BTreeSet<i64>,
    pub(super) hot: BTreeMap<At, Fetched>,
    pub(super) parked: BTreeMap<At, ParkedRow>,
    pub(super) dead: BTreeMap<At, DeadRow>,
    pub(super) published: History,
    pub(super) workers: BTreeMap<WorkerId, WorkerRow>,
    pub(super) paused: BTreeSet<String>,
    pub(super) operations: Vec<Operation>,
    pub(super) keep_published: bool,
}

impl Tables {
    /// Empty ones, beside this history.
    pub(super) fn new(published: History) -> Self {
        Self {
            sequence: 0,
            open: BTreeSet::new(),
            hot: BTreeMap::new(),
            parked: BTreeMap::new(),
            dead: BTreeMap::new(),
            published,
            workers: BTreeMap::new(),
            paused: BTreeSet::new(),
            operations: Vec::new(),
            keep_published: false,
        }
    }

    /// The lanes that a worker which is there may have.
    pub(super) fn covered(&self, target: &str, now: Timestamp) -> LaneSet {
        let live = self.workers.values().filter(|worker| worker.target == target && worker.until >= now);
        live.fold(LaneSet::NONE, |all, worker| all.with(worker.scope.lanes))
    }

    /// An event with the next position.
    pub(super) fn row(&mut self, new: &NewEvent, now: Timestamp) -> Fetched {
        self.sequence += 1;
        let event = Event {
            event_id: new.event_id.unwrap_or_else(EventId::generate),
            position: self.sequence,
            standing: crate::event::Standing::Lane,
            target: new.target.clone(),
            lane: lane_of(new.key.as_deref(), self.sequence),
            topic: new.topic.clone(),
            key: new.key.clone(),
            payload: new.payload.clone(),
            content_type: new.content_type.clone(),
            headers: new.headers.clone(),
            created_at: now,
            attempts: Attempts::default(),
        };
        Fetched {
            event,
            place: Place::Hot(None),
            hold: Hold::Free,
            later: new.deliver_at,
            reason: None,
            corrupt: None,
        }
    }

    /// The transaction that wrote these is over.
    pub(super) fn close(&mut self, rows: &[Fetched]) {
        for row in rows {
            self.open.remove(&row.event.position);
        }
    }

    pub(super) fn insert(&mut self, rows: Vec<Fetched>) -> Result<(), StoreError> {
        let mut ids: HashSet<EventId> = self.hot.values().map(|row| row.event.event_id).collect();
        if rows.iter().any(|row| !ids.insert(row.event.event_id)) {
            return Err(StoreError::rejected("enqueue", "event", "an event with this id is there already"));
        }
        self.hot.extend(rows.into_iter().map(|row| (at(&row.event), row)));
        Ok(())
    }

    pub(super) fn hot_above(&self, target: &str, lane: Lane, above: i64) -> impl Iterator<Item = &Fetched> {
        let from = (target.to_owned(), lane, above.saturating_add(1));
        let to = (target.to_owned(), lane, i64::MAX);
        self.hot.range(from..=to).map(|(_, row)| row)
    }

    fn parked_of(&self, target: &str, lane: Lane) -> impl Iterator<Item = &ParkedRow> {
        let from = (target.to_owned(), lane, i64::MIN);
        let to = (target.to_owned(), lane, i64::MAX);
        self.parked.range(from..=to).map(|(_, row)| row)
    }

    /// The parked events of a key that hold it up, in order.
    pub(super) fn holding<'a>(
        &'a self,
        target: &str,
        lane: Lane,
        key: &'a str,
    ) -> impl Iterator<Item = &'a ParkedRow> {
        self.parked_of(target, lane).filter(move |parked| {
            parked.reason() != Reason::Delayed && parked.row.event.key.as_deref() == Some(key)
        })
    }

    /// How the key of an event stands.
    pub(super) fn hold(&self, row: &Fetched, now: Timestamp) -> Hold {
        let Some(key) = &row.event.key else { return Hold::Free };
        let Some(head) = self.holding(&row.event.target, row.event.lane, key).next() else {
            return Hold::Free;
        };
        match (head.reason(), head.due_at) {
            (Reason::Diverted, _) => Hold::Diverted,
            (_, Some(due)) if due <= now => Hold::Draining,
            _ => Hold::Held,
        }
    }

    /// Parked events that have a due time and are the first of their key.
    pub(super) fn heads<'a>(
        &'a self,
        target: &'a str,
        lanes: &'a HashSet<Lane>,
    ) -> impl Iterator<Item = &'a ParkedRow> {
        lanes.iter().flat_map(|lane| self.parked_of(target, *lane)).filter(|parked| {
            let event = &parked.row.event;
            let is_first = parked.reason() == Reason::Delayed
                || event.key.as_deref().is_none_or(|key| {
                    let head = self.holding(target, event.lane, key).next();
                    head.is_some_and(|head| head.row.event.position == event.position)
                });
            parked.due_at.is_some() && is_first
        })
    }

    /// What waits behind this head of its key, in order, up to the next one that has a due time of its own. A marker takes all of its key along,
    /// but for other markers.
    pub(super) fn behind<'a>(&'a self, head: &'a Fetched) -> impl Iterator<Item = &'a Fetched> {
        let key = head.event.key.as_deref();
        let is_marker = head.reason == Some(Reason::Diverted);
        key.into_iter()
            .flat_map(|key| self.holding(&head.event.target, head.event.lane, key))
            .filter(|parked| parked.row.event.position > head.event.position)
            .filter(move |parked| !is_marker || parked.reason() != Reason::Diverted)
            .take_while(move |parked| is_marker || parked.reason() == Reason::Behind)
            .map(|parked| &parked.row)
    }

    /// False: it rests on a marker that is not there any more.
    pub(super) fn is_as_read(&self, target: &str, settlement: &Settlement) -> bool {
        let (true, Some(key)) = (rests_on_marker(settlement), settlement.key.as_deref()) else { return true };
        let head = self.holding(target, settlement.lane, key).next();
        head.filter(|head| head.reason() == Reason::Diverted).is_some_and(|marker| {
            let is_itself = marker.row.event.position == settlement.position;
            is_itself || !matches!(settlement.change, Change::Park { .. })
        })
    }

    /// False: there is no such row.
    pub(super) fn apply(&mut self, target: &str, settlement: &Settlement, now: Timestamp) -> bool {
        let at = (target.to_owned(), settlement.lane, settlement.position);
        let taken = match settlement.place {
            Place::Hot(_) => self.hot.remove(&at).map(|row| (row, None)),
            Place::Parked => self.parked.remove(&at).map(|parked| (parked.row, parked.failure)),
        };
        let Some((mut row, last_failure)) = taken else { return false };
        row.place = Place::Parked;
        match &settlement.change {
            Change::Publish => {
                if self.keep_published {
                    self.published.add(row.event, now);
                }
            }
            Change::Park { reason, due, attempts, failure } => {
                let due_at = match due {
                    Due::In(wait) => Some(after(now, *wait)),
                    Due::At(moment) => Some(*moment),
                    Due::Never => None,
                };
                row.reason = Some(*reason);
                row.later = None;
                row.event.attempts = *attempts;
                let failure = failure.clone().or(last_failure);
                self.parked.insert(at, ParkedRow { row, due_at, failure, since: now });
            }
            Change::Bury { attempts, failure, diverts } => {
                row.event.attempts = *attempts;
                if *diverts {
                    self.parked.insert(at.clone(), marker(&row, failure, now));
                }
                self.dead.insert(at, DeadRow { event: row.event, failure: failure.clone(), since: now });
            }
        }
        true
    }

    /// The first of a key that only waited for its turn is due.
    pub(super) fn promote(&mut self, target: &str, lane: Lane, key: &str, now: Timestamp) {
        let head = self.holding(target, lane, key).next();
        let Some(position) =
            head.filter(|head| head.reason() == Reason::Behind).map(|head| head.row.event.position)
        else {
            return;
        };
        if let Some(head) = self.parked.get_mut(&(target.to_owned(), lane, position)) {
            head.due_at = Some(head.due_at.unwrap_or(now));
        }
    }
}

/// What stands for a diverted key among the parked: the event's place, without its content.
pub(super) fn marker(row: &Fetched, failure: &Failure, now: Timestamp) -> ParkedRow {
    let mut row = row.clone();
    row.reason = Some(Reason::Diverted);
    row.event.payload = Vec::new();
    ParkedRow { row, due_at: Some(now), failure: Some(failure.clone()), since: now }
}

pub(super) fn at(event: &Event) -> At {
    (event.target.clone(), event.lane, event.position)
}

/// FNV-1a over the key; events without one go round.
fn lane_of(key: Option<&str>, position: i64) -> Lane {
    let hash = match key {
        Some(key) => key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }),
        None => position.unsigned_abs(),
    };
    Lane::try_from(hash % u64::from(LANES)).unwrap_or_default()
}
