//! The conformance suites for stores: what [`Claimable`] and [`Store`](crate::outbox::Store) promise, as tests that any
//! store can run.
//!
//! A store's author writes a [`ClaimHarness`] (make a table, fill it, read it back) and runs
//! [`claim_suite`] over it, once as it is and once through [`Floor`]:
//!
//! ```no_run
//! # use sendoff::testkit::{ClaimHarness, Floor, claim_suite};
//! # async fn run<H: ClaimHarness>(mine: H) {
//! let harness = std::sync::Arc::new(mine);
//! for case in claim_suite::<H>() {
//!     println!("{}", case.name);
//!     (case.run)(harness.clone()).await; // panics if the store breaks its promise
//! }
//! # }
//! ```
//!
//! Cases are plain async functions; each makes a table of its own, so they may run side by side
//! on one server. They need tokio's multi-threaded runtime.
//!
//! Who keeps an outbox writes a [`StoreHarness`] as well and runs [`store_suite`] over it, each case with a harness, and an outbox,
//! of its own. Who keeps tasks writes a [`TaskHarness`] and runs [`task_suite`]. Who brings a sink writes a [`SinkHarness`] and runs [`sink_suite`].

// A suite speaks by panicking, and its panics are its documentation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod claim_suite;
mod claims;
mod fault_proxy;
mod outboxes;
mod shape;
mod sink_harness;
mod sink_suite;
mod sinks;
mod store_harness;
mod store_suite;
mod task_harness;
mod task_suite;
mod tasks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use claim_suite::claim_suite;
pub use claims::races::{Claimer, drain, verify_claims};
pub use fault_proxy::FaultProxy;
pub use shape::{Shape, ShapeColumn, ValueKind};
pub use sink_harness::{Received, SinkHarness};
pub use sink_suite::sink_suite;
pub use sinks::claimed;
pub use store_harness::{HostTransaction, StoreHarness};
pub use store_suite::store_suite;
pub use task_harness::{Damage, TaskHarness, TaskTransaction};
pub use task_suite::task_suite;
pub use tasks::legal_history;

use crate::claim::{ClaimSpec, Claimable, Record, Value};
use crate::error::StoreError;

/// What the suite needs of a store beyond claiming.
pub trait ClaimHarness: Send + Sync + 'static {
    /// The store's table; the suite reads its rows as [`Record`]s.
    type Table: Claimable<Row = Record> + Clone + 'static;

    /// Makes an empty table of this shape and opens it. Text compares byte by byte.
    fn create(&self, shape: &Shape) -> impl Future<Output = Self::Table> + Send;

    /// Adds rows by plain inserts: a value for each column of the shape.
    fn insert(&self, shape: &Shape, rows: &[Vec<Value>]) -> impl Future<Output = ()> + Send;

    /// Every row, as somebody else sees it: over a connection that claims do not use.
    fn rows(&self, shape: &Shape) -> impl Future<Output = Vec<Record>> + Send;

    /// The database's ascending order puts NULL first.
    fn nulls_first(&self) -> bool;

    /// Over so many rows a race goes. Fewer where the tests have to be quick: it shows less then.
    fn race_rows(&self) -> i64 {
        20_000
    }
}

/// One promise, as a test that panics if it is broken.
pub struct Case<H> {
    /// What is promised.
    pub name: &'static str,
    /// Tests it.
    pub run: fn(Arc<H>) -> Running,
}

/// A [`Case`] under way.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<H> std::fmt::Debug for Case<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A harness or table with its fast path taken away: what is left is
/// [`claim_portable`](crate::claim::claim_portable) over the store's `find` and `claim_one`.
#[derive(Debug, Clone)]
pub struct Floor<T>(pub T);

impl<T: Claimable> Claimable for Floor<T> {
    type Id = T::Id;
    type Row = T::Row;

    fn find(&self, spec: &ClaimSpec) -> impl Future<Output = Result<Vec<T::Id>, StoreError>> + Send {
        self.0.find(spec)
    }

    fn claim_one(
        &self,
        spec: &ClaimSpec,
        id: &T::Id,
    ) -> impl Future<Output = Result<Option<T::Row>, StoreError>> + Send {
        self.0.claim_one(spec, id)
    }
}

impl<H: ClaimHarness> ClaimHarness for Floor<H> {
    type Table = Floor<H::Table>;

    async fn create(&self, shape: &Shape) -> Self::Table {
        Floor(self.0.create(shape).await)
    }

    fn insert(&self, shape: &Shape, rows: &[Vec<Value>]) -> impl Future<Output = ()> + Send {
        self.0.insert(shape, rows)
    }

    fn rows(&self, shape: &Shape) -> impl Future<Output = Vec<Record>> + Send {
        self.0.rows(shape)
    }

    fn nulls_first(&self) -> bool {
        self.0.nulls_first()
    }

    fn race_rows(&self) -> i64 {
        self.0.race_rows()
    }
}
