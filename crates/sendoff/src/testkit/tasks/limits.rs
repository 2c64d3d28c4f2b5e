//! Kinds of which only so many run at a time.

use std::sync::Arc;

use super::{LONG, claim, complete, ids, join, submit};
use crate::tasks::{KindLimit, NewTask, Task};
use crate::testkit::task_harness::TaskHarness;

pub(in crate::testkit) async fn a_limit_is_kept_by_all_together<H: TaskHarness>(harness: Arc<H>) {
    harness.inspect().set_limit("a", Some(3)).await.unwrap();
    submit(&*harness, (0..40).map(|_| NewTask::new("a"))).await;
    let mut workers = Vec::new();
    for _ in 0..6 {
        workers.push(join(&*harness, &["a"], LONG).await);
    }
    // Rounds of claims side by side: whoever is fast, three run.
    let mut done = 0;
    for round in 0..6 {
        let claims = workers.iter().map(|worker| {
            let (harness, worker) = (Arc::clone(&harness), worker.clone());
            tokio::spawn(async move { claim(&*harness, &worker, 2).await })
        });
        let mut running: Vec<Task> = Vec::new();
        for claimed in claims.collect::<Vec<_>>() {
            running.extend(claimed.await.unwrap());
        }
        assert!(running.len() <= 3, "round {round}: {} run, 3 are allowed", running.len());
        running.extend(claim(&*harness, &workers[0], 10).await);
        assert_eq!(running.len(), 3, "round {round}: what may run is claimed");
        for task in running {
            complete(&*harness, task.token().unwrap()).await;
            done += 1;
        }
    }
    assert_eq!(done, 18);
    assert_eq!(harness.inspect().limits().await.unwrap(), [KindLimit { kind: "a".to_owned(), most: 3 }]);
    harness.inspect().set_limit("a", None).await.unwrap();
    assert!(harness.inspect().limits().await.unwrap().is_empty());
    assert_eq!(claim(&*harness, &workers[0], 10).await.len(), 10, "the limit is lifted");
}

pub(in crate::testkit) async fn a_limit_holds_up_no_other_kind<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a", "b"], LONG).await;
    harness.inspect().set_limit("a", Some(1)).await.unwrap();
    let tasks = submit(
        &*harness,
        [NewTask::new("a").priority(9), NewTask::new("a").priority(9), NewTask::new("b"), NewTask::new("b")],
    )
    .await;
    let claimed = claim(&*harness, &worker, 10).await;
    assert_eq!(ids(&claimed), [tasks[0], tasks[2], tasks[3]]);
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    harness.inspect().set_limit("a", Some(0)).await.unwrap();
    complete(&*harness, claimed[0].token().unwrap()).await;
    assert!(claim(&*harness, &worker, 10).await.is_empty(), "none may run");
    harness.inspect().set_limit("a", Some(2)).await.unwrap();
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), [tasks[1]]);
}
