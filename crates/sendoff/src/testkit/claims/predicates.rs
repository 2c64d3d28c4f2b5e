//! Which rows a condition takes.

use std::sync::Arc;

use super::super::{ClaimHarness, Shape};
use super::ints;
use crate::claim::{ClaimSpec, Claimable as _, Predicate, Value, col};

/// Which of the jobs 1 to 5, ranked 10, 20, 30, null and 50, are taken.
async fn taken<H: ClaimHarness>(harness: &H, eligible: Predicate) -> Vec<i64> {
    let shape = Shape::jobs("condition");
    let table = harness.create(&shape).await;
    let ranks = [Some(10), Some(20), Some(30), None, Some(50)];
    let rows: Vec<Vec<Value>> = ranks.iter().zip(1..).map(|(rank, id)| Shape::job(id, *rank)).collect();
    harness.insert(&shape, &rows).await;
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(eligible)
        .set("owner", "me")
        .order_by("id")
        .build()
        .unwrap();
    ints(&shape, &table.claim(&spec).await.unwrap(), "id")
}

pub(crate) async fn each_comparison_takes_its_rows<H: ClaimHarness>(harness: Arc<H>) {
    for (eligible, expected) in [
        (col("rank").eq(20), vec![2]),
        (col("rank").ne(20), vec![1, 3, 5]),
        (col("rank").lt(20), vec![1]),
        (col("rank").le(20), vec![1, 2]),
        (col("rank").gt(30), vec![5]),
        (col("rank").ge(30), vec![3, 5]),
        (col("rank").is_in([10, 50, 60]), vec![1, 5]),
        (col("rank").is_in(Vec::<i64>::new()), vec![]),
        (col("rank").is_null(), vec![4]),
        (col("rank").is_not_null(), vec![1, 2, 3, 5]),
        (Predicate::always(), vec![1, 2, 3, 4, 5]),
        (Predicate::Or(Vec::new()), vec![]),
    ] {
        assert_eq!(taken(&*harness, eligible.clone()).await, expected, "{eligible:?}");
    }
}

/// NULL is neither equal nor unequal to anything, and the opposite of unknown is unknown.
pub(crate) async fn unknown_is_not_true<H: ClaimHarness>(harness: Arc<H>) {
    for (eligible, expected) in [
        (col("rank").eq(20).not(), vec![1, 3, 5]),
        (col("rank").lt(20).not().not(), vec![1]),
        (col("rank").is_in([10]).not(), vec![2, 3, 5]),
        (col("rank").is_in(Vec::<i64>::new()).not(), vec![1, 2, 3, 4, 5]),
        (col("rank").gt(0).or(col("id").eq(4)), vec![1, 2, 3, 4, 5]),
        (col("rank").gt(0).and(col("id").eq(4)).not(), vec![1, 2, 3, 5]),
    ] {
        assert_eq!(taken(&*harness, eligible.clone()).await, expected, "{eligible:?}");
    }
}

pub(crate) async fn conditions_nest<H: ClaimHarness>(harness: Arc<H>) {
    let nested = col("status")
        .eq("ready")
        .and(col("rank").is_null().or(col("rank").ge(20).and(col("rank").eq(30).not())))
        .and(col("id").is_in([1, 2, 3, 4]));
    assert_eq!(taken(&*harness, nested).await, [2, 4]);
    // AND binds tighter than OR unless it was said otherwise: here it was.
    let either = col("id").eq(1).or(col("id").eq(2));
    let both = either.and(col("rank").eq(20));
    assert_eq!(taken(&*harness, both).await, [2]);
    let deep = (0..40).fold(col("id").eq(3), |inner, _| inner.not());
    assert_eq!(taken(&*harness, deep).await, [3]);
}

/// Only the head of a group: the next one is not before the head no longer counts. A row without a group stands for itself.
pub(crate) async fn the_head_of_a_group_goes_first<H: ClaimHarness>(harness: Arc<H>) {
    let shape = Shape::jobs("heads");
    let table = harness.create(&shape).await;
    let groups = [Some(1), Some(1), Some(2), Some(1), Some(2), None, None];
    let rows: Vec<Vec<Value>> = groups.iter().zip(1..).map(|(group, id)| Shape::job(id, *group)).collect();
    harness.insert(&shape, &rows).await;
    let claim = |eligible: Predicate, status: &str| {
        let spec = ClaimSpec::on_table(shape.table.clone()).eligible(eligible).set("status", status);
        let spec = spec.order_by("id").build().unwrap();
        let (table, shape) = (&table, &shape);
        async move { ints(shape, &table.claim(&spec).await.unwrap(), "id") }
    };
    let open = || col("status").ne("done");
    let heads = || Predicate::first_of("rank", ["id"], open()).and(col("status").eq("ready"));
    assert_eq!(claim(heads(), "running").await, [1, 3, 6, 7]);
    assert_eq!(claim(heads(), "running").await, [0_i64; 0], "every head is running");
    assert_eq!(claim(col("id").eq(1), "done").await, [1]);
    assert_eq!(claim(heads(), "running").await, [2], "the other group's head is still running");
    assert_eq!(claim(col("id").is_in([2, 3]), "done").await, [2, 3]);
    assert_eq!(claim(heads(), "running").await, [4, 5]);
}

/// Of the same heads claimed from several sides each is won once, and nothing behind them.
pub(crate) async fn heads_are_raced_for<H: ClaimHarness>(harness: Arc<H>) {
    let shape = Shape::jobs("raced_heads");
    let table = Arc::new(harness.create(&shape).await);
    let rows: Vec<Vec<Value>> = (1..=40).map(|id| Shape::job(id, Some(id % 10))).collect();
    harness.insert(&shape, &rows).await;
    let open = col("status").ne("done");
    let heads = Predicate::first_of("rank", ["id"], open).and(col("status").eq("ready"));
    let spec = ClaimSpec::on_table(shape.table.clone()).eligible(heads).set("status", "running");
    let spec = spec.order_by("id").limit(4).build().unwrap();
    let claims = (0..4).map(|_| {
        let (table, spec) = (Arc::clone(&table), spec.clone());
        tokio::spawn(async move {
            let mut won = Vec::new();
            for _ in 0..10 {
                won.extend(table.claim(&spec).await.unwrap());
            }
            won
        })
    });
    let mut won = Vec::new();
    for claim in claims.collect::<Vec<_>>() {
        won.extend(ints(&shape, &claim.await.unwrap(), "id"));
    }
    won.sort_unstable();
    assert_eq!(won, (1..=10).collect::<Vec<i64>>());
}
