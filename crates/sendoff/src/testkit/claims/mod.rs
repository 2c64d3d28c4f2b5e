//! The cases, by what they are about.

pub(super) mod keys;
pub(super) mod leases;
pub(super) mod limits;
pub(super) mod names;
pub(super) mod order;
pub(super) mod predicates;
pub(super) mod property;
pub(super) mod races;
pub(super) mod removal_races;
pub(super) mod removals;
pub(super) mod values;

use super::{ClaimHarness, Shape};
use crate::claim::{ClaimSpec, ClaimSpecBuilder, Record, Value, col};

/// A claim on [`Shape::jobs`] that takes what is ready.
fn take_ready(shape: &Shape) -> ClaimSpecBuilder {
    ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .add("attempts", 1)
        .order_by("rank")
}

/// A claim on [`Shape::jobs`] that removes what is ready.
fn remove_ready(shape: &Shape) -> ClaimSpecBuilder {
    ClaimSpec::on_table(shape.table.clone()).eligible(col("status").eq("ready")).remove().order_by("rank")
}

/// The values of one column, in the rows' order.
fn column(shape: &Shape, records: &[Record], name: &str) -> Vec<Value> {
    records
        .iter()
        .map(|record| shape.normalise(record).get(name).unwrap_or_else(|| panic!("no column {name}")).clone())
        .collect()
}

/// The integers of one column, in the rows' order.
fn ints(shape: &Shape, records: &[Record], name: &str) -> Vec<i64> {
    let number = |value| match value {
        Value::Int(number) => number,
        other => panic!("{name} holds {}", other.kind()),
    };
    column(shape, records, name).into_iter().map(number).collect()
}

/// A table of ready jobs with the ids 1 to `count`, ranked by id.
async fn ready_jobs<H: ClaimHarness>(harness: &H, purpose: &str, count: i64) -> (Shape, H::Table) {
    let shape = Shape::jobs(purpose);
    let table = harness.create(&shape).await;
    let rows: Vec<Vec<Value>> = (1..=count).map(|id| Shape::job(id, id)).collect();
    harness.insert(&shape, &rows).await;
    (shape, table)
}
