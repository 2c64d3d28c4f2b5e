//! Whatever rows are told apart by.

use std::sync::Arc;

use uuid::Uuid;

use super::super::{ClaimHarness, Shape, ValueKind};
use super::{column, ints};
use crate::claim::{ClaimSpec, Claimable as _, Timestamp, Value, col};

/// Claims half of four rows and the rest afterwards; both halves must be whole.
async fn claims_by_key<H: ClaimHarness>(harness: &H, shape: Shape, keys: Vec<Vec<Value>>) {
    let shape = shape.column("status", ValueKind::Text).column("n", ValueKind::Int);
    let table = harness.create(&shape).await;
    let rows: Vec<Vec<Value>> = keys
        .iter()
        .zip(1_i64..)
        .map(|(key, n)| key.iter().cloned().chain(["ready".into(), n.into()]).collect())
        .collect();
    harness.insert(&shape, &rows).await;
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "taken")
        .order_by("n")
        .limit(2)
        .build()
        .unwrap();
    let mut seen: Vec<Vec<Value>> = Vec::new();
    for expected in [[1, 2], [3, 4]] {
        let claimed = table.claim(&spec).await.unwrap();
        assert_eq!(ints(&shape, &claimed, "n"), expected);
        for row in &claimed {
            let row = shape.normalise(row);
            seen.push(
                shape
                    .columns
                    .iter()
                    .filter(|c| c.is_key)
                    .map(|c| row.get(&c.name).unwrap().clone())
                    .collect(),
            );
        }
    }
    assert_eq!(seen, keys, "keys come back as they went in");
    assert!(table.claim(&spec).await.unwrap().is_empty());
    assert_eq!(column(&shape, &harness.rows(&shape).await, "status"), vec![Value::from("taken"); 4]);
}

/// Case, trailing spaces, quotes and any script tell rows apart.
pub(crate) async fn text_keys<H: ClaimHarness>(harness: Arc<H>) {
    let keys = ["a", "A", "a ", "ä'\"表"].map(|key| vec![Value::from(key)]);
    claims_by_key(&*harness, Shape::new("text_key").key("id", ValueKind::Text), keys.to_vec()).await;
}

pub(crate) async fn uuid_keys<H: ClaimHarness>(harness: Arc<H>) {
    let keys =
        [0, 1, u128::MAX, 0x0018_0000_0000_7000_8000_0000_0000_0001].map(|n| vec![Uuid::from_u128(n).into()]);
    claims_by_key(&*harness, Shape::new("uuid_key").key("id", ValueKind::Uuid), keys.to_vec()).await;
}

/// No column of it is unique by itself.
pub(crate) async fn composite_keys<H: ClaimHarness>(harness: Arc<H>) {
    let shape = Shape::new("composite").key("tenant", ValueKind::Text).key("id", ValueKind::Int);
    let keys =
        [("a", 1), ("a", 2), ("b", 1), ("b", i64::MAX)].map(|(tenant, id)| vec![tenant.into(), id.into()]);
    claims_by_key(&*harness, shape, keys.to_vec()).await;
}

pub(crate) async fn timestamp_keys<H: ClaimHarness>(harness: Arc<H>) {
    let keys = [1, 1_700_000_000_000_001, 1_700_000_000_000_002, 4_000_000_000_999_999]
        .map(|micros| vec![Timestamp::from_micros(micros).into()]);
    claims_by_key(&*harness, Shape::new("moment_key").key("at", ValueKind::Timestamp), keys.to_vec()).await;
}
