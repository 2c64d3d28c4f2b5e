//! Where tables live. The contract is [`Claimable`](crate::claim::Claimable); each folder here is
//! one implementation, and the statements of the SQL ones are the `.sql` files beside their code, under the
//! same names in every dialect.

pub mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use sql::{HostConnection, Migration, Names, Outbox, Plan, SCHEMA_VERSION, SqlOutbox};
