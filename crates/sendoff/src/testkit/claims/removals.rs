//! Claims that remove their rows: what is handed out, and what is left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::super::{ClaimHarness, Shape, ValueKind};
use super::names::HOSTILE_NAMES;
use super::values::samples;
use super::{ints, ready_jobs, remove_ready, take_ready};
use crate::claim::{
    ClaimSpec, Claimable as _, Predicate, Record, TableName, Timestamp, Value, col, now, now_minus, now_plus,
};
use crate::error::StoreErrorKind;

pub(crate) async fn removed_rows_come_in_order_and_no_more_than_the_limit<H: ClaimHarness>(harness: Arc<H>) {
    let shape = Shape::jobs("remove_order");
    let table = harness.create(&shape).await;
    let ranks = [5, 3, 9, 1, 7, 2, 8, 4, 6];
    let rows: Vec<Vec<Value>> = ranks.iter().zip(1..).map(|(&rank, id)| Shape::job(id, rank)).collect();
    harness.insert(&shape, &rows).await;
    let spec = remove_ready(&shape).limit(4).build().unwrap();
    for (expected, left) in [(vec![1, 2, 3, 4], 5), (vec![5, 6, 7, 8], 1), (vec![9], 0), (vec![], 0)] {
        assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "rank"), expected);
        let stored = ints(&shape, &harness.rows(&shape).await, "rank");
        assert_eq!(stored.len(), left, "what was returned is gone, and nothing else: {stored:?}");
        assert!(stored.iter().all(|rank| expected.last().is_none_or(|last| rank > last)), "{stored:?}");
    }
}

/// What is eligible comes back as it was, byte for byte; what is not stays as it is.
pub(crate) async fn removed_rows_come_back_as_they_were_and_are_gone<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "remove_state", 6).await;
    // Every second one has a mark, so that there is more to return than what was inserted.
    let mark = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("id").is_in([1, 3, 5]))
        .set("status", "done")
        .set("owner", "worker-7")
        .set("lease_until", Timestamp::from_micros(1_700_000_000_123_456))
        .build()
        .unwrap();
    assert_eq!(table.claim(&mark).await.unwrap().len(), 3);
    let stored: Vec<Record> = harness.rows(&shape).await.iter().map(|row| shape.normalise(row)).collect();
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("done"))
        .remove()
        .order_by_desc("id")
        .build()
        .unwrap();
    let removed = table.claim(&spec).await.unwrap();
    let removed: Vec<Record> = removed.iter().map(|row| shape.normalise(row)).collect();
    assert_eq!(removed, [&stored[4], &stored[2], &stored[0]].map(Clone::clone));
    let left: Vec<Record> = harness.rows(&shape).await.iter().map(|row| shape.normalise(row)).collect();
    assert_eq!(left, [&stored[1], &stored[3], &stored[5]].map(Clone::clone));
    assert!(table.claim(&spec).await.unwrap().is_empty(), "a row is removed once");
}

pub(crate) async fn a_removal_limited_to_zero_takes_nothing<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "remove_zero", 3).await;
    let spec = remove_ready(&shape).limit(0).build().unwrap();
    assert_eq!(table.claim(&spec).await.unwrap().len(), 0);
    assert_eq!(ints(&shape, &harness.rows(&shape).await, "id"), [1, 2, 3]);
}

/// More rows than a store puts into one statement.
pub(crate) async fn a_large_removal_takes_every_row_it_was_asked_for<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "remove_large", 1_300).await;
    let spec = remove_ready(&shape).limit(1_250).build().unwrap();
    let removed = table.claim(&spec).await.unwrap();
    assert_eq!(ints(&shape, &removed, "rank"), (1..=1_250).collect::<Vec<i64>>());
    assert_eq!(ints(&shape, &harness.rows(&shape).await, "id"), (1_251..=1_300).collect::<Vec<i64>>());
}

/// Removes two of four rows and then the rest; each half must be whole.
pub(crate) async fn removals_find_rows_by_any_key<H: ClaimHarness>(harness: Arc<H>) {
    let text = ["a", "A", "a ", "ä'\"表"].map(|key| vec![Value::from(key)]);
    let uuid = [0, 1, u128::MAX, 1 << 64].map(|n| vec![Uuid::from_u128(n).into()]);
    let moment = [1, 1_700_000_000_000_001, 1_700_000_000_000_002, 4_000_000_000_999_999]
        .map(|micros| vec![Timestamp::from_micros(micros).into()]);
    let composite =
        [("a", 1), ("a", 2), ("b", 1), ("b", i64::MAX)].map(|(tenant, id)| vec![tenant.into(), id.into()]);
    for (shape, keys) in [
        (Shape::new("remove_text").key("id", ValueKind::Text), text),
        (Shape::new("remove_uuid").key("id", ValueKind::Uuid), uuid),
        (Shape::new("remove_moment").key("at", ValueKind::Timestamp), moment),
        (Shape::new("remove_composite").key("tenant", ValueKind::Text).key("id", ValueKind::Int), composite),
    ] {
        let shape = shape.column("n", ValueKind::Int);
        let table = harness.create(&shape).await;
        let rows: Vec<Vec<Value>> =
            keys.iter().zip(1_i64..).map(|(key, n)| [key.clone(), vec![n.into()]].concat()).collect();
        harness.insert(&shape, &rows).await;
        let spec = ClaimSpec::on_table(shape.table.clone()).eligible(col("n").gt(0)).remove();
        let spec = spec.order_by("n").limit(2).build().unwrap();
        for (expected, left) in [(&rows[..2], vec![3, 4]), (&rows[2..], vec![])] {
            let removed = table.claim(&spec).await.unwrap();
            let removed: Vec<Vec<Value>> =
                removed.iter().map(|row| shape.normalise(row).values().to_vec()).collect();
            assert_eq!(removed, expected, "{}", shape.table);
            let stored: BTreeSet<i64> = ints(&shape, &harness.rows(&shape).await, "n").into_iter().collect();
            assert_eq!(stored, left.into_iter().collect(), "{}", shape.table);
        }
    }
}

/// Names that would break out of a careless statement, and values of every kind.
pub(crate) async fn removals_quote_names_and_bind_values<H: ClaimHarness>(harness: Arc<H>) {
    for name in HOSTILE_NAMES {
        let mut shape = Shape::new("hostile").key(name, ValueKind::Int).column("v", ValueKind::Text);
        shape.table = TableName::bare(&format!("{name} {:08x}", fastrand::u32(..))).unwrap();
        let table = harness.create(&shape).await;
        harness.insert(&shape, &[vec![1.into(), name.into()], vec![2.into(), "b".into()]]).await;
        let spec = ClaimSpec::on_table(shape.table.clone()).eligible(col("v").eq(name)).remove();
        let spec = spec.order_by(name).build().unwrap();
        let removed = table.claim(&spec).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(ints(&shape, &removed, name), [1], "{name}");
        assert_eq!(ints(&shape, &harness.rows(&shape).await, name), [2], "{name}: nothing else was touched");
    }
    for (kind, values) in samples() {
        let shape = Shape::new("remove_kind").key("id", ValueKind::Int).column("v", kind);
        let table = harness.create(&shape).await;
        let rows: Vec<Vec<Value>> =
            values.iter().zip(1_i64..).map(|(value, id)| vec![id.into(), value.clone()]).collect();
        harness.insert(&shape, &rows).await;
        for value in &values {
            let spec = ClaimSpec::on_table(shape.table.clone()).eligible(col("v").eq(value.clone())).remove();
            let removed = table.claim(&spec.build().unwrap()).await.unwrap();
            assert_eq!(removed.len(), 1, "{kind:?} {value:?} was not found");
            assert_eq!(shape.normalise(&removed[0]).get("v"), Some(value), "{kind:?}");
        }
        assert!(harness.rows(&shape).await.is_empty(), "{kind:?}");
    }
}

/// What a retention sweep asks for.
pub(crate) async fn removals_go_by_the_database_clock<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "remove_clock", 3).await;
    let hour = Duration::from_secs(3_600);
    for (id, until) in [(1, now_minus(hour * 2)), (2, now_plus(hour))] {
        let mark = ClaimSpec::on_table(shape.table.clone()).eligible(col("id").eq(id));
        let mark = mark.set("lease_until", until).build().unwrap();
        assert_eq!(table.claim(&mark).await.unwrap().len(), 1);
    }
    for (before, expected) in [(now_minus(hour * 3), vec![]), (now_minus(hour), vec![1]), (now(), vec![])] {
        let spec = ClaimSpec::on_table(shape.table.clone()).eligible(col("lease_until").lt(before)).remove();
        let removed = table.claim(&spec.build().unwrap()).await.unwrap();
        assert_eq!(ints(&shape, &removed, "id"), expected);
    }
    assert_eq!(ints(&shape, &harness.rows(&shape).await, "id"), [2, 3]);
}

/// A condition that looks at other rows of the table that is deleted from.
pub(crate) async fn the_head_of_a_group_is_removed_first<H: ClaimHarness>(harness: Arc<H>) {
    let shape = Shape::jobs("remove_heads");
    let table = harness.create(&shape).await;
    let groups = [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "a")];
    let rows: Vec<Vec<Value>> = groups
        .iter()
        .map(|&(id, group)| {
            let mut row = Shape::job(id, id);
            row[2] = group.into();
            row
        })
        .collect();
    harness.insert(&shape, &rows).await;
    let spec = ClaimSpec::on_table(shape.table.clone())
        .eligible(Predicate::first_of("owner", ["rank"], col("status").eq("ready")))
        .remove()
        .order_by("rank")
        .build()
        .unwrap();
    for expected in [vec![1, 2], vec![3, 4], vec![5], vec![]] {
        assert_eq!(ints(&shape, &table.claim(&spec).await.unwrap(), "id"), expected);
    }
}

/// Found, and then somebody else was faster: no error, and nobody gets it twice.
pub(crate) async fn a_row_that_others_took_is_not_removed<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "remove_lost", 4).await;
    let spec = remove_ready(&shape).build().unwrap();
    let found = table.find(&spec).await.unwrap();
    assert_eq!(found.len(), 4);
    assert_eq!(harness.rows(&shape).await.len(), 4, "to find is not to remove");
    let mark = take_ready(&shape).limit(1).build().unwrap();
    assert_eq!(ints(&shape, &table.claim(&mark).await.unwrap(), "id"), [1]);
    let one = remove_ready(&shape).limit(1).build().unwrap();
    assert_eq!(ints(&shape, &table.claim(&one).await.unwrap(), "id"), [2]);
    let mut won = Vec::new();
    for id in &found {
        won.extend(table.claim_one(&spec, id).await.unwrap());
    }
    assert_eq!(ints(&shape, &won, "id"), [3, 4], "one is marked, one is gone");
    assert!(table.claim_one(&spec, &found[3]).await.unwrap().is_none(), "it has been removed by now");
    assert_eq!(ints(&shape, &harness.rows(&shape).await, "id"), [1], "what is marked is not eligible");
    assert!(table.claim(&mark).await.unwrap().is_empty());
}

pub(crate) async fn what_is_wrong_with_a_removal_is_refused<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "remove_refused", 1).await;
    let on = || ClaimSpec::on_table(shape.table.clone());
    for (spec, part) in [
        (on().eligible(col("staus").eq("ready")).remove(), "staus"),
        (on().eligible(col("status").eq("ready")).remove().order_by("staus"), "staus"),
        (ClaimSpec::on("somebody_elses").eligible(col("id").eq(1)).remove(), "somebody_elses"),
    ] {
        let error = table.claim(&spec.build().unwrap()).await.expect_err("refused");
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(harness.rows(&shape).await.len(), 1);
}
