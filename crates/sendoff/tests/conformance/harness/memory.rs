//! Tables in memory.

use sendoff::claim::{Record, TableName, Value};
use sendoff::stores::memory::{MemoryDatabase, MemoryTable};
use sendoff::testkit::{ClaimHarness, Shape};
use std::collections::HashMap;
use std::sync::Mutex;

pub(crate) struct Memory {
    database: MemoryDatabase,
    tables: Mutex<HashMap<String, MemoryTable<Record>>>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { database: MemoryDatabase::new(), tables: Mutex::default() }
    }

    /// A table that was made before.
    pub(crate) fn opened(&self, name: &TableName) -> MemoryTable<Record> {
        self.tables.lock().unwrap()[&name.to_string()].clone()
    }
}

impl ClaimHarness for Memory {
    type Table = MemoryTable<Record>;

    async fn create(&self, shape: &Shape) -> Self::Table {
        let names: Vec<&str> = shape.columns.iter().map(|column| column.name.as_str()).collect();
        let table = self.database.create(shape.description(), &names).unwrap();
        self.tables.lock().unwrap().insert(shape.table.to_string(), table.clone());
        table
    }

    async fn insert(&self, shape: &Shape, rows: &[Vec<Value>]) {
        let named: Vec<Vec<(&str, Value)>> = rows
            .iter()
            .map(|row| {
                shape.columns.iter().map(|column| column.name.as_str()).zip(row.iter().cloned()).collect()
            })
            .collect();
        self.opened(&shape.table).insert(&named).unwrap();
    }

    async fn rows(&self, shape: &Shape) -> Vec<Record> {
        self.opened(&shape.table).rows()
    }

    fn nulls_first(&self) -> bool {
        true
    }

    fn race_rows(&self) -> i64 {
        crate::servers::race_rows()
    }
}
