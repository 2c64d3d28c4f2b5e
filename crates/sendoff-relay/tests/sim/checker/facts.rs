//! The history, sorted by what it is about.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sendoff::outbox::Cause;

use crate::history::{
    Effect, Failed, FaultKind, IncarnationNo, Micros, Nature, Proof, Record, Settling, What,
};

/// A delivery as the broker saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivered {
    /// Where in the history.
    pub(super) index: usize,
    pub(super) at: Micros,
    pub(super) invoked: Micros,
    pub(super) incarnation: IncarnationNo,
    pub(super) proof: Proof,
}

/// A call of the sink for one event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
    pub(super) index: usize,
    pub(super) call: u32,
    pub(super) is_delivered: bool,
    pub(super) failed: Option<Failed>,
}

/// A settlement that had an effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Applied {
    pub(super) index: usize,
    pub(super) settling: Settling,
}

/// What the outbox has of a dead event.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeadRow {
    pub(super) cause: Cause,
    pub(super) failures: u32,
    pub(super) crashes: u32,
}

/// All about one event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) position: i64,
    pub(super) key: Option<u32>,
    pub(super) nature: Nature,
    pub(super) is_delayed: bool,
    /// Where in the history it was committed, if it was.
    pub(super) committed: Option<usize>,
    pub(super) deliveries: Vec<Delivered>,
    pub(super) tries: Vec<Tried>,
    /// Where in the history it was written down as the one in hand.
    pub(super) named: Vec<usize>,
    pub(super) applied: Vec<Applied>,
    pub(super) dead: Option<DeadRow>,
    pub(super) is_left: bool,
}

/// A fault.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) incarnation: Option<IncarnationNo>,
    pub(super) from: Micros,
    pub(super) until: Micros,
}

impl Fault {
    /// Whether it was on at any time from `from` to `until`.
    pub(super) fn meets(&self, from: Micros, until: Micros) -> bool {
        self.from <= until && self.until >= from
    }
}

/// The history, sorted by what it is about.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) events: BTreeMap<i64, Event>,
    pub(super) faults: Vec<Fault>,
    /// Calls of the sink whose answer has reached the relay.
    pub(super) answered: BTreeSet<u32>,
    /// When things stopped to go wrong.
    pub(super) calm_from: Option<Micros>,
    pub(super) drained: Option<Option<Micros>>,
    pub(super) hung: Vec<u32>,
    pub(super) lasted: Micros,
}

impl Facts {
    pub(super) fn new(history: &[Record]) -> Self {
        let mut facts = Self::default();
        let mut transactions: HashMap<u32, Vec<i64>> = HashMap::new();
        for (index, Record { at, what }) in history.iter().enumerate() {
            facts.lasted = *at;
            match what {
                What::Enqueue { tx, position, key, nature, is_delayed } => {
                    transactions.entry(*tx).or_default().push(*position);
                    facts.events.insert(*position, Event::new(*position, *key, *nature, *is_delayed));
                }
                What::Commit { tx } => {
                    for position in transactions.remove(tx).unwrap_or_default() {
                        if let Some(event) = facts.events.get_mut(&position) {
                            event.committed = Some(index);
                        }
                    }
                }
                What::Fault { kind, incarnation, until } => {
                    let fault = Fault { kind: *kind, incarnation: *incarnation, from: *at, until: *until };
                    facts.faults.push(fault);
                }
                What::Answer { call } => drop(facts.answered.insert(*call)),
                What::FaultsOff => facts.calm_from = Some(*at),
                What::Drained { after } => facts.drained = Some(*after),
                What::Hung { relay } => facts.hung.push(*relay),
                _ => {
                    let event = what.position().and_then(|position| facts.events.get_mut(&position));
                    if let Some(event) = event {
                        event.note(index, *at, what);
                    }
                }
            }
        }
        facts
    }

    /// Faults of this kind that this incarnation, or the whole world, has met.
    pub(super) fn faults_of<'a>(
        &'a self,
        incarnation: IncarnationNo,
        kinds: &'a [FaultKind],
    ) -> impl Iterator<Item = &'a Fault> {
        self.faults.iter().filter(move |fault| {
            kinds.contains(&fault.kind) && fault.incarnation.is_none_or(|its| its == incarnation)
        })
    }
}

impl Event {
    fn new(position: i64, key: Option<u32>, nature: Nature, is_delayed: bool) -> Self {
        Self {
            position,
            key,
            nature,
            is_delayed,
            committed: None,
            deliveries: Vec::new(),
            tries: Vec::new(),
            named: Vec::new(),
            applied: Vec::new(),
            dead: None,
            is_left: false,
        }
    }

    fn note(&mut self, index: usize, at: Micros, what: &What) {
        match *what {
            What::Try { call, .. } => {
                self.tries.push(Tried { index, call, is_delivered: false, failed: None });
            }
            What::Deliver { incarnation, proof, call, invoked, .. } => {
                self.deliveries.push(Delivered { index, at, invoked, incarnation, proof });
                self.tries.iter_mut().filter(|tried| tried.call == call).for_each(|tried| {
                    tried.is_delivered = true;
                });
            }
            What::Fail { call, how, .. } => {
                self.tries.iter_mut().filter(|tried| tried.call == call).for_each(|tried| {
                    tried.failed = Some(how);
                });
            }
            What::Name { .. } => self.named.push(index),
            What::Settle { settling, effect: Effect::Applied, .. } => {
                self.applied.push(Applied { index, settling });
            }
            What::Dead { cause, failures, crashes, .. } => {
                self.dead = Some(DeadRow { cause, failures, crashes });
            }
            What::Left { .. } => self.is_left = true,
            _ => {}
        }
    }
}
