//! Many seeds, on as many threads as there are processors, and what they add up to.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sendoff::outbox::{OnExhausted, WorkerConfig};

use crate::checker::{Figures, Rules, Violation, check};
use crate::history::{FaultKind, Record};
use crate::life::live;
use crate::mutant::Mutant;
use crate::plan::{Plan, Sharing};

/// So many seeds take minutes: fewer are not worth a line of progress.
const LONG_RUN: u64 = 100_000;

/// A seed that was found to break a rule.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) seed: u64,
    pub(crate) violation: Violation,
    plan: Plan,
    history: Vec<Record>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let story = self.violation.story(&self.history);
        let Self { seed, violation, plan, .. } = self;
        write!(f, "seed {seed}: {violation}\n{plan:?}\n{story}seed {seed}: {violation}\n")?;
        write!(f, "Again: SIM_SEED={seed} cargo test -p sendoff-relay --test sim seeds")
    }
}

/// Runs one seed and judges it.
pub(crate) fn judge(seed: u64, mutant: Option<Mutant>) -> Result<Figures, Box<Found>> {
    let (plan, history) = live(seed, mutant).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let rules = Rules {
        attempts: plan.attempts,
        crashes: WorkerConfig::default().crashes_max,
        lease: u64::try_from(plan.lease.as_micros()).unwrap_or(u64::MAX),
        diverts: plan.policy == OnExhausted::Divert,
        exclusive: plan.sharing == Sharing::Exclusive,
    };
    let figures = check(&rules, &history).and_then(|figures| no_double_without_a_fault(&plan, figures));
    figures.map_err(|violation| Box::new(Found { seed, violation, plan, history }))
}

fn no_double_without_a_fault(plan: &Plan, figures: Figures) -> Result<Figures, Violation> {
    if plan.is_faultless && (figures.duplicates > 0 || figures.late > 0 || !figures.faults.is_empty()) {
        return Err(Violation::new('e', "a run without a fault is not exact"));
    }
    Ok(figures)
}

/// What many seeds add up to.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    seeds: u64,
    events: u64,
    deliveries: u64,
    duplicates: u64,
    late: u64,
    dead: u64,
    virtual_micros: u64,
    drained_most: u64,
    faults: BTreeMap<FaultKind, u64>,
    took: Duration,
}

impl Totals {
    fn add(&mut self, figures: &Figures) {
        self.seeds += 1;
        self.events += figures.events;
        self.deliveries += figures.deliveries;
        self.duplicates += figures.duplicates;
        self.late += figures.late;
        self.dead += figures.dead;
        self.virtual_micros += figures.lasted;
        self.drained_most = self.drained_most.max(figures.drained);
        for (kind, count) in &figures.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
    }

    fn faults(&self) -> u64 {
        self.faults.values().sum()
    }
}

impl fmt::Display for Totals {
    #[allow(clippy::cast_precision_loss)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.virtual_micros as f64 / 3.6e9;
        let rate = self.seeds as f64 / self.took.as_secs_f64().max(0.001);
        write!(f, "simulation seeds={} events={} deliveries={}", self.seeds, self.events, self.deliveries)?;
        write!(f, " duplicates={} explained={} late={}", self.duplicates, self.duplicates, self.late)?;
        write!(f, " dead={} lost=0 faults={} virtual_hours={hours:.1}", self.dead, self.faults())?;
        write!(f, " drained_most_ms={}", self.drained_most / 1_000)?;
        write!(f, " secs={:.1} seeds_per_sec={rate:.0}\n  faults:", self.took.as_secs_f64())?;
        self.faults.iter().try_for_each(|(kind, count)| write!(f, " {kind:?}:{count}"))
    }
}

/// Runs seeds until all are done or one breaks a rule. Which of several it is may differ from time to time; what a seed does, does not.
pub(crate) fn run(from: u64, count: u64) -> Result<Totals, Box<Found>> {
    let next = AtomicU64::new(from);
    let is_over = AtomicBool::new(false);
    let totals = Mutex::new(Totals::default());
    let found = Mutex::new(None);
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    match judge(seed, None) {
                        Ok(figures) => {
                            let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                            totals.add(&figures);
                            show_progress(&totals, count, began);
                        }
                        Err(violation) => {
                            is_over.store(true, Ordering::Relaxed);
                            found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
                        }
                    }
                }
            });
        }
    });
    let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    totals.took = began.elapsed();
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(found) => Err(found),
        None => Ok(totals),
    }
}

/// Now and then: in place on a terminal, a line for every twentieth elsewhere, so that a log tells how far a run of hours has come.
fn show_progress(totals: &Totals, count: u64, began: Instant) {
    let mut screen = std::io::stderr();
    let is_terminal = screen.is_terminal();
    let step = if is_terminal { 500 } else { (count / 20).max(LONG_RUN / 20) };
    if !totals.seeds.is_multiple_of(step) {
        return;
    }
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = totals.seeds * 1_000 / millis;
    let percent = totals.seeds * 100 / count.max(1);
    let (start, end) = if is_terminal { ("\r", " ") } else { ("", "\n") };
    let _ = write!(
        screen,
        "{start}{percent:>3} %  {} seeds, {rate}/s, {} faults{end}",
        totals.seeds,
        totals.faults()
    );
    let _ = screen.flush();
}
