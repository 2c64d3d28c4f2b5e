//! Jobs to claim, for what is asked of one database only.

use sendoff::claim::{ClaimSpec, Record, Value, col};
use sendoff::testkit::{ClaimHarness, Shape};

/// A table of so many ready jobs, ranked by their ids.
pub(crate) async fn jobs<H: ClaimHarness>(store: &H, count: i64) -> (Shape, H::Table) {
    let shape = Shape::jobs("jobs");
    let table = store.create(&shape).await;
    let rows: Vec<Vec<Value>> = (1..=count).map(|id| Shape::job(id, id)).collect();
    store.insert(&shape, &rows).await;
    (shape, table)
}

/// Takes what is ready, by rank.
pub(crate) fn take(shape: &Shape, limit: u32) -> ClaimSpec {
    take_by(shape, "rank", limit)
}

/// Takes what is ready, by this column.
pub(crate) fn take_by(shape: &Shape, order: &str, limit: u32) -> ClaimSpec {
    ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .order_by(order)
        .limit(limit)
        .build()
        .unwrap()
}

pub(crate) fn ids(rows: &[Record]) -> Vec<i64> {
    rows.iter()
        .map(|row| match row.get("id") {
            Some(Value::Int(id)) => *id,
            other => panic!("id is {other:?}"),
        })
        .collect()
}
