//! In which order rows are taken and returned.

use std::sync::Arc;

use super::super::{ClaimHarness, Shape};
use super::{ints, take_ready};
use crate::claim::{ClaimSpec, Claimable as _, Direction, Nulls, Value, col, now_plus};

/// Jobs with these ranks, ids from 1.
async fn ranked<H: ClaimHarness>(harness: &H, purpose: &str, ranks: &[Option<i64>]) -> (Shape, H::Table) {
    let shape = Shape::jobs(purpose);
    let table = harness.create(&shape).await;
    let rows: Vec<Vec<Value>> = ranks.iter().zip(1..).map(|(rank, id)| Shape::job(id, *rank)).collect();
    harness.insert(&shape, &rows).await;
    (shape, table)
}

pub(crate) async fn rows_come_back_in_order<H: ClaimHarness>(harness: Arc<H>) {
    let ranks = [5, 3, 9, 1, 7, 2, 8, 4, 6].map(Some);
    let (shape, table) = ranked(&*harness, "order", &ranks).await;
    let spec = take_ready(&shape).limit(4).build().unwrap();
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "rank"), [1, 2, 3, 4]);
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "rank"), [5, 6, 7, 8]);
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "rank"), [9]);
}

pub(crate) async fn ties_come_in_any_order_but_together<H: ClaimHarness>(harness: Arc<H>) {
    let ranks = [2, 1, 2, 1, 2, 1].map(Some);
    let (shape, table) = ranked(&*harness, "ties", &ranks).await;
    let spec = take_ready(&shape).limit(5).build().unwrap();
    let claimed = table.claim(&spec).await.unwrap();
    assert_eq!(ints(&shape, &claimed, "rank"), [1, 1, 1, 2, 2]);
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "rank"), [2]);
}

pub(crate) async fn descending_and_second_columns_count<H: ClaimHarness>(harness: Arc<H>) {
    let ranks = [1, 2, 1, 2].map(Some);
    let (shape, table) = ranked(&*harness, "second", &ranks).await;
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .order_by_desc("rank")
        .order_by("id")
        .build()
        .unwrap();
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "id"), [2, 4, 1, 3]);
}

pub(crate) async fn null_goes_where_the_database_puts_it<H: ClaimHarness>(harness: Arc<H>) {
    let ranks = [Some(2), None, Some(1)];
    let first = harness.nulls_first();
    let (shape, table) = ranked(&*harness, "native_nulls", &ranks).await;
    let spec = take_ready(&shape).build().unwrap();
    let expected = if first { [2, 3, 1] } else { [3, 1, 2] };
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "id"), expected);

    let (shape, table) = ranked(&*harness, "native_nulls", &ranks).await;
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .order_by_desc("rank")
        .build()
        .unwrap();
    let expected = if first { [1, 3, 2] } else { [2, 1, 3] };
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "id"), expected, "descending");
}

pub(crate) async fn null_goes_where_the_spec_puts_it<H: ClaimHarness>(harness: Arc<H>) {
    for (direction, nulls, expected) in [
        (Direction::Ascending, Nulls::First, [2, 3, 1]),
        (Direction::Ascending, Nulls::Last, [3, 1, 2]),
        (Direction::Descending, Nulls::First, [2, 1, 3]),
        (Direction::Descending, Nulls::Last, [1, 3, 2]),
    ] {
        let (shape, table) = ranked(&*harness, "nulls", &[Some(2), None, Some(1)]).await;
        let spec = ClaimSpec::on_table(shape.table.clone())
            .eligible(col("status").eq("ready"))
            .set("status", "running")
            .order_by_with("rank", direction, nulls)
            .build()
            .unwrap();
        let claimed = table.claim(&spec).await.unwrap();
        assert_eq!(ints(&shape, &claimed, "id"), expected, "{direction:?} nulls {nulls:?}");
    }
}

/// A claim by due time that moves the due time: the rows come as they were due.
pub(crate) async fn the_order_is_that_of_the_rows_before_the_claim<H: ClaimHarness>(harness: Arc<H>) {
    let ranks = [3, 1, 2].map(Some);
    let (shape, table) = ranked(&*harness, "moved", &ranks).await;
    let spec = take_ready(&shape)
        .set("rank", 0)
        .set("lease_until", now_plus(std::time::Duration::from_secs(60)))
        .build()
        .unwrap();
    assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "id"), [2, 3, 1]);
}
