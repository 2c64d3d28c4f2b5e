//! **sendoff** gets every committed event to its broker, and nothing that was rolled back: a
//! transactional outbox on one primitive, atomic find-and-claim.
//!
//! This crate is what an application adds, and what the author of a store or a sink builds on. The relay is `sendoff-relay`, sinks are `sendoff-sinks`, the program is `sendoff-cli`.
//!
//! # The outbox
//!
//! An event is written in the application's own transaction, and is there if that commits:
//!
//! ```no_run
//! # #[cfg(feature = "postgres")]
//! # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! use sendoff::{NewEvent, Outbox};
//!
//! let mut transaction = pool.begin().await?;
//! // … the application's own statements …
//! let event = NewEvent::new("orders.placed").key("order-4711").json(&serde_json::json!({ "total": 99 }))?;
//! Outbox::new().enqueue(&mut transaction, event).await?;
//! transaction.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - `Outbox` writes; [`NewEvent`] is what is written, [`Event`] what is read back.
//! - [`outbox`] has what delivers: [`outbox::Worker`] leases lanes, claims and settles; [`outbox::Inspect`] is the operator's.
//! - [`stores`] has the databases, and `stores::Migration`, which makes the tables.
//! - [`adopted`] claims the rows of an outbox table that a host has already.
//! - [`inbox`] is the consumer's half: each event handled once, and arrivals out of order told.
//! - [`Sink`] is the contract of where events go.
//! - [`tasks`] are run in process instead of published: written in the application's own transaction as well, claimed, settled and told the same way.
//!
//! # Find and claim
//!
//! Under it sits one primitive, for any table: rows are found, marked and returned in one step that nobody else can come between. See [`claim`].
//!
//! ```no_run
//! # #[cfg(feature = "postgres")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use sendoff::claim::{ClaimSpec, Claimable, Table, col, now, now_plus};
//! use sendoff::stores::postgres::PostgresDatabase;
//!
//! #[derive(sqlx::FromRow)]
//! struct Job { id: i64, payload: String }
//!
//! let database = PostgresDatabase::connect("postgres://localhost/shop").await?;
//! let jobs = database.table::<Job>(Table::new("jobs", ["id"])?).await?;
//!
//! let free = col("lease_until").is_null().or(col("lease_until").lt(now()));
//! let spec = ClaimSpec::on("jobs")
//!     .eligible(free)
//!     .set("lease_until", now_plus(Duration::from_secs(30)))
//!     .set("owner", "worker-7")
//!     .add("attempts", 1)
//!     .order_by("id")
//!     .limit(100)
//!     .build()?;
//! for job in jobs.claim(&spec).await? {
//!     println!("{}: {}", job.id, job.payload); // nobody else has it for 30 s
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `postgres`, `sqlite`, `mysql` | a store each; the memory store is always there |
//! | `tls` (default) | TLS to database servers: rustls, ring |
//! | `tokio-postgres`, `diesel-async`, `sea-orm` | enqueue, and an inbox, in a transaction of that library |
//! | `otel` | events carry the trace context of the span they were written in |
//! | `testkit` | the suites, for authors of a store or a sink |

#[cfg(any(feature = "tokio-postgres", feature = "diesel-async", feature = "sea-orm"))]
mod adapters;
pub mod adopted;
pub mod claim;
mod error;
mod event;
pub mod inbox;
pub mod outbox;
mod sink;
pub mod stores;
pub mod tasks;
#[cfg(feature = "testkit")]
pub mod testkit;
#[cfg(all(feature = "otel", feature = "_sql"))]
mod trace_context;

#[cfg(feature = "_sql")]
pub use stores::Outbox;

pub use error::{StoreError, StoreErrorKind};
pub use sink::{Capabilities, Delivery, Sink, SinkError};

pub use event::{
    Attempts, CONTENT_TYPE_BYTES_MAX, DEFAULT_TARGET, Event, EventId, HEADERS_BYTES_MAX, Headers,
    KEY_BYTES_MAX, Limits, NewEvent, PAYLOAD_BYTES_MAX, Standing, TARGET_BYTES_MAX, TOPIC_BYTES_MAX,
};
