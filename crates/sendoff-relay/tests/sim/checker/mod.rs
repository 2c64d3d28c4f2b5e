//! Decides whether a history is one that the guarantees allow. It knows nothing of how the relay works.
//!
//! (a) what was committed is delivered, or dead with a reason; (b) nothing else is; (c) a lane has one owner at a time; (d) the events of a key arrive in order,
//! and what arrives late was held up by something; (e) what arrives twice is explained by a fault; (f) only the owner settles; (g) attempts are counted,
//! and there is an end to them; (l) when nothing goes wrong any more, all is done soon.

mod attempts;
mod delivery;
mod facts;
mod ownership;
pub(crate) mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sendoff::outbox::Lane;

use self::facts::Facts;
use crate::history::{FaultKind, Micros, Record, What};

/// What the history is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// An event is given up after so many failed attempts.
    pub(crate) attempts: u32,
    /// Or so many crashes.
    pub(crate) crashes: u32,
    /// How long a lease lasts.
    pub(crate) lease: Micros,
    /// The rest of a dead event's key dies with it.
    pub(crate) diverts: bool,
    /// Only who has the lowest lane may deliver.
    pub(crate) exclusive: bool,
}

/// A history that must not be.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) letter: char,
    pub(crate) text: String,
    positions: BTreeSet<i64>,
    lanes: BTreeSet<Lane>,
}

impl Violation {
    pub(crate) fn new(letter: char, text: impl Into<String>) -> Self {
        Self { letter, text: text.into(), positions: BTreeSet::new(), lanes: BTreeSet::new() }
    }

    fn of(mut self, positions: impl IntoIterator<Item = i64>) -> Self {
        self.positions.extend(positions);
        self
    }

    fn in_lane(mut self, lane: Lane) -> Self {
        self.lanes.insert(lane);
        self
    }

    /// The part of the history that it is about: its events, what else their keys have, and its lanes.
    pub(crate) fn story(&self, history: &[Record]) -> String {
        let written = |record: &Record| match record.what {
            What::Enqueue { tx, position, key, .. } => Some((tx, position, key)),
            _ => None,
        };
        let keys: BTreeSet<u32> = history
            .iter()
            .filter_map(written)
            .filter(|(_, position, _)| self.positions.contains(position))
            .filter_map(|(_, _, key)| key)
            .collect();
        let mut transactions = BTreeSet::new();
        let mut positions = self.positions.clone();
        for (tx, position, key) in history.iter().filter_map(written) {
            if self.positions.contains(&position) || key.is_some_and(|key| keys.contains(&key)) {
                transactions.insert(tx);
                positions.insert(position);
            }
        }
        let is_told = |what: &What| match what {
            What::Commit { tx } | What::Rollback { tx } => transactions.contains(tx),
            What::Fault { .. }
            | What::FaultsOff
            | What::Start { .. }
            | What::Stop { .. }
            | What::Leave { .. }
            | What::Drained { .. }
            | What::Hung { .. } => true,
            _ => {
                what.position().is_some_and(|position| positions.contains(&position))
                    || what.lane().is_some_and(|lane| self.lanes.contains(&lane))
            }
        };
        let told = history.iter().filter(|record| is_told(&record.what));
        told.map(|record| format!("{record}\n")).collect()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) {}", self.letter, self.text)
    }
}

/// What a history holds, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) events: u64,
    pub(crate) deliveries: u64,
    /// Of those, the ones of events that had been delivered before; each is explained.
    pub(crate) duplicates: u64,
    /// Deliveries after the lease of who sent them.
    pub(crate) late: u64,
    pub(crate) dead: u64,
    pub(crate) faults: BTreeMap<FaultKind, u64>,
    pub(crate) lasted: Micros,
    /// How long it took until all was done after the last fault.
    pub(crate) drained: Micros,
}

/// Decides.
///
/// # Errors
/// The first violation.
pub(crate) fn check(rules: &Rules, history: &[Record]) -> Result<Figures, Violation> {
    let facts = Facts::new(history);
    let late = ownership::check(rules, history, &facts)?;
    attempts::check(rules, &facts)?;
    delivery::check(rules, &facts, &late)?;
    check_end(&facts)?;
    let mut figures = Figures { lasted: facts.lasted, late: late.len() as u64, ..Figures::default() };
    for event in facts.events.values().filter(|event| event.committed.is_some()) {
        figures.events += 1;
        figures.deliveries += event.deliveries.len() as u64;
        figures.duplicates += event.deliveries.len().saturating_sub(1) as u64;
        figures.dead += u64::from(event.dead.is_some());
    }
    for fault in &facts.faults {
        *figures.faults.entry(fault.kind).or_default() += 1;
    }
    figures.drained = facts.drained.flatten().unwrap_or_default();
    Ok(figures)
}

/// (l)
fn check_end(facts: &Facts) -> Result<(), Violation> {
    if let Some(relay) = facts.hung.first() {
        return Err(Violation::new('l', format!("relay {relay} did not stop when it was told to")));
    }
    match facts.drained {
        Some(Some(_)) => Ok(()),
        _ => Err(Violation::new('l', "not all was done in time after the last fault")),
    }
}
