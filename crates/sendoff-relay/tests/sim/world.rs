//! What the parts of one run share: the outbox, the clock, chance, and the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use sendoff::outbox::WorkerId;
use sendoff::stores::memory::MemoryOutbox;
use tokio::time::Instant;

use crate::history::{Effect, FaultKind, Micros, Nature, Record, Settling, What};
use crate::incarnation::{Incarnation, worker_id};
use crate::mutant::Mutant;
use crate::plan::Plan;

/// What the parts of one run share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) outbox: MemoryOutbox,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    history: Vec<Record>,
    faults_on: bool,
    closing: bool,
    sink_down_until: Option<Instant>,
    natures: BTreeMap<i64, Nature>,
    /// Tries of flaky events so far.
    tries: BTreeMap<i64, u32>,
    /// Committed, and not seen to be settled for good.
    unsettled: BTreeSet<i64>,
    positions: i64,
    killers: u32,
    numbers: Numbers,
}

#[derive(Debug, Default)]
struct Numbers {
    incarnations: u32,
    workers: u32,
    calls: u32,
    transactions: u32,
}

fn next(number: &mut u32) -> u32 {
    *number += 1;
    *number
}

impl World {
    pub(crate) fn new(plan: Plan, mutant: Option<Mutant>, outbox: MemoryOutbox, rng: Rng) -> Self {
        let state = State {
            rng,
            history: Vec::new(),
            faults_on: !plan.is_faultless,
            closing: false,
            sink_down_until: None,
            natures: BTreeMap::new(),
            tries: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            positions: 0,
            killers: plan.killers,
            numbers: Numbers::default(),
        };
        Self { plan, mutant, outbox, began: Instant::now(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Micros {
        self.at(Instant::now())
    }

    fn at(&self, moment: Instant) -> Micros {
        Micros::try_from((moment - self.began).as_micros()).unwrap_or(Micros::MAX)
    }

    pub(crate) fn note(&self, what: What) {
        let at = self.now();
        let mut state = self.state();
        if let What::Settle { position, settling, effect: Effect::Applied, .. } = &what
            && !matches!(settling, Settling::Parked { .. })
        {
            state.unsettled.remove(position);
        }
        state.history.push(Record { at, what });
    }

    pub(crate) fn fault(&self, kind: FaultKind, incarnation: Option<&Incarnation>, until: Instant) {
        let incarnation = incarnation.map(|incarnation| incarnation.number);
        self.note(What::Fault { kind, incarnation, until: self.at(until) });
    }

    pub(crate) fn history(&self) -> Vec<Record> {
        std::mem::take(&mut self.state().history)
    }

    // Chance.

    pub(crate) fn number(&self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.state().rng.u64(range)
    }

    pub(crate) fn index(&self, below: usize) -> usize {
        self.state().rng.usize(0..below.max(1))
    }

    pub(crate) fn millis(&self, range: std::ops::RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.number(range))
    }

    /// True so many times in a thousand.
    pub(crate) fn chance(&self, per_mille: u32) -> bool {
        per_mille > 0 && self.state().rng.u32(0..1_000) < per_mille
    }

    /// The same, while things go wrong at all.
    pub(crate) fn strikes(&self, per_mille: u32) -> bool {
        self.faults_on() && self.chance(per_mille)
    }

    /// A call has come to a point where its incarnation may be lost or stand still; waits while it does.
    pub(crate) async fn pass(&self, incarnation: &Incarnation) {
        if self.strikes(self.plan.rates.crash_in_call) {
            self.fault(FaultKind::Crash, Some(incarnation), Instant::now());
            incarnation.kill();
        } else if self.strikes(self.plan.rates.freeze_in_call) {
            self.freeze(incarnation);
        }
        incarnation.pass().await;
    }

    /// Stands still for a part of its lease, or for more than all of it.
    pub(crate) fn freeze(&self, incarnation: &Incarnation) {
        let lease = u64::try_from(self.plan.lease.as_millis()).unwrap_or(1_000);
        let until = Instant::now() + self.millis(lease / 4..=lease * 5 / 2);
        self.fault(FaultKind::Freeze, Some(incarnation), until);
        incarnation.freeze(until);
    }

    /// A pause of up to so many milliseconds; often none at all.
    pub(crate) async fn pause(&self, most: u64) {
        if most > 0 && self.chance(400) {
            let pause = self.millis(1..=most);
            tokio::time::sleep(pause).await;
        }
    }

    // What goes on.

    pub(crate) fn faults_on(&self) -> bool {
        self.state().faults_on
    }

    pub(crate) fn end_faults(&self) {
        let mut state = self.state();
        state.faults_on = false;
        state.sink_down_until = None;
        drop(state);
        self.note(What::FaultsOff);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state().closing
    }

    pub(crate) fn close(&self) {
        self.state().closing = true;
    }

    pub(crate) fn sink_goes_down(&self, until: Instant) {
        self.state().sink_down_until = Some(until);
        self.fault(FaultKind::SinkDown, None, until);
    }

    pub(crate) fn sink_is_down(&self) -> bool {
        self.state().sink_down_until.is_some_and(|until| Instant::now() < until)
    }

    pub(crate) fn next_incarnation(&self) -> Arc<Incarnation> {
        Arc::new(Incarnation::new(next(&mut self.state().numbers.incarnations)))
    }

    pub(crate) fn next_worker(&self) -> WorkerId {
        let mut state = self.state();
        let chance = state.rng.u64(..);
        worker_id(chance, next(&mut state.numbers.workers))
    }

    pub(crate) fn next_call(&self) -> u32 {
        next(&mut self.state().numbers.calls)
    }

    pub(crate) fn next_transaction(&self) -> u32 {
        next(&mut self.state().numbers.transactions)
    }

    /// The position that the next event written will have: all that write are here.
    pub(crate) fn next_position(&self) -> i64 {
        let mut state = self.state();
        state.positions += 1;
        state.positions
    }

    /// What the event at this position will do.
    pub(crate) fn choose_nature(&self, position: i64) -> Nature {
        let is_killer = {
            let mut state = self.state();
            let is_killer = state.killers > 0 && state.rng.u32(0..12) == 0;
            state.killers -= u32::from(is_killer);
            is_killer
        };
        let nature = if is_killer {
            Nature::Killer
        } else if self.chance(self.plan.poison) {
            Nature::Poison
        } else if self.chance(self.plan.flaky) {
            Nature::Flaky(u32::try_from(self.number(1..=4)).unwrap_or(1))
        } else {
            Nature::Plain
        };
        self.state().natures.insert(position, nature);
        nature
    }

    pub(crate) fn nature(&self, position: i64) -> Nature {
        self.state().natures.get(&position).copied().unwrap_or(Nature::Plain)
    }

    /// Which try of this event this is, from 0.
    pub(crate) fn count_try(&self, position: i64) -> u32 {
        let mut state = self.state();
        let tries = state.tries.entry(position).or_default();
        *tries += 1;
        *tries - 1
    }

    pub(crate) fn committed(&self, positions: &[i64]) {
        self.state().unsettled.extend(positions);
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.state().unsettled.is_empty()
    }
}
