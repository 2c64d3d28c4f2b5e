//! How many rows, in which state, and who sees it.

use std::sync::Arc;

use super::super::ClaimHarness;
use super::{column, ints, ready_jobs, take_ready};
use crate::claim::{Claimable as _, Value};

pub(crate) async fn a_claim_takes_no_more_than_its_limit<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "limit", 25).await;
    let spec = take_ready(&shape).limit(10).build().unwrap();
    let sizes = [
        table.claim(&spec).await.unwrap().len(),
        table.claim(&spec).await.unwrap().len(),
        table.claim(&spec).await.unwrap().len(),
        table.claim(&spec).await.unwrap().len(),
    ];
    assert_eq!(sizes, [10, 10, 5, 0]);
    let attempts = ints(&shape, &harness.rows(&shape).await, "attempts");
    assert_eq!(attempts, vec![1; 25], "every row was marked, and none twice");
}

pub(crate) async fn a_limit_of_zero_takes_nothing<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "zero", 3).await;
    let spec = take_ready(&shape).limit(0).build().unwrap();
    assert_eq!(table.claim(&spec).await.unwrap().len(), 0);
    assert_eq!(ints(&shape, &harness.rows(&shape).await, "attempts"), vec![0; 3]);
}

/// More rows than a store puts into one statement.
pub(crate) async fn a_large_claim_takes_every_row_it_was_asked_for<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "large", 1_300).await;
    let spec = take_ready(&shape).limit(1_250).build().unwrap();
    let claimed = table.claim(&spec).await.unwrap();
    assert_eq!(ints(&shape, &claimed, "rank"), (1..=1_250).collect::<Vec<i64>>());
    let attempts: i64 = ints(&shape, &harness.rows(&shape).await, "attempts").iter().sum();
    assert_eq!(attempts, 1_250, "what was returned is what was marked");
}

pub(crate) async fn nothing_eligible_is_an_empty_answer<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "none", 0).await;
    let spec = take_ready(&shape).build().unwrap();
    assert!(table.claim(&spec).await.unwrap().is_empty());
}

pub(crate) async fn a_claim_is_visible_to_others_when_it_returns<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "visible", 5).await;
    let spec = take_ready(&shape).limit(3).build().unwrap();
    let claimed = ints(&shape, &table.claim(&spec).await.unwrap(), "id");
    let seen = harness.rows(&shape).await;
    let marked: Vec<i64> = seen
        .iter()
        .filter(|row| row.get("status") == Some(&Value::from("running")))
        .map(|row| ints(&shape, std::slice::from_ref(row), "id")[0])
        .collect();
    assert_eq!(marked, claimed);
}

pub(crate) async fn rows_come_back_as_the_claim_left_them<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "state", 4).await;
    let spec = take_ready(&shape).set("owner", "worker-7").build().unwrap();
    let claimed = table.claim(&spec).await.unwrap();
    assert_eq!(column(&shape, &claimed, "status"), vec![Value::from("running"); 4]);
    assert_eq!(column(&shape, &claimed, "owner"), vec![Value::from("worker-7"); 4]);
    assert_eq!(ints(&shape, &claimed, "attempts"), vec![1; 4]);
    let stored: Vec<_> = harness.rows(&shape).await.iter().map(|row| shape.normalise(row)).collect();
    let claimed: Vec<_> = claimed.iter().map(|row| shape.normalise(row)).collect();
    assert_eq!(claimed, stored, "what was returned is what is stored");
}
