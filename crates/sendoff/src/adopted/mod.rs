//! Adopted tables: the host keeps its own outbox table, and its rows are claimed.
//!
//! Many hosts have an outbox table already, and may not change it. A [`Mapping`] says what its columns mean; [`Adopted`] claims its rows, one lease for
//! each, on the claim primitive and nothing else, and is a [`Source`] that a relay runs like any other:
//!
//! ```no_run
//! # #[cfg(feature = "postgres")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use sendoff::adopted::{Adopted, presets};
//! use sendoff::stores::postgres::PostgresDatabase;
//!
//! let database = PostgresDatabase::connect("postgres://localhost/shop").await?;
//! let table = Adopted::open(&database, presets::framework("outbox", "default")?).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - **A claim** writes status, owner, token and lease end, and counts the attempt: an event that kills its worker runs out of attempts too. A lease
//!   that has ended makes its row eligible again.
//! - **A settle** verifies row, token and owner, and answers [`Answer`]: applied, stale, terminal or missing.
//! - **Beside the table** (`Beside`): where the host's table has no columns for claims, or may not be written, they are kept in a table of sendoff's own, and the host's is only read,
//!   or written when a row is delivered.
//! - **Order.** None is promised unless the mapping says [`ordered_by_key`](Mapping::ordered_by_key): rows are taken in the order of the host's column, and
//!   by several workers at once.
//! - **Operators** see it through [`Targets`], target by target; what belongs to sendoff's own outbox is refused with a reason. What would be delivered can be looked at
//!   without claiming anything (`Adopted::shadow`).
//! - **A mapping that does not fit is refused** when it is opened, with the statement that would mend it.
//!
//! [`Source`]: crate::outbox::Source

mod backing;
mod check;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
mod framework;
mod inspect;
mod keeper;
mod leases;
mod mapping;
pub mod presets;
mod reading;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
mod shadow;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
mod side;
mod source;
mod state;
mod table;
mod targets;
mod template;
mod worker;

pub use check::Misfit;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use framework::{FRAMEWORK_LEASE, Framework};
pub use inspect::{Claim, Listing, RowState};
pub use leases::Answer;
pub use mapping::{Mapping, Stamp, Words};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use shadow::{Refusal, Shadow};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub use side::{AtEnd, Beside};
pub use source::{Adopted, Batch};
pub use table::{Database, Fit, RowTable};
pub use targets::Targets;
