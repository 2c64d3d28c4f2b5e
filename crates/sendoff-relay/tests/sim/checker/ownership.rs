//! (c) one owner at a time, (f) only the owner settles, and which deliveries came after the lease of who sent them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sendoff::outbox::Lane;

use super::facts::Facts;
use super::{Rules, Violation};
use crate::history::{Effect, FaultKind, IncarnationNo, Micros, Proof, Record, What};

/// A lane as the history tells it.
#[derive(Debug, Clone, Copy)]
struct Owned {
    proof: Proof,
    incarnation: IncarnationNo,
    until: Micros,
    /// It was renewed after it had ended, since nobody else had asked for it: then it had ended.
    lapsed: Option<Micros>,
    is_given: bool,
}

/// What exclusive relays go by.
const BATON: Lane = 0;

/// Where in the history the late deliveries are.
pub(super) type Late = BTreeSet<usize>;

/// Replays the leases.
pub(super) fn check(rules: &Rules, history: &[Record], facts: &Facts) -> Result<Late, Violation> {
    let mut lanes: BTreeMap<Lane, Owned> = BTreeMap::new();
    let mut late = Late::new();
    for (index, Record { at, what }) in history.iter().enumerate() {
        match what {
            What::Take { incarnation, proof, lease, .. } => {
                take(&mut lanes, *proof, *incarnation, *at, at + lease)?;
            }
            What::Renew { proof, kept, lease } => renew(&mut lanes, *proof, *kept, *at, at + lease)?,
            What::Give { proof } => {
                if let Some(owned) = lanes.get_mut(&proof.lane).filter(|owned| owned.proof == *proof) {
                    owned.is_given = true;
                }
            }
            What::Leave { worker } => {
                lanes.values_mut().filter(|owned| owned.proof.worker == *worker).for_each(|owned| {
                    owned.is_given = true;
                });
            }
            What::Settle { proof, position, effect, .. } => {
                let is_owner =
                    lanes.get(&proof.lane).is_some_and(|owned| owned.proof == *proof && !owned.is_given);
                if is_owner == (*effect == Effect::Stale) {
                    let text = format!("event {position} settled under {proof:?}: {effect:?}");
                    return Err(Violation::new('f', text).of([*position]).in_lane(proof.lane));
                }
            }
            What::Deliver { incarnation, proof, position, invoked, .. } => {
                still_runs(facts, *incarnation, *position, *invoked)?;
                let is_in_lease = |owned: &&Owned| {
                    let is_owner =
                        owned.proof.worker == proof.worker && !owned.is_given && *at <= owned.until;
                    is_owner && owned.lapsed.is_none_or(|lapsed| lapsed < *invoked)
                };
                let owned = lanes.get(&proof.lane).filter(|owned| owned.proof == *proof).filter(is_in_lease);
                // Who works alone does so for as long as it has what the others wait for.
                let may_work = !rules.exclusive || lanes.get(&BATON).is_some_and(|baton| is_in_lease(&baton));
                if owned.is_none() || !may_work {
                    explain_late(facts, *incarnation, *proof, *position, (*invoked, *at))?;
                    late.insert(index);
                }
            }
            _ => {}
        }
    }
    released_at_the_end(&lanes, facts)?;
    Ok(late)
}

fn take(
    lanes: &mut BTreeMap<Lane, Owned>,
    proof: Proof,
    incarnation: IncarnationNo,
    at: Micros,
    until: Micros,
) -> Result<(), Violation> {
    if let Some(before) = lanes.get(&proof.lane) {
        let problem = if before.proof.epoch >= proof.epoch {
            Some("its epoch is not higher than the one before")
        } else if !before.is_given && at <= before.until {
            Some("the lease before it has not ended")
        } else {
            None
        };
        if let Some(problem) = problem {
            let text = format!("lane taken under {proof:?} after {:?}: {problem}", before.proof);
            return Err(Violation::new('c', text).in_lane(proof.lane));
        }
    }
    lanes.insert(proof.lane, Owned { proof, incarnation, until, lapsed: None, is_given: false });
    Ok(())
}

fn renew(
    lanes: &mut BTreeMap<Lane, Owned>,
    proof: Proof,
    kept: bool,
    at: Micros,
    until: Micros,
) -> Result<(), Violation> {
    let owned = lanes.get_mut(&proof.lane).filter(|owned| owned.proof == proof && !owned.is_given);
    match (owned, kept) {
        (Some(owned), true) => {
            if at > owned.until {
                owned.lapsed = Some(owned.until);
            }
            owned.until = until;
            Ok(())
        }
        (None, false) => Ok(()),
        (owned, _) => {
            let owned = if owned.is_some() { "refused to its owner" } else { "renewed by another" };
            Err(Violation::new('c', format!("lease {proof:?} {owned}")).in_lane(proof.lane))
        }
    }
}

/// Who is gone calls nobody.
fn still_runs(
    facts: &Facts,
    incarnation: IncarnationNo,
    position: i64,
    invoked: Micros,
) -> Result<(), Violation> {
    let ends = [FaultKind::Crash, FaultKind::Drop, FaultKind::Killed];
    if facts.faults_of(incarnation, &ends).any(|fault| fault.from < invoked) {
        let text = format!("event {position} sent by incarnation {incarnation}, which was gone");
        return Err(Violation::new('c', text).of([position]));
    }
    Ok(())
}

/// (d) for late deliveries.
fn explain_late(
    facts: &Facts,
    incarnation: IncarnationNo,
    proof: Proof,
    position: i64,
    (invoked, at): (Micros, Micros),
) -> Result<(), Violation> {
    let delays = [FaultKind::Freeze, FaultKind::Stray];
    if facts.faults_of(incarnation, &delays).any(|fault| fault.meets(invoked, at)) {
        return Ok(());
    }
    let text =
        format!("event {position} delivered under {proof:?}, after that lease, and nothing held it up");
    Err(Violation::new('d', text).of([position]).in_lane(proof.lane))
}

/// (l) A relay that stops without a fault leaves no lease behind.
fn released_at_the_end(lanes: &BTreeMap<Lane, Owned>, facts: &Facts) -> Result<(), Violation> {
    let mut was_hurt: HashMap<IncarnationNo, bool> = HashMap::new();
    for (lane, owned) in lanes.iter().filter(|(_, owned)| !owned.is_given) {
        let is_hurt = |incarnation: IncarnationNo| {
            facts.faults.iter().any(|fault| {
                fault.incarnation == Some(incarnation)
                    && !matches!(fault.kind, FaultKind::SinkPartial | FaultKind::SinkFails)
            })
        };
        let known = was_hurt.entry(owned.incarnation).or_insert_with(|| is_hurt(owned.incarnation));
        if !*known {
            let text =
                format!("lane {lane} still belongs to incarnation {}, which stopped", owned.incarnation);
            return Err(Violation::new('l', text).in_lane(*lane));
        }
    }
    Ok(())
}
