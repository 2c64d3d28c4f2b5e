//! Enqueue, and an inbox, on the connections of other database libraries than sqlx. Each file is one library and one feature;
//! all that it does is to bind the statements of the outbox and of the inbox.

#[cfg(feature = "diesel-async")]
mod diesel_async;
#[cfg(feature = "sea-orm")]
mod sea_orm;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;
