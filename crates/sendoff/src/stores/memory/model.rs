//! What a claim means, in Rust: the same three-valued logic and the same order as SQL's. The suite
//! compares every other store with this.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::claim::{
    Change, ClaimSpec, Direction, Ident, Key, Nulls, Op, Predicate, Record, Table, Timestamp, Value,
};
use crate::error::StoreError;

/// The rows of one table.
#[derive(Debug)]
pub(super) struct Rows {
    table: Table,
    columns: Arc<[Ident]>,
    key: Vec<usize>,
    /// What a claim returns: the columns, and where they stand in a row.
    returned: (Arc<[Ident]>, Vec<usize>),
    rows: Vec<Record>,
    by_key: HashMap<Vec<u8>, usize>,
}

impl Rows {
    pub(super) fn new(table: Table, columns: &[&str]) -> Result<Self, StoreError> {
        let subject = table.name().to_string();
        let columns: Vec<Ident> = columns
            .iter()
            .map(|name| {
                Ident::new(name).map_err(|e| StoreError::rejected("create table", &subject, e.to_string()))
            })
            .collect::<Result<_, _>>()?;
        let columns: Arc<[Ident]> = columns.into();
        let index_of = |name: &Ident| {
            columns
                .iter()
                .position(|column| column == name)
                .ok_or_else(|| StoreError::rejected("create table", &subject, format!("no column `{name}`")))
        };
        let key = table.key().iter().map(index_of).collect::<Result<_, _>>()?;
        let returned = match &table.returning {
            Some(names) => {
                let indexes = names.iter().map(index_of).collect::<Result<_, _>>()?;
                (names.clone().into(), indexes)
            }
            None => (Arc::clone(&columns), (0..columns.len()).collect()),
        };
        Ok(Self { table, columns, key, returned, rows: Vec::new(), by_key: HashMap::new() })
    }

    fn refuse(&self, op: &'static str, detail: String) -> StoreError {
        StoreError::rejected(op, self.table.name().to_string(), detail)
    }

    fn index_of(&self, name: &str) -> Result<usize, StoreError> {
        self.columns
            .iter()
            .position(|column| column.as_str() == name)
            .ok_or_else(|| self.refuse("claim", format!("no column `{name}`")))
    }

    pub(super) fn insert(&mut self, rows: &[Vec<(&str, Value)>], now: Timestamp) -> Result<(), StoreError> {
        let before = self.rows.len();
        for row in rows {
            if let Err(error) = self.insert_one(row, now) {
                self.rows.truncate(before);
                self.by_key.retain(|_, index| *index < before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn insert_one(&mut self, row: &[(&str, Value)], now: Timestamp) -> Result<(), StoreError> {
        let mut values = vec![Value::Null; self.columns.len()];
        for (name, value) in row {
            let index = self.index_of(name)?;
            values[index] = resolve(value, now);
        }
        let record = Record::new(Arc::clone(&self.columns), values);
        let key = self.key_of(&record);
        if key.0.contains(&Value::Null) {
            return Err(self.refuse("insert", "a key column is null".to_owned()));
        }
        if self.by_key.insert(key.to_bytes(), self.rows.len()).is_some() {
            return Err(self.refuse("insert", "a row with this key is there already".to_owned()));
        }
        self.rows.push(record);
        Ok(())
    }

    fn key_of(&self, record: &Record) -> Key {
        Key(self.key.iter().map(|&index| record.at(index).clone()).collect())
    }

    pub(super) fn key_at(&self, index: usize) -> Key {
        self.key_of(&self.rows[index])
    }

    pub(super) fn has_column(&self, name: &str) -> bool {
        self.index_of(name).is_ok()
    }

    /// A row as a claim returns it.
    pub(super) fn at(&self, index: usize) -> Record {
        self.rows[index].project(&self.returned.0, &self.returned.1)
    }

    pub(super) fn position(&self, key: &Key) -> Option<usize> {
        self.by_key.get(&key.to_bytes()).copied()
    }

    pub(super) fn all(&self) -> Vec<Record> {
        let mut rows = self.rows.clone();
        rows.sort_by(|a, b| {
            self.key.iter().fold(Ordering::Equal, |so_far, &index| {
                so_far.then_with(|| compare(a.at(index), b.at(index)).unwrap_or(Ordering::Equal))
            })
        });
        rows
    }

    /// Refuses what could not be a claim on this table.
    pub(super) fn accepts(&self, spec: &ClaimSpec) -> Result<(), StoreError> {
        if spec.table() != self.table.name() {
            return Err(self.refuse("claim", format!("the spec is for table `{}`", spec.table())));
        }
        for assignment in spec.assignments() {
            let index = self.index_of(assignment.column.as_str())?;
            if self.key.contains(&index) {
                let detail = format!("column `{}` is part of the key and cannot be set", assignment.column);
                return Err(self.refuse("claim", detail));
            }
        }
        Ok(())
    }

    /// Where the eligible rows stand, in the spec's order, at most its limit.
    pub(super) fn find(&self, spec: &ClaimSpec, now: Timestamp) -> Result<Vec<usize>, StoreError> {
        let condition = self.compile(spec.eligible(), now)?;
        let order: Vec<(usize, Direction, Nulls)> = spec
            .order()
            .iter()
            .map(|order| Ok((self.index_of(order.column.as_str())?, order.direction, order.nulls)))
            .collect::<Result<_, StoreError>>()?;
        let limit = usize::try_from(spec.limit()).unwrap_or(usize::MAX);
        let mut found: Vec<usize> =
            (0..self.rows.len()).filter(|&index| condition.holds(&self.rows[index]) == Some(true)).collect();
        let by_order = |a: &usize, b: &usize| {
            let (a_row, b_row) = (&self.rows[*a], &self.rows[*b]);
            order
                .iter()
                .fold(Ordering::Equal, |so_far, &(column, direction, nulls)| {
                    so_far.then_with(|| sort(a_row.at(column), b_row.at(column), direction, nulls))
                })
                .then(a.cmp(b))
        };
        if limit == 0 {
            found.clear();
        } else if found.len() > limit {
            found.select_nth_unstable_by(limit - 1, by_order);
            found.truncate(limit);
        }
        found.sort_unstable_by(by_order);
        Ok(found)
    }

    pub(super) fn is_eligible(
        &self,
        index: usize,
        spec: &ClaimSpec,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.compile(spec.eligible(), now)?.holds(&self.rows[index]) == Some(true))
    }

    /// Applies the claim to one row and returns it as it is then.
    pub(super) fn mark(
        &mut self,
        index: usize,
        spec: &ClaimSpec,
        now: Timestamp,
    ) -> Result<Record, StoreError> {
        for assignment in spec.assignments() {
            let column = self.index_of(assignment.column.as_str())?;
            let value = match (&assignment.change, self.rows[index].at(column)) {
                (Change::To(value), _) => resolve(value, now),
                (Change::Add(number), Value::Null) => Value::Int(*number),
                (Change::Add(number), Value::Int(old)) => Value::Int(old.saturating_add(*number)),
                (Change::Add(_), other) => {
                    let detail = format!(
                        "column `{}` holds {}; nothing can be added",
                        assignment.column,
                        other.kind()
                    );
                    return Err(self.refuse("claim", detail));
                }
            };
            *self.rows[index].at_mut(column) = value;
        }
        Ok(self.rows[index].project(&self.returned.0, &self.returned.1))
    }

    /// Deletes these rows.
    pub(super) fn remove(&mut self, mut indexes: Vec<usize>) {
        // From the end, so that the last row, which moves into the gap, is never one that is still to go.
        indexes.sort_unstable_by(|a, b| b.cmp(a));
        for index in indexes {
            self.by_key.remove(&self.key_at(index).to_bytes());
            self.rows.swap_remove(index);
            if index < self.rows.len() {
                self.by_key.insert(self.key_at(index).to_bytes(), index);
            }
        }
    }

    fn compile(&self, predicate: &Predicate, now: Timestamp) -> Result<Condition, StoreError> {
        let all = |parts: &[Predicate]| {
            parts.iter().map(|part| self.compile(part, now)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match predicate {
            Predicate::Compare { column, op, value } => {
                Condition::Compare(self.index_of(column)?, *op, resolve(value, now))
            }
            Predicate::In { column, values } => {
                let index = self.index_of(column)?;
                let equal = |value| Condition::Compare(index, Op::Eq, resolve(value, now));
                Condition::Or(values.iter().map(equal).collect())
            }
            Predicate::IsNull { column } => Condition::IsNull(self.index_of(column)?),
            Predicate::First { group, order, among } => {
                let (group, among) = (self.index_of(group)?, self.compile(among, now)?);
                let order = order.iter().map(|name| self.index_of(name)).collect::<Result<Vec<_>, _>>()?;
                let counted = self.rows.iter().filter(|row| among.holds(row) == Some(true));
                let place = |row: &Record| order.iter().map(|&column| row.at(column).clone()).collect();
                let mut firsts: HashMap<Vec<u8>, Vec<Value>> = HashMap::new();
                for row in counted.filter(|row| *row.at(group) != Value::Null) {
                    let (of, place): (_, Vec<Value>) =
                        (Key(vec![row.at(group).clone()]).to_bytes(), place(row));
                    let first = firsts.entry(of).or_insert_with(|| place.clone());
                    if is_before(&place, first) {
                        *first = place;
                    }
                }
                Condition::First { group, order, firsts }
            }
            Predicate::And(parts) => Condition::And(all(parts)?),
            Predicate::Or(parts) => Condition::Or(all(parts)?),
            Predicate::Not(part) => Condition::Not(Box::new(self.compile(part, now)?)),
        })
    }
}

/// A predicate with its columns looked up and its clock read.
#[derive(Debug)]
enum Condition {
    Compare(usize, Op, Value),
    IsNull(usize),
    /// Where the first of each group stands.
    First {
        group: usize,
        order: Vec<usize>,
        firsts: HashMap<Vec<u8>, Vec<Value>>,
    },
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    /// `None` is SQL's unknown.
    fn holds(&self, row: &Record) -> Option<bool> {
        match self {
            Self::Compare(column, op, value) => {
                let ordering = compare(row.at(*column), value)?;
                Some(match op {
                    Op::Eq => ordering.is_eq(),
                    Op::Ne => ordering.is_ne(),
                    Op::Lt => ordering.is_lt(),
                    Op::Le => ordering.is_le(),
                    Op::Gt => ordering.is_gt(),
                    Op::Ge => ordering.is_ge(),
                })
            }
            Self::IsNull(column) => Some(*row.at(*column) == Value::Null),
            Self::First { group, order, firsts } => {
                let of = Key(vec![row.at(*group).clone()]).to_bytes();
                let place: Vec<Value> = order.iter().map(|&column| row.at(column).clone()).collect();
                Some(firsts.get(&of).is_none_or(|first| !is_before(first, &place)))
            }
            // All hold if none fails; a false decides, and an unknown leaves it open.
            Self::And(parts) => {
                any(parts.iter().map(|part| part.holds(row).map(|truth| !truth))).map(|truth| !truth)
            }
            Self::Or(parts) => any(parts.iter().map(|part| part.holds(row))),
            Self::Not(part) => part.holds(row).map(|truth| !truth),
        }
    }
}

/// Column by column; NULL is before nothing and after nothing.
fn is_before(a: &[Value], b: &[Value]) -> bool {
    for (a, b) in a.iter().zip(b) {
        match compare(a, b) {
            Some(Ordering::Equal) => {}
            Some(ordering) => return ordering.is_lt(),
            None => return false,
        }
    }
    false
}

fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut answer = Some(false);
    for truth in truths {
        match truth {
            Some(true) => return Some(true),
            Some(false) => {}
            None => answer = None,
        }
    }
    answer
}

fn resolve(value: &Value, now: Timestamp) -> Value {
    match value {
        Value::Now { offset_micros } => {
            Value::Timestamp(Timestamp::from_micros(now.as_micros().saturating_add(*offset_micros)))
        }
        other => other.clone(),
    }
}

/// `None` where either is NULL, or they cannot be compared.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        #[allow(clippy::cast_precision_loss)]
        (Value::Int(a), Value::Float(b)) => (*a as f64).partial_cmp(b),
        #[allow(clippy::cast_precision_loss)]
        (Value::Float(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Uuid(a), Value::Uuid(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// NULL is smaller than everything unless the order says otherwise.
fn sort(a: &Value, b: &Value, direction: Direction, nulls: Nulls) -> Ordering {
    let both = |ordering: Ordering| match direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    };
    match (a == &Value::Null, b == &Value::Null) {
        (true, true) => Ordering::Equal,
        (false, false) => both(compare(a, b).unwrap_or(Ordering::Equal)),
        (a_is_null, _) => {
            let a_first = if a_is_null { Ordering::Less } else { Ordering::Greater };
            match nulls {
                Nulls::Native => both(a_first),
                Nulls::First => a_first,
                Nulls::Last => a_first.reverse(),
            }
        }
    }
}
