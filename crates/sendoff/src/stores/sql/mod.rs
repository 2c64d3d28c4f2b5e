//! What the SQL stores share: dialects, a table's layout, filling statements, retrying contention.

mod bind;
mod contention;
mod dialect;
mod errors;
mod layout;
mod plan;
mod pool;
mod render;
mod rows;
#[cfg(test)]
mod snapshots;

pub(crate) use bind::Bind;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use bind::timestamp;
pub(crate) use contention::{PATIENCE, retry};
pub(crate) use dialect::Dialect;
#[cfg(feature = "postgres")]
pub(crate) use errors::database_error;
pub(crate) use errors::from_driver;
pub(crate) use layout::{ColumnInfo, ColumnKind, Layout, UniqueKey};
pub use plan::Plan;
pub(crate) use pool::Connections;
#[cfg(feature = "sqlite")]
pub(crate) use pool::Lent;
pub(crate) use render::{Renderer, Statement};
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use rows::in_picked_order;
pub(crate) use rows::{key, record};

/// Keys per statement: far below every database's limit of bound values, and of MariaDB's thousand, from which
/// on an IN list is turned into a join.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) const KEYS_PER_STATEMENT: usize = 500;
