//! An event as it is inserted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sendoff::outbox::Claimed;

use crate::envelope::{Carrier, EnvelopeConfig, written_at};

/// One row.
#[derive(Debug)]
pub(super) struct Row<'e> {
    pub(super) claimed: &'e Claimed,
    pub(super) key: Option<&'e str>,
    pub(super) payload: Cow<'e, [u8]>,
    pub(super) content_type: Option<Cow<'e, str>>,
    /// A JSON object.
    pub(super) headers: String,
    /// As RFC 3339 has it.
    pub(super) created_at: String,
    /// 0: it says nothing.
    pub(super) position: i64,
    pub(super) epoch: i64,
}

impl<'e> Row<'e> {
    /// # Errors
    /// Why the event cannot be inserted, ever.
    pub(super) fn new(envelope: &EnvelopeConfig, claimed: &'e Claimed) -> Result<Self, String> {
        let wrapped = envelope.wrap(&Carrier::INBOX, claimed)?;
        let headers: BTreeMap<&str, Cow<'_, str>> = wrapped.headers.into_iter().collect();
        Ok(Self {
            claimed,
            key: claimed.event.key.as_deref(),
            payload: wrapped.body,
            content_type: wrapped.content_type,
            headers: serde_json::to_string(&headers).map_err(|error| error.to_string())?,
            created_at: written_at(&claimed.event)?,
            position: claimed.event.standing.position(&claimed.event).unwrap_or(0),
            epoch: claimed.event.standing.epoch(claimed.token.epoch).unwrap_or(0),
        })
    }
}
