//! Claims: what they take, and what they leave behind.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{LONG, claim, complete, entries, history, ids, join, status, submit};
use crate::tasks::{Claim, NewTask, Settled, Task, TaskEventKind, TaskStatus};
use crate::testkit::task_harness::{Damage, TaskHarness};

pub(in crate::testkit) async fn a_claim_reads_the_entries_and_nothing_else<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let tasks = submit(&*harness, [NewTask::new("a"), NewTask::new("a")]).await;
    harness.damage(Damage::LoseEntry(tasks[0])).await;
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), [tasks[1]]);
    assert_eq!(status(&*harness, tasks[0]).await, TaskStatus::Ready, "ready, and not to be found");
}

pub(in crate::testkit) async fn the_entry_goes_with_the_claim<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    submit(&*harness, (0..5).map(|_| NewTask::new("a"))).await;
    assert_eq!(entries(&*harness, "a").await, (5, 0));
    let claimed = claim(&*harness, &worker, 3).await;
    assert_eq!(entries(&*harness, "a").await, (2, 0), "three entries went with their claims");
    for task in &claimed {
        assert_eq!(status(&*harness, task.id).await, TaskStatus::Running);
    }
    for task in &claimed {
        assert_eq!(complete(&*harness, task.token().unwrap()).await, Settled::Applied);
    }
    assert_eq!(entries(&*harness, "a").await, (2, 0));
}

pub(in crate::testkit) async fn a_claim_steps_over_what_is_locked<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let tasks = submit(&*harness, (0..3).map(|_| NewTask::new("a"))).await;
    let claimed = harness
        .while_locked(tasks[0], || async {
            let claimed = tokio::time::timeout(Duration::from_secs(5), claim(&*harness, &worker, 10)).await;
            claimed.expect("a claim waits for nobody's lock")
        })
        .await;
    let Some(claimed) = claimed else { return };
    assert_eq!(ids(&claimed), tasks[1..], "the locked one was stepped over");
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), tasks[..1], "and is found when it is free");
}

pub(in crate::testkit) async fn a_claim_is_told<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    let expected = [TaskEventKind::TaskCreated, TaskEventKind::TaskReady];
    assert_eq!(history(&*harness, id).await, expected);
    assert_eq!(claim(&*harness, &worker, 10).await.len(), 1);
    let (_, events) = harness.inspect().get(id).await.unwrap().unwrap();
    let last = events.last().unwrap();
    assert_eq!(last.kind, TaskEventKind::TaskClaimed);
    assert_eq!((last.attempt, last.owner), (1, Some(worker.worker)));
    assert!(last.at >= events[0].at);
}

pub(in crate::testkit) async fn claimed_tasks_are_running<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let limited = NewTask::new("a").run_time(Duration::from_secs(60));
    submit(&*harness, [NewTask::new("a").priority(1), limited]).await;
    let claimed = claim(&*harness, &worker, 10).await;
    assert_eq!(claimed.len(), 2);
    for task in &claimed {
        assert_eq!((task.status, task.attempt, task.owner), (TaskStatus::Running, 1, Some(worker.worker)));
        let stored = super::get(&*harness, task.id).await;
        assert_eq!((stored.status, stored.attempt, stored.owner), (task.status, task.attempt, task.owner));
        assert!(task.started_at.is_some() && stored.started_at.is_some());
    }
    assert_eq!(claimed[0].lease_until, None);
    let length = claimed[1].lease_until.unwrap().as_micros() - claimed[1].started_at.unwrap().as_micros();
    assert!((59_000_000..=61_000_000).contains(&length), "its time ends after {length} microseconds");
}

/// Nothing is claimed twice, nothing is left, whoever asks.
pub(in crate::testkit) async fn concurrent_claims_take_nothing_twice<H: TaskHarness>(harness: Arc<H>) {
    let total = harness.race_tasks();
    submit(&*harness, (0..total).map(|number| NewTask::new(if number % 3 == 0 { "a" } else { "b" }))).await;
    let mut workers = Vec::new();
    for _ in 0..8 {
        let harness = Arc::clone(&harness);
        workers.push(tokio::spawn(async move {
            let worker = join(&*harness, &["a", "b"], LONG).await;
            let mut taken: Vec<Task> = Vec::new();
            // A claim may find everything locked by others: it is done when nothing is left.
            while entries(&*harness, "a").await != (0, 0) || entries(&*harness, "b").await != (0, 0) {
                taken.extend(claim(&*harness, &worker, 7).await);
            }
            taken
        }));
    }
    let mut seen = HashSet::new();
    let mut owners = HashSet::new();
    for worker in workers {
        for task in worker.await.unwrap() {
            assert!(seen.insert(task.id), "{} was claimed twice", task.id);
            assert_eq!(task.attempt, 1);
            owners.insert(task.owner);
        }
    }
    assert_eq!(seen.len(), total, "every task was claimed by one");
    for id in seen.iter().take(50) {
        history(&*harness, *id).await;
    }
}

pub(in crate::testkit) async fn a_claim_takes_its_kinds_and_no_more_than_its_limit<H: TaskHarness>(
    harness: Arc<H>,
) {
    let worker = join(&*harness, &["a", "c"], LONG).await;
    let wanted = submit(&*harness, (0..6).map(|number| NewTask::new(["a", "b", "c"][number % 3]))).await;
    let expected = [wanted[0], wanted[2], wanted[3], wanted[5]];
    assert_eq!(ids(&claim(&*harness, &worker, 3).await), expected[..3]);
    assert_eq!(ids(&claim(&*harness, &worker, 3).await), expected[3..]);
    assert!(claim(&*harness, &worker, 0).await.is_empty());
    let nothing = Claim { worker: worker.worker, kinds: Vec::new(), limit: 10 };
    assert!(harness.store().claim(&nothing).await.unwrap().is_empty());
    assert_eq!(entries(&*harness, "b").await, (2, 0), "another's kind is left alone");
}
