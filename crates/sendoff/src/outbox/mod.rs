//! The outbox: events written in the host's own transaction, leased by lanes, settled under a fence.
//!
//! Ownership is per **lane**, a hash bucket of keys, not per event. A [`Worker`] leases its share of the lanes, reads their events with plain
//! SELECTs, hands them out, and settles them with statements that check its leases. Event rows are inserted and deleted, never
//! updated; what has to wait is moved aside, to the parked events, so that the hot table stays short.
//!
//! - [`Store`] is the contract of a place where an outbox is kept; [`stores`](crate::stores) has four.
//! - [`Worker`] is one claiming loop's engine: it shares lanes with the others, claims and settles.
//! - [`Source`] and [`Engine`] are what a relay sees of it.
//! - [`Inspect`] is for operators: counts, lists, why an event has not been delivered, redrive, purge.

mod inspect;
mod lane_set;
pub(crate) mod leases;
mod scope;
mod source;
mod store;
mod worker;

pub use inspect::{
    COUNT_MAX, Cancelled, Counts, Discard, EventState, Explanation, Inspect, KeyInfo, LaneInfo, ListQuery,
    Listed, Purge, Redrive, Redriven, Selection, SinkDown, TargetCounts, WorkerInfo,
};
pub use lane_set::{LaneSet, LaneSetError};
pub use leases::LANES;
pub use scope::{Peer, Scope};
pub use source::{Engine, Source};
pub(crate) use store::rests_on_marker;
pub use store::{
    Cause, Census, Change, Due, ERROR_CHARS_MAX, Failure, Fetch, Fetched, Flush, Hold, HorizonProbe, Lane,
    LaneFetch, LaneFloor, Leased, Member, Page, ParkedFetch, Place, Reason, RowAddress, Settled, Settlement,
    Store, Token, WorkerId,
};
pub use worker::{Claimed, OnExhausted, Outcome, Receipt, Stats, Summary, Worker, WorkerConfig};
