//! Retries that began when workers were added: a sink that does not bear so many at once, or a new worker that cannot deliver.

use std::time::Duration;

use anyhow::Result;
use sendoff::outbox::{EventState, Inspect, ListQuery, Reason, TargetCounts, WorkerInfo};

use super::finding::{Finding, RETRIES_AFTER_SCALE_OUT};
use super::outbox::{ago, is_live};
use crate::output::span;

/// Workers that came longer ago are not new.
const NEW_FOR: Duration = Duration::from_secs(30 * 60);

/// Workers that came within so long of each other came together: that is a start, and nothing was added.
const TOGETHER: Duration = Duration::from_secs(60);

/// No more failed events are looked at.
const EVENTS_MAX: u32 = 1_000;

/// Fewer are no sign of anything.
const RETRIES_MIN: usize = 20;

/// And so many times more than failed in as long before.
const TIMES_MORE: usize = 3;

/// Compares what failed since the newest worker came with what failed in as long before it. `now` is the database's time.
pub(super) async fn examine(
    inspect: &dyn Inspect,
    targets: &[&TargetCounts],
    workers: &[WorkerInfo],
    now: i64,
) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for counts in targets.iter().filter(|counts| counts.failed > 0) {
        let Some(newest) = added(workers, &counts.target, now) else { continue };
        let query = ListQuery {
            target: counts.target.clone(),
            state: EventState::Failed,
            after: 0,
            limit: EVENTS_MAX,
        };
        let failed: Vec<i64> = inspect
            .list(&query)
            .await?
            .into_iter()
            .filter(|event| event.reason == Some(Reason::Retry))
            .filter_map(|event| Some(event.since?.as_micros()))
            .collect();
        let (since, before) = around(&failed, newest.started_at, now);
        if since < RETRIES_MIN || since < before * TIMES_MORE {
            continue;
        }
        let what = format!(
            "Worker {} ({}) of target {} came {} ago. Since then {since} events that now wait for a retry have failed, and {before} in as long before it.",
            newest.worker,
            newest.name,
            counts.target,
            span(ago(now, newest.started_at))
        );
        let todo = "`sendoff list failed` shows what the sink answered. If it does not bear so many at once, stop the new worker, or set `rate` or `concurrency` of the target.";
        found.push(RETRIES_AFTER_SCALE_OUT.found(what, todo));
    }
    Ok(found)
}

/// The newest live worker of a target, if it was added to others lately.
fn added<'w>(workers: &'w [WorkerInfo], target: &str, now: i64) -> Option<&'w WorkerInfo> {
    let live = || workers.iter().filter(is_live).filter(|worker| worker.target == target);
    let newest = live().max_by_key(|worker| worker.started_at)?;
    let is_new = ago(now, newest.started_at) < NEW_FOR;
    let were_others = live().any(|worker| ago(newest.started_at, worker.started_at) > TOGETHER);
    Some(newest).filter(|_| is_new && were_others)
}

/// How many of these moments are after `moment`, and how many are as long before it.
fn around(moments: &[i64], moment: i64, now: i64) -> (usize, usize) {
    let since = moments.iter().filter(|at| **at >= moment).count();
    let before = moments.iter().filter(|at| (moment - (now - moment)..moment).contains(*at)).count();
    (since, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_long_before_is_compared_with_since() {
        assert_eq!(around(&[10, 79, 80, 99, 100, 101, 120], 100, 120), (3, 2));
        assert_eq!(around(&[], 100, 120), (0, 0));
    }
}
