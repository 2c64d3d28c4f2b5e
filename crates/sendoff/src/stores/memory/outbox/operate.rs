//! What operations on events share: a key's dead ones come back or go in order.

use std::collections::BTreeMap;

use super::tables::{At, DeadRow, Operation, ParkedRow, Tables, at, marker};
use crate::claim::Timestamp;
use crate::event::{Attempts, Event};
use crate::outbox::{Fetched, Hold, Lane, Place, Reason};

impl Tables {
    pub(super) fn first_of_key<'a>(&'a self, event: &'a Event) -> Option<&'a Event> {
        let key = event.key.as_deref()?;
        Some(&self.holding(&event.target, event.lane, key).next()?.row.event)
    }

    pub(super) fn record(&mut self, at: Timestamp, by: &str, what: String, count: u64) {
        self.operations.push(Operation { at, by: by.to_owned(), what, count });
    }

    /// A dead letter comes back among the parked, behind what is there of its key.
    pub(super) fn revive(&mut self, at: &At, now: Timestamp) {
        let Some(dead) = self.dead.remove(at) else { return };
        let mut event = dead.event;
        event.attempts = Attempts::default();
        let has_key = event.key.is_some();
        let row = Fetched {
            event,
            place: Place::Parked,
            hold: Hold::Free,
            later: None,
            reason: Some(if has_key { Reason::Behind } else { Reason::Retry }),
            corrupt: None,
        };
        let due_at = (!has_key).then_some(now);
        self.parked.insert(at.clone(), ParkedRow { row, due_at, failure: Some(dead.failure), since: now });
    }

    /// Takes away the markers of a key; the position of the first.
    pub(super) fn unmark(&mut self, target: &str, lane: Lane, key: &str) -> Option<i64> {
        let is_marker = |parked: &&ParkedRow| parked.reason() == Reason::Diverted;
        let markers = self.holding(target, lane, key).filter(is_marker);
        let positions: Vec<i64> = markers.map(|marker| marker.row.event.position).collect();
        for position in &positions {
            self.parked.remove(&(target.to_owned(), lane, *position));
        }
        positions.first().copied()
    }

    /// The first dead one of a key above a position diverts it, if there is one.
    pub(super) fn mark_next(&mut self, target: &str, lane: Lane, key: &str, above: i64, now: Timestamp) {
        let is_of_key =
            |event: &Event| event.target == target && event.lane == lane && event.key.as_deref() == Some(key);
        let next = self.dead.values().find(|dead| is_of_key(&dead.event) && dead.event.position > above);
        let Some(DeadRow { event, failure, .. }) = next.cloned() else { return };
        let at = at(&event);
        let row = Fetched {
            event,
            place: Place::Parked,
            hold: Hold::Free,
            later: None,
            reason: None,
            corrupt: None,
        };
        self.parked.insert(at, marker(&row, &failure, now));
    }

    /// Brings dead letters back, in the order of their positions.
    pub(super) fn revive_all(&mut self, dead: &[(At, Option<String>)], now: Timestamp) {
        let mut keys: BTreeMap<(&str, Lane, &str), i64> = BTreeMap::new();
        for (at, key) in dead {
            if let Some(key) = key {
                keys.insert((&at.0, at.1, key), at.2);
            }
        }
        // A marker stands where its event comes back to: it goes first.
        let marked: Vec<bool> =
            keys.keys().map(|(target, lane, key)| self.unmark(target, *lane, key).is_some()).collect();
        for (at, _) in dead {
            self.revive(at, now);
        }
        for (((target, lane, key), highest), was_marked) in keys.into_iter().zip(marked) {
            if was_marked {
                self.mark_next(target, lane, key, highest, now);
            }
            self.promote(target, lane, key, now);
        }
    }

    /// Deletes a dead letter. If it diverted its key, the next dead one does; if there is none, the key goes on.
    pub(super) fn purge_dead(&mut self, at: &At, now: Timestamp) {
        let marks = self.parked.get(at).is_some_and(|parked| parked.reason() == Reason::Diverted);
        let Some(dead) = self.dead.remove(at) else { return };
        if let (true, Some(key)) = (marks, dead.event.key) {
            let first = self.unmark(&at.0, at.1, &key).unwrap_or(at.2);
            self.mark_next(&at.0, at.1, &key, first - 1, now);
            self.promote(&at.0, at.1, &key, now);
        }
    }

    /// Whether the owner of its lane may have a parked event in hand: what waits behind one that is due is handed out together with it.
    pub(super) fn may_be_in_hand(&self, parked: &ParkedRow, now: Timestamp) -> bool {
        let is_due = |parked: &ParkedRow| parked.due_at.is_some_and(|due| due <= now);
        let event = &parked.row.event;
        let head = event.key.as_deref().and_then(|key| self.holding(&event.target, event.lane, key).next());
        is_due(parked) || (parked.reason() == Reason::Behind && head.is_some_and(is_due))
    }
}
