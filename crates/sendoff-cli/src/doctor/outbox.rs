//! What every outbox can be asked, whatever it is in.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use sendoff::outbox::{
    COUNT_MAX, EventState, Inspect, LANES, ListQuery, Listed, Reason, TargetCounts, WorkerInfo,
};

use super::finding::{
    BLOCKED_KEYS, CAREFUL_LANE, DEAD_LETTERS, Finding, LANE_SKEW, LATE, LATE_KEY, NO_WORKER, PAUSED,
    REUSED_EVENT_ID, SAME_NAME, SILENT_WORKER, Severity, WORKER_COUNT,
};
use super::ranges;
use super::report::Report;
use super::scale_out;
use super::tables::count;
use crate::args::DoctorArgs;
use crate::output::{moment, short, span};
use crate::site::Site;

/// An event that workers could deliver may be so old.
const LATE_AFTER: Duration = Duration::from_secs(10 * 60);

/// An event that is tried again and again may be so old.
const LATE_KEY_AFTER: Duration = Duration::from_secs(60 * 60);

/// A worker is silent when its lease ended so long ago: a takeover is under way before.
const SILENT_AFTER: Duration = Duration::from_secs(60);

/// Owners lost in a row from which on a lane is worked carefully.
const CRASHES_CAREFUL: u32 = 2;

/// A skew matters from so many waiting events on.
const SKEW_FROM: u64 = 10_000;

/// No more parked keys are looked at.
const KEYS_MAX: u32 = 1_000;

/// No more of a key is shown.
const KEY_SHOWN: usize = 60;

/// Looks at the workers and at every target. `now` is the database's time.
pub(super) async fn examine(
    site: &Site,
    inspect: &dyn Inspect,
    args: &DoctorArgs,
    now: i64,
    report: &mut Report,
) -> Result<()> {
    let is_wanted = |target: &str| args.target.as_deref().is_none_or(|wanted| wanted == target);
    let workers = match inspect.workers().await {
        Ok(workers) => workers.into_iter().filter(|worker| is_wanted(&worker.target)).collect::<Vec<_>>(),
        Err(error) => return report.take("workers", Err(error.into())),
    };
    let counts = match inspect.counts().await {
        Ok(counts) => {
            counts.targets.into_iter().filter(|counts| is_wanted(&counts.target)).collect::<Vec<_>>()
        }
        Err(error) => return report.take("counts", Err(error.into())),
    };
    let mut found = silent(&workers, now);
    found.extend(same_name(&workers));
    found.extend(ranges::examine(&workers));
    report.take("workers", Ok(found))?;
    report.take("targets", Ok(counts.iter().flat_map(|counts| target(counts, &workers)).collect()))?;
    if let Some(expected) = args.workers {
        report.take("worker-count", Ok(worker_count(args, &counts, &workers, expected)))?;
    }
    let targets: Vec<&TargetCounts> = counts.iter().collect();
    report.take("lanes", lanes(site, inspect, &targets, &workers).await)?;
    report.take("lane-skew", lane_skew(site, &targets).await)?;
    report.take("late", late(inspect, &targets, &workers, now).await)?;
    report.take("parked-keys", parked(inspect, &targets, now).await)?;
    report.take("scale-out", scale_out::examine(inspect, &targets, &workers, now).await)?;
    report.take("event-ids", reused_ids(site, &targets).await)
}

pub(super) fn is_live(worker: &&WorkerInfo) -> bool {
    !worker.expired
}

/// How long ago that was, of two moments in microseconds.
pub(super) fn ago(now: i64, then: i64) -> Duration {
    Duration::from_micros(u64::try_from(now.saturating_sub(then)).unwrap_or_default())
}

/// Workers that were lost. If others of the target are there, its lanes have gone over.
fn silent(workers: &[WorkerInfo], now: i64) -> Vec<Finding> {
    let lost = workers.iter().filter(|worker| worker.expired && ago(now, worker.lease_until) >= SILENT_AFTER);
    let read = |worker: &WorkerInfo| {
        let is_replaced = workers.iter().filter(is_live).any(|other| other.target == worker.target);
        let what = format!(
            "Worker {} ({}) of target {} was to renew its lease by {}, {} ago, and has not been heard of since.",
            worker.worker,
            worker.name,
            worker.target,
            moment(worker.lease_until),
            span(ago(now, worker.lease_until))
        );
        let (todo, severity) = if is_replaced {
            ("Others have taken its lanes. Look at its log for how it ended.", Severity::Note)
        } else {
            ("Look at its log, and start it again with `sendoff run`.", Severity::Warning)
        };
        SILENT_WORKER.found(what, todo).at(severity)
    };
    lost.map(read).collect()
}

fn same_name(workers: &[WorkerInfo]) -> Vec<Finding> {
    let mut names: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for worker in workers.iter().filter(is_live) {
        *names.entry((&worker.target, &worker.name)).or_default() += 1;
    }
    let read = |((target, name), count)| {
        let what = format!("{count} live workers of target {target} are called {name}.");
        SAME_NAME.found(
            what,
            "`sendoff workers` shows since when each is there; `sendoff run --name` tells them apart.",
        )
    };
    names.into_iter().filter(|(_, count)| *count > 1).map(read).collect()
}

/// What the counts of a target say.
fn target(counts: &TargetCounts, workers: &[WorkerInfo]) -> Vec<Finding> {
    let mut found = Vec::new();
    let name = &counts.target;
    let waiting = waiting(counts);
    if counts.paused {
        let what = format!("Target {name} is paused by an operator; {} events wait.", number(waiting));
        found.push(PAUSED.found(what, format!("`sendoff resume {name}` lets it go on.")));
    }
    let is_served = workers.iter().filter(is_live).any(|worker| worker.target == *name);
    if waiting > 0 && !is_served && !counts.paused {
        let what =
            format!("{} events of target {name} wait, and no worker is there for it.", number(waiting));
        found.push(NO_WORKER.found(what, format!("Start one: `sendoff run --target {name} --sink URL`.")));
    }
    if counts.dead > 0 {
        let what = format!("{} events of target {name} are dead.", number(counts.dead));
        let todo = format!(
            "`sendoff list dead --target {name}` shows them and why; `sendoff redrive` tries them again, `sendoff discard` deletes them."
        );
        found.push(DEAD_LETTERS.found(what, todo));
    }
    found
}

/// Events that a worker is to deliver, those that failed apart.
fn waiting(counts: &TargetCounts) -> u64 {
    counts.unprocessed + counts.processing + counts.abandoned
}

/// A count, which is not always all of them.
fn number(count: u64) -> String {
    if count >= COUNT_MAX { format!("{COUNT_MAX} or more") } else { count.to_string() }
}

fn worker_count(
    args: &DoctorArgs,
    counts: &[TargetCounts],
    workers: &[WorkerInfo],
    expected: u16,
) -> Vec<Finding> {
    let mut live: BTreeMap<&str, usize> = counts.iter().map(|counts| (&*counts.target, 0)).collect();
    live.extend(args.target.as_deref().map(|target| (target, 0)));
    for worker in workers.iter().filter(is_live) {
        *live.entry(&worker.target).or_default() += 1;
    }
    let read = |(target, count)| {
        let what = format!("{count} workers of target {target} are there, and {expected} should be.");
        WORKER_COUNT.found(
            what,
            "`sendoff workers` shows who they are: start what is missing, or stop what is too much.",
        )
    };
    live.into_iter().filter(|(_, count)| *count != usize::from(expected)).map(read).collect()
}

/// Lanes that stand still, or nearly.
async fn lanes(
    site: &Site,
    inspect: &dyn Inspect,
    targets: &[&TargetCounts],
    workers: &[WorkerInfo],
) -> Result<Vec<Finding>> {
    let mut found = ranges::uncovered(site, workers).await?;
    found.extend(careful_lanes(inspect, targets).await?);
    Ok(found)
}

async fn careful_lanes(inspect: &dyn Inspect, targets: &[&TargetCounts]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for counts in targets {
        let lanes = inspect.lanes(&counts.target).await?;
        let careful: Vec<_> = lanes.iter().filter(|lane| lane.crashes >= CRASHES_CAREFUL).collect();
        let Some(worst) = careful.iter().max_by_key(|lane| lane.crashes) else { continue };
        let names: Vec<String> = careful.iter().map(|lane| lane.lane.to_string()).collect();
        let what = format!(
            "Owners of {} lanes of target {} were lost again and again without getting on: {}. Lane {} has lost {} in a row.",
            careful.len(),
            counts.target,
            names.join(", "),
            worst.lane,
            worst.crashes
        );
        let todo = "Look at the workers' logs for a crash that comes back. The event that causes it is found by itself and ends as a dead letter; \
                    if workers are killed from outside (memory, deployments), mend that.";
        found.push(CAREFUL_LANE.found(what, todo));
    }
    Ok(found)
}

/// Counts lane by lane, where there is enough for it to matter.
async fn lane_skew(site: &Site, targets: &[&TargetCounts]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for counts in targets.iter().filter(|counts| waiting(counts) > SKEW_FROM) {
        let mut lanes = Vec::new();
        for lane in 0..LANES {
            let lane = i16::try_from(lane).unwrap_or(i16::MAX);
            let waiting =
                count(site, include_str!("outbox/lane_count.sql"), &counts.target, Some(lane)).await?;
            lanes.push((lane, waiting));
        }
        let total: i64 = lanes.iter().map(|(_, waiting)| waiting).sum();
        let Some(&(lane, most)) = lanes.iter().max_by_key(|(_, waiting)| *waiting) else { continue };
        if u64::try_from(total).unwrap_or_default() > SKEW_FROM && most * 2 > total {
            let what = format!(
                "Lane {lane} of target {} holds {most} or more of {total} waiting events that were counted.",
                counts.target
            );
            let todo = "Find the key that most of them have, and give its events finer keys, or none where their order does not matter.";
            found.push(LANE_SKEW.found(what, todo));
        }
    }
    Ok(found)
}

async fn first(inspect: &dyn Inspect, target: &str, state: EventState, after: i64) -> Result<Option<Listed>> {
    let query = ListQuery { target: target.to_owned(), state, after, limit: 1 };
    Ok(inspect.list(&query).await?.into_iter().next())
}

/// The oldest event that workers could deliver; those that failed are told of apart.
async fn late(
    inspect: &dyn Inspect,
    targets: &[&TargetCounts],
    workers: &[WorkerInfo],
    now: i64,
) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for counts in targets.iter().filter(|counts| !counts.paused && counts.processing > 0) {
        if !workers.iter().filter(is_live).any(|worker| worker.target == counts.target) {
            continue;
        }
        let Some(oldest) = first(inspect, &counts.target, EventState::Processing, 0).await? else { continue };
        let age = ago(now, oldest.event.created_at.as_micros());
        if age > LATE_AFTER {
            let id = oldest.event.event_id;
            let what = format!(
                "Event {id} of target {} was written {} ago, its lane has an owner, and it has not been delivered; {} events wait.",
                counts.target,
                span(age),
                number(counts.processing)
            );
            found.push(LATE.found(
                what,
                format!(
                    "`sendoff explain {id}` says what it waits for; the relay's log says how its sink is."
                ),
            ));
        }
    }
    Ok(found)
}

/// Keys that wait for an operator, and events that have been tried for too long.
async fn parked(inspect: &dyn Inspect, targets: &[&TargetCounts], now: i64) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for counts in targets.iter().filter(|counts| counts.failed > 0) {
        let target = &counts.target;
        let keys = inspect.parked_keys(target, KEYS_MAX).await?;
        let blocked: Vec<_> = keys.iter().filter(|key| key.reason == Reason::Blocked).collect();
        if let Some(oldest) = blocked.iter().min_by_key(|key| key.position) {
            let since = first(inspect, target, EventState::Failed, oldest.position - 1).await?;
            let since = since.and_then(|event| event.since).map(|since| span(ago(now, since.as_micros())));
            let behind: u64 = blocked.iter().map(|key| key.behind).sum();
            let what = format!(
                "{} keys of target {target} wait for an operator, and {behind} events behind them; {} the longest, for {}.",
                blocked.len(),
                shown(oldest.key.as_deref()),
                since.as_deref().unwrap_or("an unknown time")
            );
            let todo = format!(
                "`sendoff parked --target {target}` shows them and why. Then `sendoff redrive --target {target} --key KEY` tries again, \
                 `sendoff cancel EVENT` takes the event out and lets its key go on."
            );
            found.push(BLOCKED_KEYS.found(what, todo));
        }
        let retried = keys.iter().filter(|key| key.reason == Reason::Retry).min_by_key(|key| key.position);
        let Some(retried) = retried else { continue };
        let Some(event) = first(inspect, target, EventState::Failed, retried.position - 1).await? else {
            continue;
        };
        let age = ago(now, event.event.created_at.as_micros());
        if age > LATE_KEY_AFTER {
            let failure = event.failure.map(|failure| format!(": {}", short(&failure.error, KEY_SHOWN)));
            let what = format!(
                "{} of target {target} waits for an event that was written {} ago and has failed {} times{}.",
                shown(retried.key.as_deref()),
                span(age),
                event.event.attempts.failures,
                failure.unwrap_or_default()
            );
            let id = event.event.event_id;
            let todo = format!(
                "`sendoff explain {id}` says when it is tried again; `sendoff cancel {id}` takes it out."
            );
            found.push(LATE_KEY.found(what, todo));
        }
    }
    Ok(found)
}

fn shown(key: Option<&str>) -> String {
    key.map_or_else(|| "An event without a key".to_owned(), |key| format!("Key {:?}", short(key, KEY_SHOWN)))
}

async fn reused_ids(site: &Site, targets: &[&TargetCounts]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for counts in targets.iter().filter(|counts| counts.published > 0) {
        let twice = count(site, include_str!("outbox/reused_ids.sql"), &counts.target, None).await?;
        if twice > 0 {
            let what = format!(
                "Of the last events of target {} that were delivered, {twice} ids stand for more than one.",
                counts.target
            );
            found.push(REUSED_EVENT_ID.found(
                what,
                "Let hosts write a new event_id for each event, or leave it out: the database makes one.",
            ));
        }
    }
    Ok(found)
}
