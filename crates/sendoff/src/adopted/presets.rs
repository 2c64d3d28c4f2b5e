//! Mappings of outbox tables that many hosts have.

use super::mapping::{Mapping, Stamp, Words};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
use super::side::{AtEnd, Beside};
use crate::error::StoreError;

/// The outbox of a Python framework, as its ADR-0013 has it: `status`, `locked_by`, `locked_until`, `next_retry_at`, a row for each target broker. `broker`
/// is the one whose rows are claimed. The topic is an event's type, its key the stream of its aggregate. What the framework keeps as `metadata_` only Python reads.
///
/// # Errors
/// `Rejected` for a bad name.
pub fn framework(table: &str, broker: &str) -> Result<Mapping, StoreError> {
    Ok(framework_rows(table)?.of_target(broker))
}

/// The same with the order of partition keys kept, by the time at which rows were written: their priority is left aside. See
/// [`Mapping::ordered_by_key`] for what that costs, and for what a time stamp can promise.
///
/// # Errors
/// `Rejected` for a bad name.
pub fn framework_in_order(table: &str, broker: &str) -> Result<Mapping, StoreError> {
    Ok(framework_rows_in_order(table)?.of_target(broker))
}

/// The same as [`framework_in_order`], for all target brokers.
///
/// # Errors
/// `Rejected` for a bad name.
pub fn framework_rows_in_order(table: &str) -> Result<Mapping, StoreError> {
    Ok(framework_content(table)?.order_by("created_at").ordered_by_key())
}

/// The same as [`framework`], for all target brokers: a row's is its target.
///
/// # Errors
/// `Rejected` for a bad name.
pub fn framework_rows(table: &str) -> Result<Mapping, StoreError> {
    Ok(framework_content(table)?.order_by_desc("priority").order_by("created_at"))
}

fn framework_content(table: &str) -> Result<Mapping, StoreError> {
    let words = Words {
        pending: "pending".into(),
        processing: Some("processing".into()),
        published: "published".into(),
        failed: Some("failed".into()),
        dead: "abandoned".into(),
    };
    Ok(Mapping::new(table, "id")?
        .topic("{type}")?
        .target("target_broker")
        .key("stream_name")
        .payload("data")
        .header("message-id", "message_id")
        .header("partition-key", "partition_key")
        .header("correlation-id", "correlation_id")
        .header("causation-id", "causation_id")
        .created("created_at")
        .attempts_max_column("max_retries")
        .claims("status", words, "locked_by", "locked_until", "retry_count")
        .claimed_at("last_processed_at")
        .due("next_retry_at")
        .error_json("last_error")
        .published_at("published_at"))
}

/// A governance outbox whose rows are claimed by `ClaimedBy`, `ClaimedUtc` and `ClaimExpiresUtc` while their status stays as it is, with a concurrency stamp by
/// which the host's own programs notice every write.
///
/// # Errors
/// `Rejected` for a bad name.
pub fn governance(table: &str) -> Result<Mapping, StoreError> {
    let words = Words {
        pending: "Pending".into(),
        processing: None,
        published: "Delivered".into(),
        failed: Some("RetryReady".into()),
        dead: "DeadLettered".into(),
    };
    Ok(Mapping::new(table, "OutboxEntryId")?
        .topic("{EventType}")?
        .key("CorrelationId")
        .payload("EnvelopeJson")
        .header("envelope-id", "EnvelopeId")
        .created("CreatedUtc")
        .order_by("CreatedUtc")
        .claims("Status", words, "ClaimedBy", "ClaimExpiresUtc", "AttemptCount")
        .claimed_at("ClaimedUtc")
        .due("NextAttemptUtc")
        .error("LastError")
        .published_at("DeliveredUtc")
        .stamp(Stamp::Fresh("ConcurrencyStamp".to_owned())))
}

/// ADR-003's `outbox_events`: `status`, `published_at` and `retry_count` are written when a row is delivered or given up, claims are kept beside it in
/// `<table>_sendoff`.
///
/// # Errors
/// `Rejected` for a bad name.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub fn adr003(table: &str) -> Result<(Mapping, Beside), StoreError> {
    let mapping = Mapping::new(table, "id")?
        .topic("{aggregate_type}.{event_type}")?
        .key("aggregate_id")
        .created("created_at")
        .order_by("created_at")
        .only("status", "PENDING");
    let beside = Beside::new(&format!("{table}_sendoff"))?.at_end(AtEnd::Write {
        status: "status".to_owned(),
        published: "PUBLISHED".into(),
        dead: "FAILED".into(),
        published_at: Some("published_at".to_owned()),
        failures: Some("retry_count".to_owned()),
    });
    Ok((mapping, beside))
}

/// The outbox of Debezium's event router, which is only ever inserted into: `id`, `aggregatetype`, `aggregateid`, `type`, `payload`. It is only read; claims, and what
/// was delivered, are known in `claims`. It has no order: rows are taken as the database gives them.
///
/// # Errors
/// `Rejected` for a bad name.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub fn debezium(table: &str, claims: &str) -> Result<(Mapping, Beside), StoreError> {
    let mapping = Mapping::new(table, "id")?
        .topic("outbox.event.{aggregatetype}")?
        .key("aggregateid")
        .header("eventType", "type");
    Ok((mapping, Beside::new(claims)?))
}
