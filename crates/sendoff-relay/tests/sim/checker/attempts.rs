//! (g) attempts are spent for tries only, and there is an end to them.

use sendoff::outbox::Cause;

use super::facts::{Event, Facts, Tried};
use super::{Rules, Violation};
use crate::history::{Failed, FaultKind, Nature, Settling};

/// A killer may kill so many times more than it is charged for: twice before its lane is worked carefully, and each time that a kill and
/// the end of another lease cannot be told apart.
const UNCHARGED_KILLS: usize = 4;

pub(super) fn check(rules: &Rules, facts: &Facts) -> Result<(), Violation> {
    for event in facts.events.values().filter(|event| event.committed.is_some()) {
        charged_for_tries(rules, event, facts)?;
        died_for_a_reason(rules, event, facts)?;
    }
    let calm_from = facts.calm_from.unwrap_or_default();
    let killers = facts.events.values().filter(|event| event.nature == Nature::Killer).count();
    let kills =
        facts.faults.iter().filter(|fault| fault.kind == FaultKind::Killed && fault.from >= calm_from);
    let kills = kills.count();
    if kills > killers * (rules.crashes as usize + UNCHARGED_KILLS) {
        let text = format!("{killers} killers have killed {kills} times after the last fault");
        let positions = facts.events.values().filter(|event| event.nature == Nature::Killer);
        return Err(Violation::new('g', text).of(positions.map(|event| event.position)));
    }
    Ok(())
}

/// Whether a try may be charged: it failed for now, or nobody knows. An answer that has come back and says otherwise is not.
fn may_be_charged(tried: &Tried, facts: &Facts) -> bool {
    let is_answered = facts.answered.contains(&tried.call);
    let is_blameless = tried.is_delivered || matches!(tried.failed, Some(Failed::Down) | None);
    !(is_answered && is_blameless)
}

fn charged_for_tries(rules: &Rules, event: &Event, facts: &Facts) -> Result<(), Violation> {
    for applied in &event.applied {
        let (failures, crashes) = match applied.settling {
            Settling::Published => continue,
            Settling::Parked { failures, crashes } | Settling::Buried { failures, crashes, .. } => {
                (failures, crashes)
            }
        };
        let tries = event.tries.iter().filter(|tried| tried.index < applied.index);
        let tries = tries.filter(|tried| may_be_charged(tried, facts)).count();
        let names = event.named.iter().filter(|named| **named < applied.index).count();
        let problem = if failures as usize > tries {
            format!("is charged for {failures} failures in {tries} tries that may have failed")
        } else if crashes as usize > names {
            format!("is charged for {crashes} crashes and was in hand alone {names} times")
        } else if failures > rules.attempts {
            format!("is charged for {failures} failures of {}", rules.attempts)
        } else if crashes > rules.crashes {
            format!("is charged for {crashes} crashes of {}", rules.crashes)
        } else {
            continue;
        };
        let text = format!("event {} {problem}", event.position);
        return Err(Violation::new('g', text).of([event.position]));
    }
    Ok(())
}

fn died_for_a_reason(rules: &Rules, event: &Event, facts: &Facts) -> Result<(), Violation> {
    let Some(dead) = event.dead else {
        if matches!(event.nature, Nature::Poison | Nature::Killer) && !event.is_left {
            let text = format!("event {} is a {:?}, and not dead", event.position, event.nature);
            return Err(Violation::new('g', text).of([event.position]));
        }
        return Ok(());
    };
    let is_right = match dead.cause {
        Cause::Rejected => event.nature == Nature::Poison,
        Cause::Transient => dead.failures == rules.attempts,
        Cause::Crash => dead.crashes == rules.crashes,
        Cause::Diverted => {
            // A delayed one meets its key as it finds it.
            let is_before = |other: &&Event| {
                other.key == event.key && (other.position < event.position || event.is_delayed)
            };
            rules.diverts
                && event.key.is_some()
                && facts.events.values().filter(is_before).any(|other| other.dead.is_some())
        }
        Cause::Corrupt => false,
    };
    if is_right {
        return Ok(());
    }
    let text = format!("event {} ({:?}) died as it should not: {dead:?}", event.position, event.nature);
    Err(Violation::new('g', text).of([event.position]))
}
