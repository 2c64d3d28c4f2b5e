//! A host's table as a store has it open.

use std::fmt;
use std::future::Future;

use crate::claim::{ClaimSpec, Claimable, Key, Record, Value};
use crate::error::StoreError;

/// Whose SQL a statement for people is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// None: tables in memory.
    Memory,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
    /// MariaDB and MySQL.
    Mysql,
}

/// Whether a column can hold what is written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Fits,
    /// There is no such column; the text has the one that was probably meant.
    Missing(String),
    /// It is of another type.
    Wrong(String),
}

/// What an adopted table needs of a store beyond claiming. The stores of this crate have it.
pub trait RowTable: Claimable<Id = Key, Row = Record> + fmt::Debug + 'static {
    /// Whose SQL it speaks.
    fn database(&self) -> Database;

    /// Whether a column can hold, and be compared with, this value.
    fn fit(&self, column: &str, value: &Value) -> Fit;

    /// The rows that a claim would take, as they are. Changes nothing.
    fn read(&self, spec: &ClaimSpec) -> impl Future<Output = Result<Vec<Record>, StoreError>> + Send;

    /// How many rows a claim could take, no further than its limit. Changes nothing.
    fn count(&self, spec: &ClaimSpec) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Whether an index could serve this claim without a sort, however many rows there will be.
    fn is_servable(&self, spec: &ClaimSpec) -> impl Future<Output = Result<bool, StoreError>> + Send;
}
