//! (a) all that was committed, (b) nothing else, (d) in order, (e) twice only for a reason.

use std::collections::BTreeMap;

use super::facts::{Delivered, Event, Facts};
use super::ownership::Late;
use super::{Rules, Violation};
use crate::history::{FaultKind, Settling};

/// What can make an event arrive twice.
const DOUBLING: [FaultKind; 11] = [
    FaultKind::Crash,
    FaultKind::Drop,
    FaultKind::Freeze,
    FaultKind::Outage,
    FaultKind::StoreError,
    FaultKind::StoreReplyLost,
    FaultKind::SinkHangs,
    FaultKind::Stray,
    FaultKind::SinkReplyLost,
    FaultKind::SinkSlow,
    FaultKind::Killed,
];

/// What can keep a worker from renewing its leases: it then has little time left for a while, and gives up calls that would have been answered.
const DELAYING: [FaultKind; 4] =
    [FaultKind::Freeze, FaultKind::Outage, FaultKind::StoreError, FaultKind::StoreReplyLost];

pub(super) fn check(rules: &Rules, facts: &Facts, late: &Late) -> Result<(), Violation> {
    for event in facts.events.values() {
        nothing_else(event)?;
        explain_doubles(rules, event, facts)?;
    }
    in_order(facts, late)?;
    for event in facts.events.values().filter(|event| event.committed.is_some()) {
        delivered_or_dead(event)?;
    }
    Ok(())
}

/// (a)
fn delivered_or_dead(event: &Event) -> Result<(), Violation> {
    let position = event.position;
    let wrong = |text: &str| Err(Violation::new('a', format!("event {position} {text}")).of([position]));
    let published = event.applied.iter().find(|applied| applied.settling == Settling::Published);
    if let Some(published) = published
        && event.deliveries.iter().all(|delivered| delivered.index > published.index)
    {
        return wrong("is settled as published, and was not delivered");
    }
    match (published.is_some(), event.dead.is_some()) {
        (true, true) => wrong("is published and dead"),
        _ if event.is_left => wrong("is left in the outbox"),
        (false, false) => wrong("is neither published nor dead"),
        _ => Ok(()),
    }
}

/// (b)
fn nothing_else(event: &Event) -> Result<(), Violation> {
    let is_touched_at = event.deliveries.first().map(|delivered| delivered.index);
    let is_touched_at = is_touched_at.or_else(|| event.applied.first().map(|applied| applied.index));
    let is_before = |committed: usize| is_touched_at.is_some_and(|touched| touched < committed);
    if event.committed.map_or(is_touched_at.is_some() || event.dead.is_some(), is_before) {
        let text = format!("event {} was not committed, and is delivered or settled", event.position);
        return Err(Violation::new('b', text).of([event.position]));
    }
    Ok(())
}

/// (d) Delayed events do not hold up their key, and dead ones are skipped.
fn in_order(facts: &Facts, late: &Late) -> Result<(), Violation> {
    let mut of_key: BTreeMap<u32, Vec<(usize, &Event)>> = BTreeMap::new();
    for event in facts.events.values().filter(|event| !event.is_delayed && event.dead.is_none()) {
        let in_lease = event.deliveries.iter().find(|delivered| !late.contains(&delivered.index));
        if let (Some(key), Some(first)) = (event.key, in_lease) {
            of_key.entry(key).or_default().push((first.index, event));
        }
    }
    for (key, mut firsts) in of_key {
        firsts.sort_by_key(|(index, _)| *index);
        for pair in firsts.windows(2) {
            let (before, after) = (pair[0].1.position, pair[1].1.position);
            if before > after {
                let text = format!("key {key}: event {before} was delivered before {after}");
                return Err(Violation::new('d', text).of([before, after]));
            }
        }
    }
    Ok(())
}

/// (e)
fn explain_doubles(rules: &Rules, event: &Event, facts: &Facts) -> Result<(), Violation> {
    for pair in event.deliveries.windows(2) {
        let [before, after]: [Delivered; 2] = [pair[0], pair[1]];
        let from = before.invoked.min(after.invoked);
        let is_explained = [before.incarnation, after.incarnation].into_iter().any(|incarnation| {
            let delayed_from = from.saturating_sub(rules.lease);
            facts.faults_of(incarnation, &DOUBLING).any(|fault| fault.meets(from, after.at))
                || facts.faults_of(incarnation, &DELAYING).any(|fault| fault.meets(delayed_from, from))
        });
        if !is_explained {
            let text = format!("event {} was delivered twice, and nothing explains it", event.position);
            let lane = before.proof.lane;
            return Err(Violation::new('e', text).of([event.position]).in_lane(lane));
        }
    }
    Ok(())
}
