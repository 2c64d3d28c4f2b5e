//! Enqueue on the connections of other database libraries than sqlx. Each file is one library and one feature;
//! all that it does is to bind the outbox's own statements.

#[cfg(feature = "diesel-async")]
mod diesel_async;
#[cfg(feature = "sea-orm")]
mod sea_orm;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;
