//! What the SQL stores share: dialects, a table's layout, filling statements, retrying contention.

mod bind;
#[cfg(any(test, feature = "postgres", feature = "tokio-postgres", feature = "sqlite", feature = "sea-orm"))]
mod codes;
mod contention;
mod dialect;
mod errors;
mod inbox;
mod layout;
mod outbox;
mod plan;
mod pool;
mod render;
mod retention;
mod rows;
#[cfg(test)]
mod snapshots;
mod tasks;

pub(crate) use bind::Bind;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use bind::timestamp;
#[cfg(any(feature = "sqlite", feature = "sea-orm"))]
pub(crate) use codes::sqlite;
#[cfg(any(feature = "postgres", feature = "tokio-postgres", feature = "sea-orm"))]
pub(crate) use codes::sqlstate;
pub(crate) use contention::{PATIENCE, retry};
pub(crate) use dialect::Dialect;
#[cfg(feature = "postgres")]
pub(crate) use errors::database_error;
pub(crate) use errors::from_driver;
pub use inbox::{Inbox, SqlInbox};
pub(crate) use layout::{ColumnInfo, ColumnKind, Layout, UniqueKey, fit};
#[cfg(any(feature = "postgres", feature = "tokio-postgres", feature = "diesel-async"))]
pub(crate) use outbox::EventColumns;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use outbox::host_connection;
pub(crate) use outbox::{
    AtOnce, Script, SqlDatabase, SqlTransaction, Templates, enqueue_statements, sql_transaction,
};
#[cfg(feature = "postgres")]
pub(crate) use outbox::{Faults, is_plain, object_headers, paused_name, whole_fetch, without_unreadable_key};
pub use outbox::{
    HostConnection, HostSession, Migration, Names, Outbox, SCHEMA_VERSION, SchemaSet, SchemaState, SqlOutbox,
};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(crate) use outbox::{host_read, host_session};
pub use plan::Plan;
pub(crate) use pool::Connections;
pub(crate) use pool::Lent;
pub(crate) use render::Renderer;
pub(crate) use render::Statement;
pub(crate) use retention::{Aging, OLDEST};
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use rows::in_picked_order;
pub(crate) use rows::{key, record};
pub use tasks::{SqlTasks, Tasks};

/// The rows that a claim would take, as they are.
#[cfg_attr(not(any(feature = "postgres", feature = "sqlite", feature = "mysql")), allow(dead_code))]
pub(crate) const READ: &str = include_str!("../../adopted/read.sql");

/// How many of them there are.
#[cfg_attr(not(any(feature = "postgres", feature = "sqlite", feature = "mysql")), allow(dead_code))]
pub(crate) const COUNT: &str = include_str!("../../adopted/count.sql");

/// Keys per statement: far below every database's limit of bound values, and of MariaDB's thousand, from which
/// on an IN list is turned into a join.
pub(crate) const KEYS_PER_STATEMENT: usize = 500;
