//! Tasks and entries that do not belong together.

use std::sync::Arc;

use super::{LONG, claim, claim_one, complete, entries, ids, join, submit};
use crate::tasks::{CheckPoint, Checked, NewTask, TaskId};
use crate::testkit::task_harness::{Damage, TaskHarness};

/// The whole check, in small pages.
async fn check<H: TaskHarness>(harness: &H) -> Checked {
    let (mut all, mut from) = (Checked::default(), CheckPoint::default());
    loop {
        let checked = harness.store().check(from, 2).await.unwrap();
        all.orphaned.extend(checked.orphaned);
        all.left_over.extend(checked.left_over);
        all.unentered.extend(checked.unentered);
        match checked.next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

pub(in crate::testkit) async fn an_entry_without_a_task_is_deleted<H: TaskHarness>(harness: Arc<H>) {
    submit(&*harness, (0..5).map(|_| NewTask::new("a"))).await;
    let nobody = TaskId::generate();
    harness.damage(Damage::MakeEntry(nobody, "a".to_owned())).await;
    assert_eq!(check(&*harness).await, Checked { orphaned: vec![nobody], ..Checked::default() });
    assert_eq!(entries(&*harness, "a").await, (5, 0));
    // One that a claim meets first is gone as well, and nothing is claimed for it.
    harness.damage(Damage::MakeEntry(nobody, "a".to_owned())).await;
    let worker = join(&*harness, &["a"], LONG).await;
    assert_eq!(claim(&*harness, &worker, 10).await.len(), 5);
    assert_eq!(entries(&*harness, "a").await, (0, 0));
}

pub(in crate::testkit) async fn an_entry_of_a_task_that_ended_is_deleted<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let (done, running) = {
        submit(&*harness, (0..2).map(|_| NewTask::new("a"))).await;
        let done = claim_one(&*harness, &worker).await;
        complete(&*harness, done).await;
        (done, claim_one(&*harness, &worker).await)
    };
    submit(&*harness, (0..3).map(|_| NewTask::new("a"))).await;
    for task in [done.task, running.task] {
        harness.damage(Damage::MakeEntry(task, "a".to_owned())).await;
    }
    let mut expected = vec![done.task, running.task];
    expected.sort_unstable();
    let mut checked = check(&*harness).await;
    checked.left_over.sort_unstable();
    assert_eq!(checked, Checked { left_over: expected, ..Checked::default() });
    assert_eq!(entries(&*harness, "a").await, (3, 0));
    harness.damage(Damage::MakeEntry(done.task, "a".to_owned())).await;
    assert_eq!(claim(&*harness, &worker, 10).await.len(), 3, "a claim makes nothing of it either");
}

pub(in crate::testkit) async fn a_ready_task_without_an_entry_is_entered<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a", "b"], LONG).await;
    let tasks = submit(&*harness, (0..6).map(|number| NewTask::new(["a", "b"][number % 2]))).await;
    for task in [tasks[0], tasks[3]] {
        harness.damage(Damage::LoseEntry(task)).await;
    }
    let mut checked = check(&*harness).await;
    checked.unentered.sort_unstable();
    assert_eq!(checked, Checked { unentered: vec![tasks[0], tasks[3]], ..Checked::default() });
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), tasks, "and each comes in its turn");
}

pub(in crate::testkit) async fn what_is_whole_is_left_alone<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    submit(&*harness, (0..7).map(|_| NewTask::new("a"))).await;
    claim_one(&*harness, &worker).await;
    assert_eq!(check(&*harness).await, Checked::default());
    assert_eq!(entries(&*harness, "a").await, (6, 0));
}

/// The fate of an entry table that nobody reads: it is seen.
pub(in crate::testkit) async fn entries_that_nobody_takes_are_seen<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    submit(&*harness, [NewTask::new("a"), NewTask::new("b"), NewTask::new("b")]).await;
    let stats = harness.inspect().stats().await.unwrap();
    let unread: Vec<(&str, u64)> = stats.unread().map(|entry| (entry.kind.as_str(), entry.due)).collect();
    assert_eq!(unread, [("b", 2)]);
    assert!(stats.oldest_due.is_some());
    harness.store().leave(worker.worker).await.unwrap();
    let stats = harness.inspect().stats().await.unwrap();
    assert_eq!(stats.unread().count(), 2, "who has left takes nothing");
    join(&*harness, &["b", "a"], LONG).await;
    assert_eq!(harness.inspect().stats().await.unwrap().unread().count(), 0);
}
