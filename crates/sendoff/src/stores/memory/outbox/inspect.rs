//! The operator's view of an outbox in memory.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use super::super::after;
use super::tables::{At, DeadRow, ParkedRow, Tables, WorkerRow, at};
use super::{MemoryOutbox, place_hot};
use crate::claim::{Timestamp, Value};
use crate::error::StoreError;
use crate::event::{Attempts, Event, EventId};
use crate::outbox::{
    COUNT_MAX, Cancelled, Counts, Discard, EventState, Explanation, Fetched, Inspect, KeyInfo, Lane,
    LaneInfo, ListQuery, Listed, Purge, Reason, Redrive, Redriven, Selection, TargetCounts, WorkerId,
    WorkerInfo, leases,
};

/// A lane's owner, if it has one: whether its lease has ended, and the lane as it is shown.
struct Owner {
    info: LaneInfo,
}

impl MemoryOutbox {
    fn lane_infos(&self, target: &str, tables: &Tables, now: Timestamp) -> Vec<LaneInfo> {
        let rows = self.lanes.rows();
        let covered = tables.covered(target, now);
        let mine = rows.iter().filter(|row| row.get("target") == Some(&target.into()));
        mine.map(|row| {
            let number = |column| match row.get(column) {
                Some(Value::Int(number)) => *number,
                _ => 0,
            };
            let owner = row.get("owner").and_then(leases::worker_id);
            let until = match row.get("lease_until") {
                Some(Value::Timestamp(until)) => Some(*until),
                _ => None,
            };
            let lane = Lane::try_from(number("lane")).unwrap_or_default();
            LaneInfo {
                lane,
                covered: covered.contains(lane),
                owner,
                name: owner.and_then(|owner| Some(tables.workers.get(&owner)?.name.clone())),
                lease_until: until.map(Timestamp::as_micros),
                expired: until.is_some_and(|until| until < now),
                epoch: number("epoch"),
                floor: number("floor"),
                crashes: u32::try_from(number("crashes")).unwrap_or_default(),
            }
        })
        .collect()
    }

    fn owner(&self, event: &Event, tables: &Tables, now: Timestamp) -> Option<Owner> {
        let lanes = self.lane_infos(&event.target, tables, now);
        let info = lanes.into_iter().find(|info| info.lane == event.lane)?;
        info.owner.is_some().then_some(Owner { info })
    }

    fn hot_state(&self, event: &Event, tables: &Tables, now: Timestamp) -> EventState {
        match self.owner(event, tables, now) {
            None => EventState::Unprocessed,
            Some(owner) if owner.info.expired => EventState::Abandoned,
            Some(_) => EventState::Processing,
        }
    }

    fn all(&self, target: &str, tables: &Tables, now: Timestamp) -> Vec<Listed> {
        let is_targets = |event: &Event| event.target == target;
        let hot = tables.hot.values().filter(|row| is_targets(&row.event)).map(|row| {
            let state = self.hot_state(&row.event, tables, now);
            Listed { due_at: row.later.filter(|later| *later > now), ..listed(&row.event, state) }
        });
        let parked = tables.parked.values().filter(|parked| is_targets(&parked.row.event));
        let parked = parked.filter(|parked| parked.reason() != Reason::Diverted).map(show_parked);
        let dead = tables.dead.values().filter(|dead| is_targets(&dead.event)).map(show_dead);
        let published = tables.published.all();
        let published = published.iter().filter(|published| is_targets(&published.event)).map(|published| {
            Listed { since: Some(published.at), ..listed(&published.event, EventState::Published) }
        });
        let mut all: Vec<Listed> = hot.chain(parked).chain(dead).chain(published).collect();
        all.sort_by_key(|listed| listed.event.position);
        all
    }

    fn targets(&self, tables: &Tables) -> BTreeSet<String> {
        let hot = tables.hot.keys().map(|at| &at.0);
        let parked = tables.parked.keys().map(|at| &at.0);
        let dead = tables.dead.keys().map(|at| &at.0);
        let published = tables.published.all();
        let published = published.iter().map(|published| &published.event.target);
        let written = hot.chain(parked).chain(dead).chain(published).chain(&tables.paused).cloned();
        let lanes = self.lanes.rows();
        let worked_on = lanes.iter().filter_map(|row| match row.get("target") {
            Some(Value::Text(target)) => Some(target.clone()),
            _ => None,
        });
        written.chain(worked_on).collect()
    }

    fn explain_hot(&self, row: &Fetched, tables: &Tables, now: Timestamp) -> Explanation {
        let event = &row.event;
        if let Some(later) = row.later.filter(|later| *later > now) {
            return Explanation::NotDue { at: later.as_micros() };
        }
        if tables.paused.contains(&event.target) {
            return Explanation::TargetPaused;
        }
        if let Some(first) = tables.first_of_key(event) {
            return behind(first);
        }
        let owner = self.owner(event, tables, now);
        let covered = tables.covered(&event.target, now);
        let is_held = owner.as_ref().is_some_and(|owner| !owner.info.expired);
        if !is_held && !covered.is_empty() && !covered.contains(event.lane) {
            return Explanation::Uncovered { lane: event.lane };
        }
        let Some(owner) = owner else {
            return if covered.is_empty() {
                Explanation::NoWorker
            } else {
                Explanation::Unleased { lane: event.lane }
            };
        };
        let (Some(worker), Some(until)) = (owner.info.owner, owner.info.lease_until) else {
            return Explanation::Unleased { lane: event.lane };
        };
        if owner.info.expired {
            return Explanation::Abandoned { lane: event.lane, worker, since: until };
        }
        let name = owner.info.name.unwrap_or_default();
        if let Some(down) = tables.workers.get(&worker).and_then(|row| row.sink_down.clone()) {
            return Explanation::SinkDown { lane: event.lane, worker, name, down };
        }
        let before = tables.hot_above(&event.target, event.lane, 0);
        let before = before.take_while(|other| other.event.position < event.position).count() as u64;
        Explanation::Leased { lane: event.lane, worker, name, until, before: before.min(COUNT_MAX) }
    }
}

fn behind(first: &Event) -> Explanation {
    Explanation::Behind { event: first.event_id, position: first.position }
}

fn listed(event: &Event, state: EventState) -> Listed {
    Listed { event: event.clone(), state, reason: None, due_at: None, failure: None, since: None }
}

fn show_parked(parked: &ParkedRow) -> Listed {
    let state = if parked.reason() == Reason::Delayed { EventState::Unprocessed } else { EventState::Failed };
    Listed {
        event: parked.row.event.clone(),
        state,
        reason: Some(parked.reason()),
        due_at: parked.due_at,
        failure: parked.failure.clone(),
        since: Some(parked.since),
    }
}

fn show_dead(dead: &DeadRow) -> Listed {
    Listed {
        failure: Some(dead.failure.clone()),
        since: Some(dead.since),
        ..listed(&dead.event, EventState::Dead)
    }
}

fn is_selected(selection: &Selection, event: &Event) -> bool {
    match selection {
        Selection::Event(id) => event.event_id == *id,
        Selection::Key { target, key } => event.target == *target && event.key.as_ref() == Some(key),
        Selection::Target(target) => event.target == *target,
    }
}

fn before(now: Timestamp, wait: Duration) -> Timestamp {
    Timestamp::from_micros(2 * now.as_micros() - after(now, wait).as_micros())
}

#[async_trait]
impl Inspect for MemoryOutbox {
    async fn counts(&self) -> Result<Counts, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let targets = self.targets(&tables).into_iter().map(|target| {
            let all = self.all(&target, &tables, now);
            let of = |state| {
                let count = all.iter().filter(|listed| listed.state == state).count() as u64;
                count.min(COUNT_MAX)
            };
            let is_open =
                |listed: &&Listed| !matches!(listed.state, EventState::Dead | EventState::Published);
            let oldest = all.iter().filter(is_open).map(|listed| listed.event.created_at).min();
            let age = oldest.map(|oldest| now.as_micros() - oldest.as_micros());
            TargetCounts {
                unprocessed: of(EventState::Unprocessed),
                processing: of(EventState::Processing),
                failed: of(EventState::Failed),
                abandoned: of(EventState::Abandoned),
                dead: of(EventState::Dead),
                published: of(EventState::Published),
                oldest: age.map(|age| Duration::from_micros(u64::try_from(age).unwrap_or_default())),
                paused: tables.paused.contains(&target),
                target,
            }
        });
        Ok(Counts { targets: targets.collect() })
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let all = self.all(&query.target, &tables, now).into_iter();
        let wanted = all.filter(|listed| listed.state == query.state && listed.event.position > query.after);
        Ok(wanted.take(query.limit as usize).collect())
    }

    async fn get(&self, id: EventId) -> Result<Option<Listed>, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let all = self.targets(&tables).into_iter().flat_map(|target| self.all(&target, &tables, now));
        // Where a host has used an id again, the one that is furthest from its end.
        Ok(all.filter(|listed| listed.event.event_id == id).min_by_key(|listed| {
            let rank = match listed.state {
                EventState::Dead => 2,
                EventState::Published => 3,
                _ => i32::from(listed.reason.is_some()),
            };
            (rank, listed.event.position)
        }))
    }

    async fn explain(&self, id: EventId) -> Result<Explanation, StoreError> {
        let Some(found) = self.get(id).await? else { return Ok(Explanation::NoSuchEvent) };
        let now = self.now();
        let tables = self.tables();
        let since = found.since.map_or(0, Timestamp::as_micros);
        Ok(match (found.state, found.reason, found.failure) {
            (EventState::Published, ..) => Explanation::Published { at: since },
            (EventState::Dead, _, Some(failure)) => {
                Explanation::Dead { since, failure, attempts: found.event.attempts }
            }
            (_, Some(Reason::Delayed), _) => {
                Explanation::NotDue { at: found.due_at.map_or(0, Timestamp::as_micros) }
            }
            (_, Some(reason), failure) => match tables.first_of_key(&found.event) {
                Some(first) if reason == Reason::Behind && first.position != found.event.position => {
                    behind(first)
                }
                _ => Explanation::Parked {
                    until: found.due_at.map(Timestamp::as_micros),
                    failure,
                    attempts: found.event.attempts,
                },
            },
            _ => match tables.hot.get(&at(&found.event)) {
                Some(row) => self.explain_hot(row, &tables, now),
                None => Explanation::NoSuchEvent,
            },
        })
    }

    async fn lanes(&self, target: &str) -> Result<Vec<LaneInfo>, StoreError> {
        let now = self.now();
        Ok(self.lane_infos(target, &self.tables(), now))
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let info = |(id, row): (&WorkerId, &WorkerRow)| {
            let lanes = self.lane_infos(&row.target, &tables, now);
            WorkerInfo {
                worker: *id,
                name: row.name.clone(),
                target: row.target.clone(),
                started_at: row.since.as_micros(),
                lease_until: row.until.as_micros(),
                expired: row.until < now,
                lanes: lanes.iter().filter(|lane| lane.owner == Some(*id)).count() as u64,
                sink_down: row.sink_down.clone(),
                scope: row.scope,
            }
        };
        let mut workers: Vec<WorkerInfo> = tables.workers.iter().map(info).collect();
        workers.sort_by(|a, b| (&a.target, &a.name, a.worker).cmp(&(&b.target, &b.name, b.worker)));
        Ok(workers)
    }

    async fn parked_keys(&self, target: &str, limit: u32) -> Result<Vec<KeyInfo>, StoreError> {
        let tables = self.tables();
        let mut keys: Vec<KeyInfo> = Vec::new();
        for parked in tables.parked.values().filter(|parked| parked.row.event.target == target) {
            let event = &parked.row.event;
            let known = keys.iter_mut().find(|info| event.key.is_some() && info.key == event.key);
            if let (Some(info), true) = (known, parked.reason() != Reason::Delayed) {
                info.behind += u64::from(parked.reason() != Reason::Diverted);
            } else if parked.reason() != Reason::Delayed {
                keys.push(KeyInfo {
                    lane: event.lane,
                    key: event.key.clone(),
                    position: event.position,
                    reason: parked.reason(),
                    due_at: parked.due_at.map(Timestamp::as_micros),
                    behind: 0,
                    failure: parked.failure.clone(),
                });
            }
        }
        keys.sort_by_key(|info| info.position);
        keys.truncate(limit as usize);
        Ok(keys)
    }

    async fn redrive(&self, redrive: &Redrive) -> Result<Redriven, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let mut dead: Vec<(At, Option<String>)> = tables
            .dead
            .iter()
            .filter(|(_, dead)| is_selected(&redrive.selection, &dead.event))
            .map(|(at, dead)| (at.clone(), dead.event.key.clone()))
            .collect();
        dead.sort_by_key(|(at, _)| at.2);
        dead.truncate(redrive.limit as usize);
        let waits = |parked: &&ParkedRow| matches!(parked.reason(), Reason::Retry | Reason::Blocked);
        let mut parked: Vec<At> = tables
            .parked
            .values()
            .filter(|parked| waits(parked) && is_selected(&redrive.selection, &parked.row.event))
            .map(|parked| at(&parked.row.event))
            .collect();
        parked.sort_by_key(|at| at.2);
        parked.truncate(redrive.limit as usize - dead.len());
        let redriven = Redriven { dead: dead.len() as u64, parked: parked.len() as u64 };
        if redrive.dry_run {
            return Ok(redriven);
        }
        for at in &parked {
            if let Some(row) = tables.parked.get_mut(at) {
                row.row.reason = Some(Reason::Retry);
                row.row.event.attempts = Attempts::default();
                // One that is due stays due since then: to ask again and again must not put it off.
                row.due_at = Some(row.due_at.map_or(now, |due| due.min(now)));
            }
        }
        tables.revive_all(&dead, now);
        let what = format!("redrive {}", redrive.selection);
        tables.record(now, &redrive.by, what, redriven.dead + redriven.parked);
        Ok(redriven)
    }

    async fn cancel(&self, id: EventId, by: &str) -> Result<Cancelled, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let hot = tables.hot.iter().find(|(_, row)| row.event.event_id == id);
        let parked = tables.parked.iter().find(|(_, parked)| parked.row.event.event_id == id);
        let parked = parked.filter(|(_, parked)| parked.reason() != Reason::Diverted);
        let (at, row, may_be_due) = match (hot, parked) {
            (Some((at, row)), _) => (at.clone(), place_hot(row.clone()), true),
            (None, Some((at, parked))) => {
                (at.clone(), parked.row.clone(), tables.may_be_in_hand(parked, now))
            }
            (None, None) => return Ok(Cancelled::NoSuchEvent),
        };
        let owner = self.owner(&row.event, &tables, now).filter(|owner| may_be_due && !owner.info.expired);
        if let Some(worker) = owner.and_then(|owner| owner.info.owner) {
            return Ok(Cancelled::MayBeInFlight { worker });
        }
        tables.hot.remove(&at);
        tables.parked.remove(&at);
        if let Some(key) = &row.event.key {
            tables.promote(&at.0, at.1, key, now);
        }
        tables.record(now, by, format!("cancel event {id}"), 1);
        Ok(Cancelled::Yes)
    }

    async fn discard(&self, discard: &Discard) -> Result<u64, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let dead = tables.dead.iter().filter(|(_, dead)| is_selected(&discard.selection, &dead.event));
        let mut dead: Vec<At> = dead.map(|(at, _)| at.clone()).collect();
        dead.sort_by_key(|at| at.2);
        dead.truncate(discard.limit as usize);
        let count = dead.len() as u64;
        if !discard.dry_run {
            dead.iter().for_each(|at| tables.purge_dead(at, now));
            tables.record(now, &discard.by, format!("discard {}", discard.selection), count);
        }
        Ok(count)
    }

    async fn purge(&self, purge: &Purge, batch: u32) -> Result<u64, StoreError> {
        let (target, older_than) = match purge {
            Purge::Published { target, older_than } => {
                let history = self.tables().published.clone();
                return history.purge(target, *older_than, batch).await;
            }
            Purge::Dead { target, older_than } => (target, *older_than),
        };
        let now = self.now();
        let limit = before(now, older_than);
        let mut tables = self.tables();
        let of_target = tables.dead.iter().filter(|(at, dead)| at.0 == *target && dead.since < limit);
        let mut old: Vec<(Timestamp, At)> = of_target.map(|(at, dead)| (dead.since, at.clone())).collect();
        old.sort_by_key(|(since, at)| (*since, at.2));
        old.truncate(batch as usize);
        old.iter().for_each(|(_, at)| tables.purge_dead(at, now));
        Ok(old.len() as u64)
    }

    async fn set_paused(&self, target: &str, paused: bool, by: &str) -> Result<(), StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        if paused {
            tables.paused.insert(target.to_owned());
        } else {
            tables.paused.remove(target);
        }
        let what = if paused { "pause" } else { "resume" };
        tables.record(now, by, format!("{what} target {target}"), 1);
        Ok(())
    }
}
