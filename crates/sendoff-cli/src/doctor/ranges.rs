//! Which lanes the workers may have: ranges that two relays have, exclusive relays beside others, lanes that nobody may have.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use sendoff::outbox::{LaneSet, WorkerInfo};

use super::finding::{EXCLUSIVE_BESIDE, Finding, SAME_RANGE, Severity, UNCOVERED_LANES};
use super::outbox::is_live;
use super::tables::count;
use crate::site::Site;

/// The live workers of each target.
fn by_target(workers: &[WorkerInfo]) -> BTreeMap<&str, Vec<&WorkerInfo>> {
    let mut targets: BTreeMap<&str, Vec<&WorkerInfo>> = BTreeMap::new();
    for worker in workers.iter().filter(is_live) {
        targets.entry(&worker.target).or_default().push(worker);
    }
    targets
}

/// What can be said of the workers alone.
pub(super) fn examine(workers: &[WorkerInfo]) -> Vec<Finding> {
    let targets = by_target(workers);
    let mut found = Vec::new();
    for (target, workers) in &targets {
        found.extend(same_range(target, workers));
        found.extend(exclusive_beside(target, workers));
    }
    found
}

/// One fixed range, and more than one relay in it. The workers of one relay are no two.
fn same_range(target: &str, workers: &[&WorkerInfo]) -> Vec<Finding> {
    let mut ranges: BTreeMap<LaneSet, BTreeSet<String>> = BTreeMap::new();
    for worker in
        workers.iter().filter(|worker| worker.scope.lanes != LaneSet::ALL && !worker.scope.exclusive)
    {
        let relay = worker.scope.relay.unwrap_or(worker.worker.0);
        ranges.entry(worker.scope.lanes).or_default().insert(relay.to_string());
    }
    let read = |(lanes, relays): (LaneSet, BTreeSet<String>)| {
        let what =
            format!("{} live relays of target {target} were started for the lanes {lanes}.", relays.len());
        let todo = "`sendoff workers` shows who they are: stop what is too much. If one is to stand by for the other, start both with --exclusive.";
        SAME_RANGE.found(what, todo)
    };
    ranges.into_iter().filter(|(_, relays)| relays.len() > 1).map(read).collect()
}

/// An exclusive worker and one that does not stand by for it.
fn exclusive_beside(target: &str, workers: &[&WorkerInfo]) -> Option<Finding> {
    let exclusive = workers.iter().filter(|worker| worker.scope.exclusive);
    let (one, other) = exclusive.into_iter().find_map(|one| {
        let is_beside = |other: &&&WorkerInfo| {
            let stands_by = other.scope.exclusive && other.scope.lanes == one.scope.lanes;
            !stands_by && other.scope.lanes.overlaps(one.scope.lanes)
        };
        Some((one, workers.iter().find(is_beside)?))
    })?;
    let how = if other.scope.exclusive { "exclusive too, for" } else { "not exclusive, for" };
    let what = format!(
        "Worker {} ({}) of target {target} is exclusive for the lanes {}, and worker {} ({}) is {how} the lanes {}.",
        one.worker, one.name, one.scope.lanes, other.worker, other.name, other.scope.lanes
    );
    let todo = "Start all relays of these lanes with --exclusive and with the same --lanes, or none of them.";
    Some(EXCLUSIVE_BESIDE.found(what, todo))
}

/// Lanes that none of the workers may have. Where no worker is there at all, that is said apart.
pub(super) async fn uncovered(site: &Site, workers: &[WorkerInfo]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for (target, workers) in by_target(workers) {
        let covered = workers.iter().fold(LaneSet::NONE, |all, worker| all.with(worker.scope.lanes));
        let uncovered = LaneSet::ALL.without(covered);
        if uncovered.is_empty() {
            continue;
        }
        let mut waiting = 0;
        for lane in uncovered.iter() {
            let lane = i16::try_from(lane).unwrap_or(i16::MAX);
            waiting += count(site, include_str!("outbox/lane_count.sql"), target, Some(lane)).await?;
        }
        let what = format!(
            "No live worker of target {target} may have the lanes {uncovered}; {waiting} events wait in them."
        );
        let todo = format!(
            "Start a relay for them: `sendoff run --target {target} --lanes {uncovered} --sink URL`, or one without --lanes, which takes what the others leave."
        );
        let severity = if waiting > 0 { Severity::Problem } else { Severity::Warning };
        found.push(UNCOVERED_LANES.found(what, todo).at(severity));
    }
    Ok(found)
}
