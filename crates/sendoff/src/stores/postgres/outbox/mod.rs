//! An outbox in PostgreSQL.

mod database;
mod enqueue;

use super::PostgresDatabase;

/// An outbox in PostgreSQL on the portable floor.
pub type PostgresFloorOutbox = crate::stores::SqlOutbox<PostgresDatabase>;
