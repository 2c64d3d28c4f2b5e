//! Atomic find-and-claim on any table: the primitive under everything else.
//!
//! A *claim* finds rows that are eligible, marks them so that they no longer are, and returns
//! them, so that of any number of callers on any number of machines each row goes to one. What
//! "eligible" and "marked" mean is the caller's: a status, an owner with a lease, a cursor range.
//! Or it [removes](ClaimSpecBuilder::remove) them: of what is deleted nothing is left to be claimed again.
//! Nothing here knows of outboxes.
//!
//! - [`ClaimSpec`] says what to claim; [`Predicate`], [`Value`], [`Order`] are its parts.
//! - [`Claimable`] is the contract. Two methods make a store correct, the third makes it fast.
//! - [`Table`] describes a table to a [store](crate::stores).

mod ident;
mod predicate;
mod record;
mod spec;
mod table;
mod value;

use std::future::Future;

pub use ident::{IDENT_BYTES_MAX, Ident, IdentError, TableName};
pub use predicate::{Column, Op, Predicate, col};
pub use record::{FromRecord, Key, Record};
pub use spec::{Assignment, Change, ClaimSpec, ClaimSpecBuilder, Direction, Nulls, Order};
pub use table::{EpochUnit, Table};
#[cfg(feature = "_sql")]
pub(crate) use value::micros;
pub use value::{Timestamp, Value, now, now_minus, now_plus};

use crate::error::StoreError;

/// Rows that can be claimed.
///
/// # Contract
/// Every implementation holds to this, on its fast path and on the floor; the
/// `testkit` feature has the suite that tests it.
///
/// 1. **One live claim.** A row is handed to at most one caller for as long as it stays
///    ineligible, provided that the claim itself makes it ineligible. (A lease does: `lease_until <
///    now` is false for a row whose lease has just been set. A spec that leaves its rows eligible
///    asks for them again, and gets them.) A row that a claim [removes](ClaimSpec::removes) goes to one caller, and
///    to nobody ever after.
/// 2. **State and order.** Rows come back as they are *after* the claim, in `order` as it was
///    when they were taken, never more than `limit`. Rows that tie come in any order. Rows that were removed come back
///    as they were when they were taken; one that cannot be read as a [`Row`](Self::Row) is an error, and stays.
/// 3. **Committed.** When the rows are returned the claim is durable and visible to all. If the
///    commit failed, no row is returned. A claim is never part of a caller's transaction: a
///    claimable owns its pool and no method takes a transaction, so the compiler keeps the boundary.
/// 4. **A lost race is no error.** It yields fewer rows, or none. An empty answer is not proof
///    that nothing is eligible. Contention is retried inside for a bounded time, then said plainly:
///    [`Contended`](crate::StoreErrorKind::Contended).
/// 5. **Names and values.** Names are checked and quoted, values always bound.
/// 6. **Time is the database's.** [`now`] is evaluated by the store when the claim runs.
///
/// Not promised: that a claim does not wait. The fast paths of PostgreSQL and MariaDB step over rows
/// that others hold; the floor may wait for such a row before its guard turns it away.
///
/// **Dropping** the future of a claim may leave rows claimed that nobody has: they come back
/// when their lease ends. Run claims in a task of their own where that matters. Rows that are removed have no lease: dropped, or
/// with its reply lost on the way, such a claim may have deleted rows that nobody was handed.
///
/// # A store from two methods
/// `find` and `claim_one` are enough: [`claim`](Self::claim) is then [`claim_portable`]. Only `claim_one` has to look at
/// whether a spec [removes](ClaimSpec::removes) its rows; a store that cannot delete refuses it with `Rejected`.
pub trait Claimable: Send + Sync {
    /// What identifies a row.
    type Id: Send + Sync;
    /// What a caller gets of a claimed row.
    type Row: Send;

    /// The ids of eligible rows, in order, at most `limit`. Changes nothing and promises nothing:
    /// by the time they are looked at, others may have them.
    fn find(&self, spec: &ClaimSpec) -> impl Future<Output = Result<Vec<Self::Id>, StoreError>> + Send;

    /// Claims one row if it is *still* eligible, atomically: `UPDATE … WHERE id = ? AND <eligible>`, or `DELETE` where the
    /// spec [removes](ClaimSpec::removes) its rows. `None`: somebody else was faster.
    fn claim_one(
        &self,
        spec: &ClaimSpec,
        id: &Self::Id,
    ) -> impl Future<Output = Result<Option<Self::Row>, StoreError>> + Send;

    /// Claims up to `limit` rows. The provided one is correct everywhere and takes 1 + N trips; a
    /// store that can do better overrides it.
    fn claim(&self, spec: &ClaimSpec) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send {
        claim_portable(self, spec)
    }
}

/// The floor looks again so often when others took all it had found.
const ROUNDS_MAX: usize = 8;

/// So many rows lost in a row mean that others are working down the same list.
const LOSSES_MAX: usize = 2;

/// The floor: [`find`](Claimable::find), then one guarded [`claim_one`](Claimable::claim_one) for
/// each row found. Free-standing, so that every store can be tested on it whatever its fast path is.
///
/// Undisturbed it claims the first `limit` rows, in 1 + N trips. Claimers that found the same rows start
/// at different ones of them, and stop where they meet each other: to lose every row to
/// whoever is ahead costs as many trips as to win it. Who won some returns with those, in order; who won
/// none looks again, a bounded number of times.
///
/// # Errors
/// Only if nothing was won: rows that were won before a failure are handed over, since they are
/// claimed, and the failure shows itself again on the next call.
pub async fn claim_portable<C: Claimable + ?Sized>(
    store: &C,
    spec: &ClaimSpec,
) -> Result<Vec<C::Row>, StoreError> {
    if spec.limit() == 0 {
        return Ok(Vec::new());
    }
    for _ in 0..ROUNDS_MAX {
        let found = store.find(spec).await?;
        if found.is_empty() {
            break;
        }
        let won = claim_found(store, spec, &found).await?;
        if !won.is_empty() {
            return Ok(won);
        }
    }
    Ok(Vec::new())
}

async fn claim_found<C: Claimable + ?Sized>(
    store: &C,
    spec: &ClaimSpec,
    found: &[C::Id],
) -> Result<Vec<C::Row>, StoreError> {
    let start = fastrand::usize(..found.len());
    let mut won: Vec<(usize, C::Row)> = Vec::with_capacity(found.len());
    let mut losses = 0;
    for position in (start..found.len()).chain(0..start) {
        match store.claim_one(spec, &found[position]).await {
            Ok(Some(row)) => {
                won.push((position, row));
                losses = 0;
            }
            Ok(None) => losses += 1,
            Err(error) if won.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, rows = won.len(), "claim broke off; handing over what was won");
                break;
            }
        }
        if losses == LOSSES_MAX {
            break;
        }
    }
    won.sort_unstable_by_key(|(position, _)| *position);
    Ok(won.into_iter().map(|(_, row)| row).collect())
}
