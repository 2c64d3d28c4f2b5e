//! A store by somebody else: `find` and `claim_one`, nothing more. The suite must find it correct.
//!
//! It stands for a document store: every row has a version, and a write says which version it expects. Conditions are
//! evaluated by its own few lines, so that nothing of the memory store helps it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use sendoff::StoreError;
use sendoff::claim::{
    Change, ClaimSpec, Claimable, Direction, Ident, Nulls, Op, Predicate, Record, TableName, Timestamp, Value,
};
use sendoff::testkit::{ClaimHarness, Shape};

type Versioned = (u64, Vec<Value>);

/// By the number that each got when it was inserted.
type Numbered = BTreeMap<usize, Versioned>;

/// The number of the next one: no two ever have the same, also if the first is gone.
static NEXT: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
pub(crate) struct TwoMethods {
    tables: Mutex<HashMap<String, Documents>>,
}

#[derive(Clone)]
pub(crate) struct Documents {
    name: TableName,
    columns: Arc<[Ident]>,
    key: Vec<String>,
    /// Each with its version.
    documents: Arc<Mutex<Numbered>>,
}

impl Documents {
    fn check(&self, spec: &ClaimSpec) -> Result<(), StoreError> {
        let refuse = |detail: String| Err(StoreError::rejected("claim", self.name.to_string(), detail));
        if *spec.table() != self.name {
            return refuse(format!("the spec is for table `{}`", spec.table()));
        }
        let mut named = Vec::new();
        columns_of(spec.eligible(), &mut named);
        named.extend(spec.order().iter().map(|order| order.column.as_str()));
        named.extend(spec.assignments().iter().map(|assignment| assignment.column.as_str()));
        if let Some(unknown) = named.iter().find(|name| !self.columns.iter().any(|c| c.as_str() == **name)) {
            return refuse(format!("no column `{unknown}`"));
        }
        match spec
            .assignments()
            .iter()
            .find(|assignment| self.key.iter().any(|k| k == assignment.column.as_str()))
        {
            Some(assignment) => refuse(format!("column `{}` is part of the key", assignment.column)),
            None => Ok(()),
        }
    }

    fn record(&self, document: &[Value]) -> Record {
        Record::new(Arc::clone(&self.columns), document.to_vec())
    }

    fn place(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name.as_str() == column).expect("checked before")
    }

    fn truth(&self, predicate: &Predicate, document: &[Value], all: &Numbered) -> Option<bool> {
        let cell = |column: &str| &document[self.place(column)];
        match predicate {
            Predicate::Compare { column, op, value } => {
                let ordering = match value {
                    Value::Now { .. } => compare(cell(column), &at_now(value))?,
                    fixed => compare(cell(column), fixed)?,
                };
                Some(match op {
                    Op::Eq => ordering.is_eq(),
                    Op::Ne => ordering.is_ne(),
                    Op::Lt => ordering.is_lt(),
                    Op::Le => ordering.is_le(),
                    Op::Gt => ordering.is_gt(),
                    Op::Ge => ordering.is_ge(),
                })
            }
            Predicate::In { column, values } => {
                any(values.iter().map(|value| compare(cell(column), value).map(Ordering::is_eq)))
            }
            Predicate::IsNull { column } => Some(*cell(column) == Value::Null),
            Predicate::And(parts) => {
                any(parts.iter().map(|part| self.truth(part, document, all).map(|t| !t))).map(|t| !t)
            }
            Predicate::Or(parts) => any(parts.iter().map(|part| self.truth(part, document, all))),
            Predicate::Not(part) => self.truth(part, document, all).map(|truth| !truth),
            Predicate::First { group, order, among } => {
                let own = cell(group);
                let is_before = |other: &[Value]| {
                    order.iter().fold(Ordering::Equal, |so_far, column| {
                        let place = self.place(column);
                        so_far.then(by(&other[place], &document[place], Direction::Ascending, Nulls::Native))
                    })
                };
                let is_first = !all.values().any(|(_, other)| {
                    compare(&other[self.place(group)], own).is_some_and(Ordering::is_eq)
                        && is_before(other).is_lt()
                        && self.truth(among, other, all) == Some(true)
                });
                Some(is_first)
            }
            other => panic!("unknown condition {other:?}"),
        }
    }
}

impl Claimable for Documents {
    /// Its number, and the version that was seen.
    type Id = (usize, u64);
    type Row = Record;

    async fn find(&self, spec: &ClaimSpec) -> Result<Vec<Self::Id>, StoreError> {
        self.check(spec)?;
        let documents = self.documents.lock().unwrap();
        let mut found: Vec<usize> = documents
            .iter()
            .filter(|(_, (_, document))| self.truth(spec.eligible(), document, &documents) == Some(true))
            .map(|(number, _)| *number)
            .collect();
        let by_order = |a: &usize, b: &usize| {
            spec.order().iter().fold(Ordering::Equal, |so_far, order| {
                let column = self.place(order.column.as_str());
                let (a, b) = (&documents[a].1[column], &documents[b].1[column]);
                so_far.then(by(a, b, order.direction, order.nulls))
            })
        };
        let limit = spec.limit() as usize;
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable_by(limit - 1, by_order);
        }
        found.truncate(limit);
        found.sort_by(by_order);
        Ok(found.into_iter().map(|number| (number, documents[&number].0)).collect())
    }

    async fn claim_one(&self, spec: &ClaimSpec, id: &Self::Id) -> Result<Option<Record>, StoreError> {
        // Between find and here anything may have happened.
        if fastrand::u8(..) < 32 {
            tokio::task::yield_now().await;
        }
        let mut documents = self.documents.lock().unwrap();
        let Some((version, document)) = documents.get_mut(&id.0) else { return Ok(None) };
        if *version != id.1 {
            return Ok(None);
        }
        *version += 1;
        if spec.removes() {
            let removed = self.record(document);
            documents.remove(&id.0);
            return Ok(Some(removed));
        }
        for assignment in spec.assignments() {
            let cell = &mut document[self.place(assignment.column.as_str())];
            *cell = match (&assignment.change, &*cell) {
                (Change::To(value), _) => at_now(value),
                (Change::Add(number), Value::Int(old)) => Value::Int(old + number),
                (Change::Add(number), _) => Value::Int(*number),
            };
        }
        Ok(Some(self.record(document)))
    }
}

fn columns_of<'p>(predicate: &'p Predicate, into: &mut Vec<&'p str>) {
    match predicate {
        Predicate::Compare { column, .. } | Predicate::In { column, .. } | Predicate::IsNull { column } => {
            into.push(column);
        }
        Predicate::And(parts) | Predicate::Or(parts) => parts.iter().for_each(|part| columns_of(part, into)),
        Predicate::Not(part) => columns_of(part, into),
        Predicate::First { group, order, among } => {
            into.push(group);
            into.extend(order.iter().map(String::as_str));
            columns_of(among, into);
        }
        other => panic!("unknown condition {other:?}"),
    }
}

fn at_now(value: &Value) -> Value {
    match value {
        Value::Now { offset_micros } => {
            let now = Timestamp::from(SystemTime::now()).as_micros();
            Timestamp::from_micros(now + offset_micros).into()
        }
        other => other.clone(),
    }
}

fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut answer = Some(false);
    for truth in truths {
        match truth {
            Some(true) => return Some(true),
            None => answer = None,
            Some(false) => {}
        }
    }
    answer
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Uuid(a), Value::Uuid(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn by(a: &Value, b: &Value, direction: Direction, nulls: Nulls) -> Ordering {
    let null_first = match nulls {
        Nulls::First => true,
        Nulls::Last => false,
        Nulls::Native => direction == Direction::Ascending,
    };
    let ordering = match (*a == Value::Null, *b == Value::Null) {
        (false, false) => compare(a, b).unwrap_or(Ordering::Equal),
        (true, true) => return Ordering::Equal,
        (a_null, _) => return if a_null == null_first { Ordering::Less } else { Ordering::Greater },
    };
    if direction == Direction::Descending { ordering.reverse() } else { ordering }
}

impl TwoMethods {
    fn table(&self, shape: &Shape) -> Documents {
        self.tables.lock().unwrap()[&shape.table.to_string()].clone()
    }
}

impl ClaimHarness for TwoMethods {
    type Table = Documents;

    async fn create(&self, shape: &Shape) -> Documents {
        let columns: Vec<Ident> =
            shape.columns.iter().map(|column| Ident::new(&column.name).unwrap()).collect();
        let key =
            shape.columns.iter().filter(|column| column.is_key).map(|column| column.name.clone()).collect();
        let table =
            Documents { name: shape.table.clone(), columns: columns.into(), key, documents: Arc::default() };
        self.tables.lock().unwrap().insert(shape.table.to_string(), table.clone());
        table
    }

    async fn insert(&self, shape: &Shape, rows: &[Vec<Value>]) {
        let table = self.table(shape);
        let mut documents = table.documents.lock().unwrap();
        for row in rows {
            documents.insert(NEXT.fetch_add(1, Relaxed), (0, row.clone()));
        }
    }

    async fn rows(&self, shape: &Shape) -> Vec<Record> {
        let table = self.table(shape);
        let documents = table.documents.lock().unwrap();
        documents.values().map(|(_, document)| table.record(document)).collect()
    }

    fn nulls_first(&self) -> bool {
        true
    }

    fn race_rows(&self) -> i64 {
        crate::servers::race_rows()
    }
}
