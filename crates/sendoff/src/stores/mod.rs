//! Where tables live. The contract is [`Claimable`](crate::claim::Claimable); each folder here is
//! one implementation, and the statements of the SQL ones are the `.sql` files beside their code, under the
//! same names in every dialect.

pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "_sql")]
// An adapter alone fills the enqueue statements and uses nothing else of it.
#[cfg_attr(
    not(any(feature = "postgres", feature = "sqlite", feature = "mysql")),
    allow(dead_code, unreachable_pub, unused_imports, unused_macros)
)]
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "_sql")]
pub use sql::{HostConnection, HostSession, Inbox, Names, Outbox, Tasks};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use sql::{Migration, Plan, SCHEMA_VERSION, SchemaSet, SchemaState, SqlInbox, SqlOutbox, SqlTasks};
