//! Random tables, names, values, conditions and orders: the store and the memory store must do the same.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use uuid::Uuid;

use super::super::{ClaimHarness, Shape, ShapeColumn, ValueKind};
use super::names::HOSTILE_NAMES;
use crate::claim::{
    ClaimSpec, Claimable as _, Direction, Nulls, Op, Predicate, Record, TableName, Timestamp, Value,
};
use crate::stores::memory::MemoryDatabase;

const CASES: u32 = 48;

#[derive(Debug, Clone)]
struct Scenario {
    shape: Shape,
    rows: Vec<Vec<Value>>,
    eligible: Predicate,
    /// Empty: the rows are removed.
    set: Vec<(String, Value)>,
    order: Vec<(String, Direction, Nulls)>,
    limit: u32,
}

const KINDS: [ValueKind; 7] = [
    ValueKind::Bool,
    ValueKind::Int,
    ValueKind::Float,
    ValueKind::Text,
    ValueKind::Bytes,
    ValueKind::Uuid,
    ValueKind::Timestamp,
];

/// Few values of each kind, so that rows and conditions meet.
fn value(kind: ValueKind) -> BoxedStrategy<Value> {
    match kind {
        ValueKind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        ValueKind::Int => prop_oneof![Just(i64::MIN), Just(i64::MAX), -3_i64..4].prop_map(Value::Int).boxed(),
        ValueKind::Float => prop_oneof![Just(-1e9), Just(0.5), Just(2.0)].prop_map(Value::Float).boxed(),
        ValueKind::Text => {
            let chosen =
                prop::sample::select(vec!["", "a", "A", "a ", "b'\"`;--", "ß表"]).prop_map(str::to_owned);
            prop_oneof![chosen, "[a-c%_\\\\]{0,3}"].prop_map(Value::Text).boxed()
        }
        ValueKind::Bytes => {
            vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..3).prop_map(Value::Bytes).boxed()
        }
        ValueKind::Uuid => (0_u128..3).prop_map(|n| Value::Uuid(Uuid::from_u128(n << 64 | n))).boxed(),
        ValueKind::Timestamp | ValueKind::Json => (0_i64..4)
            .prop_map(|n| Value::Timestamp(Timestamp::from_micros(1_600_000_000_000_000 + n)))
            .boxed(),
    }
}

fn name() -> BoxedStrategy<String> {
    prop_oneof![
        prop::sample::select(HOSTILE_NAMES.to_vec()).prop_map(str::to_owned),
        "[a-zA-Z_][a-zA-Z0-9_ ]{0,10}[a-z]",
        "\\PC{1,12}".prop_filter("valid in every database", |name| {
            // Four bytes in UTF-8 are more than MariaDB keeps of a name; some databases trim spaces.
            crate::claim::Ident::new(name).is_ok()
                && name.chars().all(|c| c.len_utf8() < 4)
                && name.trim() == name
        }),
    ]
    .boxed()
}

fn shape() -> BoxedStrategy<Shape> {
    (name(), vec((name(), prop::sample::select(KINDS.to_vec())), 1..5))
        .prop_map(|(table, columns)| {
            let mut shape = Shape::new("random").key("id", ValueKind::Int);
            shape.table = TableName::bare(&table).unwrap();
            for (number, (name, kind)) in columns.into_iter().enumerate() {
                // Told apart by a number, since some databases do not tell Ä from ä.
                shape.columns.push(ShapeColumn { name: format!("{name}{number}"), kind, is_key: false });
            }
            shape
        })
        .boxed()
}

fn predicate(columns: &[ShapeColumn]) -> BoxedStrategy<Predicate> {
    let leaf = prop::sample::select(columns.to_vec()).prop_flat_map(|column| {
        let ops = prop::sample::select(vec![Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge]);
        let (name, other, third) = (column.name.clone(), column.name.clone(), column.name.clone());
        prop_oneof![
            4 => (ops, value(column.kind)).prop_map(move |(op, value)| {
                Predicate::Compare { column: name.clone(), op, value }
            }),
            1 => vec(value(column.kind), 0..3).prop_map(move |values| {
                Predicate::In { column: other.clone(), values }
            }),
            1 => Just(Predicate::IsNull { column: third }),
        ]
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Predicate::And),
            vec(inner.clone(), 0..3).prop_map(Predicate::Or),
            inner.prop_map(Predicate::not),
        ]
    })
    .boxed()
}

fn scenario() -> BoxedStrategy<Scenario> {
    shape()
        .prop_flat_map(|shape| {
            let columns = shape.columns[1..].to_vec();
            let cells: Vec<BoxedStrategy<Value>> = columns
                .iter()
                .map(|column| prop_oneof![1 => Just(Value::Null), 3 => value(column.kind)].boxed())
                .collect();
            let rows = vec(cells.clone(), 0..10);
            let set = (prop::sample::select((0..columns.len()).collect::<Vec<_>>()), cells);
            let order = vec(
                (
                    prop::sample::select(columns.clone()),
                    prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)],
                    // Where NULL goes by itself differs from database to database.
                    prop_oneof![Just(Nulls::First), Just(Nulls::Last)],
                ),
                0..3,
            );
            let set = prop_oneof![2 => set.prop_map(Some), 1 => Just(None)];
            (Just(shape), rows, predicate(&columns), set, order, 0_u32..8)
        })
        .prop_map(|(shape, rows, eligible, set, order, limit)| {
            let rows = rows
                .into_iter()
                .zip(1_i64..)
                .map(|(cells, id)| [Value::Int(id)].into_iter().chain(cells).collect());
            let set = set.map(|(index, new_values)| {
                (shape.columns[index + 1].name.clone(), new_values[index].clone())
            });
            let mut order: Vec<_> =
                order.into_iter().map(|(column, way, nulls)| (column.name, way, nulls)).collect();
            // Ties would be broken as each store likes.
            order.push(("id".to_owned(), Direction::Ascending, Nulls::Native));
            Scenario { rows: rows.collect(), shape, eligible, set: set.into_iter().collect(), order, limit }
        })
        .boxed()
}

/// A scenario is run again while it is being simplified: each time under another table's name.
fn unique(mut shape: Shape) -> Shape {
    let start: String = shape.table.name().as_str().chars().take(8).collect();
    shape.table = TableName::bare(&format!("{start} {:016x}", fastrand::u64(..))).unwrap();
    shape
}

impl Scenario {
    fn spec(&self) -> ClaimSpec {
        let mut spec =
            ClaimSpec::on_table(self.shape.table.clone()).eligible(self.eligible.clone()).limit(self.limit);
        if self.set.is_empty() {
            spec = spec.remove();
        }
        for (name, value) in &self.set {
            spec = spec.set(name.as_str(), value.clone());
        }
        for (name, direction, nulls) in &self.order {
            spec = spec.order_by_with(name.as_str(), *direction, *nulls);
        }
        spec.build().expect("scenarios are valid")
    }

    /// What the memory store claims, and what it then holds.
    async fn expected(&self) -> (Vec<Record>, Vec<Record>) {
        let names: Vec<&str> = self.shape.columns.iter().map(|column| column.name.as_str()).collect();
        let table = MemoryDatabase::new().create::<Record>(self.shape.description(), &names).unwrap();
        let rows: Vec<Vec<(&str, Value)>> =
            self.rows.iter().map(|row| names.iter().copied().zip(row.iter().cloned()).collect()).collect();
        table.insert(&rows).unwrap();
        let claimed = table.claim(&self.spec()).await.unwrap();
        (claimed, table.rows())
    }
}

pub(crate) async fn random_claims_agree_with_the_memory_store<H: ClaimHarness>(harness: Arc<H>) {
    let runtime = tokio::runtime::Handle::current();
    let search = move || {
        let config =
            Config { cases: CASES, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
        let outcome = TestRunner::new(config).run(&scenario(), |mut scenario| {
            scenario.shape = unique(scenario.shape);
            runtime.block_on(agrees(&*harness, &scenario))
        });
        outcome.map_err(|failure| failure.to_string())
    };
    if let Err(failure) = tokio::task::spawn_blocking(search).await.unwrap() {
        panic!("{failure}");
    }
}

async fn agrees<H: ClaimHarness>(harness: &H, scenario: &Scenario) -> Result<(), TestCaseError> {
    let Scenario { shape, rows, .. } = scenario;
    let table = harness.create(shape).await;
    harness.insert(shape, rows).await;
    let claimed = table.claim(&scenario.spec()).await;
    let claimed = claimed.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
    let claimed: Vec<Record> = claimed.iter().map(|row| shape.normalise(row)).collect();
    let stored: Vec<Record> = harness.rows(shape).await.iter().map(|row| shape.normalise(row)).collect();
    let (expected_claimed, expected_stored) = scenario.expected().await;
    prop_assert_eq!(claimed, expected_claimed, "claimed");
    prop_assert_eq!(stored, expected_stored, "stored");
    Ok(())
}
