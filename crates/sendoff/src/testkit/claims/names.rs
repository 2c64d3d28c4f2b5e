//! Names that need quoting, and what is refused.

use std::sync::Arc;

use super::super::{ClaimHarness, Shape, ValueKind};
use super::{ready_jobs, take_ready};
use crate::claim::{ClaimSpec, Claimable as _, TableName, Value, col, now};
use crate::error::StoreErrorKind;

/// Names that would break out of a careless statement.
pub(crate) const HOSTILE_NAMES: [&str; 12] = [
    "select",
    "Order By",
    "semi;colon",
    "it's",
    "dou\"ble",
    "back`tick",
    "Größe",
    "表",
    "{set}",
    "$1",
    "what?",
    "x\" = 'y' OR 1=1 --",
];

pub(crate) async fn names_that_need_quoting_are_quoted<H: ClaimHarness>(harness: Arc<H>) {
    for name in HOSTILE_NAMES {
        let mut shape = Shape::new("hostile").key("id", ValueKind::Int).column(name, ValueKind::Text);
        let unique = format!("{name} {:08x}", fastrand::u32(..));
        shape.table = TableName::bare(&unique).unwrap();
        shape.index = vec![name.to_owned()];
        let table = harness.create(&shape).await;
        harness.insert(&shape, &[vec![1.into(), "a".into()], vec![2.into(), "b".into()]]).await;
        let spec = ClaimSpec::on_table(shape.table.clone())
            .eligible(col(name).eq("b"))
            .set(name, "c")
            .order_by(name)
            .build()
            .unwrap();
        let claimed = table.claim(&spec).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(claimed.len(), 1, "{name}");
        assert_eq!(claimed[0].get(name), Some(&Value::from("c")), "{name}");
        let stored = super::column(&shape, &harness.rows(&shape).await, name);
        assert_eq!(stored, [Value::from("a"), Value::from("c")], "{name}: nothing else was touched");
    }
}

pub(crate) async fn unknown_columns_are_refused_by_name<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "unknown", 1).await;
    let on = || ClaimSpec::on_table(shape.table.clone());
    for spec in [
        on().eligible(col("staus").eq("ready")).set("owner", "x"),
        on().eligible(col("status").eq("ready")).set("staus", "x"),
        on().eligible(col("status").eq("ready")).set("owner", "x").order_by("staus"),
        // Not a string, and not SQL either.
        on().eligible(col("1=1 OR staus").eq("ready")).set("owner", "x"),
    ] {
        let error = table.claim(&spec.build().unwrap()).await.expect_err("refused");
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("staus"), "{error}");
    }
    assert_eq!(super::ints(&shape, &harness.rows(&shape).await, "attempts"), [0]);
}

/// A database may find `'abc' = 0` true; a store says no before it asks.
pub(crate) async fn values_of_the_wrong_kind_are_refused<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "wrong", 1).await;
    for eligible in [col("rank").eq("abc"), col("status").eq(0), col("rank").eq(1.5), col("owner").lt(true)] {
        let spec =
            ClaimSpec::on_table(shape.table.clone()).eligible(eligible.clone()).set("owner", "x").build();
        match table.claim(&spec.unwrap()).await {
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}"),
            // A store without types (memory) finds them incomparable, and so takes nothing.
            Ok(rows) => assert!(rows.is_empty(), "{eligible:?}"),
        }
    }
}

pub(crate) async fn the_key_cannot_be_set<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "key", 1).await;
    let spec = take_ready(&shape).set("id", 9).build().unwrap();
    let error = table.claim(&spec).await.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(error.to_string().contains("part of the key"), "{error}");
}

pub(crate) async fn a_spec_for_another_table_is_refused<H: ClaimHarness>(harness: Arc<H>) {
    let (_, table) = ready_jobs(&*harness, "mine", 1).await;
    let spec = ClaimSpec::on("somebody_elses")
        .eligible(col("lease_until").lt(now()))
        .set("owner", "x")
        .build()
        .unwrap();
    let error = table.claim(&spec).await.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(error.to_string().contains("somebody_elses"), "{error}");
}
