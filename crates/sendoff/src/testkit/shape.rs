//! Tables that the suite wants made.

use std::sync::Arc;

use uuid::Uuid;

use crate::claim::{Ident, Record, Table, TableName, Timestamp, Value};

/// What a column of a [`Shape`] holds. A store uses its own type for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A truth value.
    Bool,
    /// 64 bits, signed.
    Int,
    /// 64 bits, floating.
    Float,
    /// Text of up to 200 characters that compares byte by byte.
    Text,
    /// Up to 200 bytes.
    Bytes,
    /// A UUID.
    Uuid,
    /// A moment in microseconds.
    Timestamp,
    /// JSON.
    Json,
}

/// One column.
#[derive(Debug, Clone)]
pub struct ShapeColumn {
    /// Its name; it may need quoting.
    pub name: String,
    /// What it holds.
    pub kind: ValueKind,
    /// Part of the primary key, and so never NULL; every other column may be.
    pub is_key: bool,
}

/// A table to make.
#[derive(Debug, Clone)]
pub struct Shape {
    /// A name that no other table has; it may need quoting.
    pub table: TableName,
    /// Its columns, in order. Their names are valid in every database.
    pub columns: Vec<ShapeColumn>,
    /// Columns to index, in this order, beside the primary key. Empty: no further index.
    pub index: Vec<String>,
}

impl Shape {
    /// An empty shape whose table is called `purpose` and something unique.
    pub fn new(purpose: &str) -> Self {
        let unique = fastrand::u64(..);
        let table = TableName::bare(&format!("{purpose}_{unique:016x}")).expect("a short name");
        Self { table, columns: Vec::new(), index: Vec::new() }
    }

    /// The table most cases use: jobs with a status, an owner, a lease, a rank to order by.
    pub fn jobs(purpose: &str) -> Self {
        Self::new(purpose)
            .key("id", ValueKind::Int)
            .column("status", ValueKind::Text)
            .column("owner", ValueKind::Text)
            .column("lease_until", ValueKind::Timestamp)
            .column("attempts", ValueKind::Int)
            .column("rank", ValueKind::Int)
            .index(&["status", "rank"])
    }

    /// A row of [`Shape::jobs`] that is ready.
    pub fn job(id: i64, rank: impl Into<Value>) -> Vec<Value> {
        vec![id.into(), "ready".into(), Value::Null, Value::Null, 0.into(), rank.into()]
    }

    /// Adds a key column.
    #[must_use]
    pub fn key(mut self, name: &str, kind: ValueKind) -> Self {
        self.columns.push(ShapeColumn { name: name.to_owned(), kind, is_key: true });
        self
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, name: &str, kind: ValueKind) -> Self {
        self.columns.push(ShapeColumn { name: name.to_owned(), kind, is_key: false });
        self
    }

    /// Sets the index.
    #[must_use]
    pub fn index(mut self, columns: &[&str]) -> Self {
        self.index = columns.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// The table as a store opens it.
    pub fn description(&self) -> Table {
        let key = self.columns.iter().filter(|column| column.is_key).map(|column| column.name.as_str());
        Table::named(self.table.clone(), key).expect("a shape has a key and valid names")
    }

    /// The record with every value in the kind its column has, whatever form the store keeps it in: a UUID
    /// that came back as 16 bytes is a UUID, a bool that came back as 1 is a bool.
    pub fn normalise(&self, record: &Record) -> Record {
        let columns: Arc<[Ident]> = record.columns().into();
        let values = columns.iter().zip(record.values()).map(|(name, value)| {
            let column = self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name.as_str()));
            column.map_or_else(|| value.clone(), |column| normalise(column.kind, value))
        });
        let values = values.collect();
        Record::new(columns, values)
    }
}

fn normalise(kind: ValueKind, value: &Value) -> Value {
    match (kind, value) {
        (ValueKind::Bool, Value::Int(number)) => Value::Bool(*number != 0),
        (ValueKind::Float, Value::Int(number)) => {
            #[allow(clippy::cast_precision_loss)]
            let float = *number as f64;
            Value::Float(float)
        }
        (ValueKind::Uuid, Value::Bytes(bytes)) => {
            Uuid::from_slice(bytes).map_or_else(|_| value.clone(), Value::Uuid)
        }
        (ValueKind::Uuid, Value::Text(text)) => text.parse().map_or_else(|_| value.clone(), Value::Uuid),
        (ValueKind::Timestamp, Value::Int(micros)) => Value::Timestamp(Timestamp::from_micros(*micros)),
        (ValueKind::Json, Value::Text(text)) => {
            serde_json::from_str(text).map_or_else(|_| value.clone(), Value::Json)
        }
        _ => value.clone(),
    }
}
