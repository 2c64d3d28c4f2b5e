//! Every kind of value, set and compared.

use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::super::{ClaimHarness, Shape, ValueKind};
use super::ready_jobs;
use crate::claim::{ClaimSpec, Claimable as _, Timestamp, Value, col};

/// Values that a careless statement would change or break on, by kind.
pub(super) fn samples() -> Vec<(ValueKind, Vec<Value>)> {
    let moment = |micros| Value::from(Timestamp::from_micros(micros));
    vec![
        (ValueKind::Bool, vec![false.into(), true.into()]),
        (ValueKind::Int, vec![i64::MIN.into(), 0.into(), i64::MAX.into()]),
        (ValueKind::Float, vec![(-1.5).into(), 0.1.into(), 1e300.into()]),
        (ValueKind::Text, vec!["".into(), "it's \"quoted\"; -- `so`".into(), "表\\ \n".into()]),
        (ValueKind::Bytes, vec![Vec::new().into(), vec![0_u8, 255, 39, 92].into()]),
        (ValueKind::Uuid, vec![Uuid::nil().into(), Uuid::from_u128(0x0102_0304).into()]),
        (ValueKind::Timestamp, vec![moment(1_700_000_000_123_456), moment(1_700_000_000_123_457)]),
    ]
}

pub(crate) async fn every_kind_of_value_can_be_set_and_compared<H: ClaimHarness>(harness: Arc<H>) {
    for (kind, values) in samples() {
        let shape =
            Shape::new("kind").key("id", ValueKind::Int).column("v", kind).column("owner", ValueKind::Text);
        let table = harness.create(&shape).await;
        harness.insert(&shape, &[vec![1.into(), values[0].clone(), Value::Null]]).await;
        // From each value to the next: found by the one, set to the other, and round again.
        for (from, to) in values.iter().zip(values.iter().cycle().skip(1)) {
            let spec = ClaimSpec::on_table(shape.table.clone())
                .eligible(col("v").eq(from.clone()).and(col("v").is_in([from.clone()])))
                .set("v", to.clone())
                .build()
                .unwrap();
            let claimed = table.claim(&spec).await.unwrap();
            assert_eq!(claimed.len(), 1, "{kind:?} {from:?} was not found");
            assert_eq!(shape.normalise(&claimed[0]).get("v"), Some(to), "{kind:?}");
        }
    }
    let shape = Shape::new("kind").key("id", ValueKind::Int).column("v", ValueKind::Json);
    let table = harness.create(&shape).await;
    harness.insert(&shape, &[vec![1.into(), json!({"old": true}).into()]]).await;
    let document = json!({"text": "it's \"so\"", "list": [1, 2.5, null], "深": {"er": false}});
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("id").eq(1))
        .set("v", document.clone())
        .build()
        .unwrap();
    let claimed = table.claim(&spec).await.unwrap();
    assert_eq!(shape.normalise(&claimed[0]).get("v"), Some(&Value::Json(document)));
}

pub(crate) async fn null_can_be_set<H: ClaimHarness>(harness: Arc<H>) {
    for (kind, values) in samples() {
        let shape = Shape::new("null").key("id", ValueKind::Int).column("v", kind);
        let table = harness.create(&shape).await;
        harness.insert(&shape, &[vec![1.into(), values[0].clone()]]).await;
        let spec = ClaimSpec::on_table(shape.table.clone())
            .eligible(col("v").is_not_null())
            .set("v", Value::Null)
            .build()
            .unwrap();
        let claimed = table.claim(&spec).await.unwrap();
        assert_eq!(claimed[0].get("v"), Some(&Value::Null), "{kind:?}");
        assert!(table.claim(&spec).await.unwrap().is_empty(), "{kind:?}");
    }
}

pub(crate) async fn adding_counts_null_as_zero<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "add", 1).await;
    let clear = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("attempts").eq(0))
        .set("attempts", Value::Null)
        .build()
        .unwrap();
    table.claim(&clear).await.unwrap();
    let count = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("id").eq(1))
        .add("attempts", 3)
        .build()
        .unwrap();
    assert_eq!(table.claim(&count).await.unwrap()[0].get("attempts"), Some(&Value::Int(3)));
    assert_eq!(table.claim(&count).await.unwrap()[0].get("attempts"), Some(&Value::Int(6)));
}
