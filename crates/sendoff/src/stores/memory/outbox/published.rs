//! History in memory: a table with a column for each part of an event, which a purge removes rows from, as in the SQL stores.

use std::time::Duration;

use super::super::{MemoryDatabase, MemoryTable};
use crate::claim::{
    ClaimSpec, Claimable as _, FromRecord, Record, Table, TableName, Timestamp, Value, col, now_minus,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::event::{Attempts, Event, EventId, Standing};

const COLUMNS: [&str; 11] = [
    "target",
    "lane",
    "id",
    "topic",
    "key",
    "payload",
    "content_type",
    "headers",
    "event_id",
    "created_at",
    "published_at",
];

/// An event that was published, and when.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) event: Event,
    pub(super) at: Timestamp,
}

/// The table.
#[derive(Debug, Clone)]
pub(super) struct History {
    name: TableName,
    table: MemoryTable<Published>,
}

impl History {
    pub(super) fn new(database: &MemoryDatabase) -> Result<Self, StoreError> {
        let table = Table::new("published", ["target", "id"])?;
        Ok(Self { name: table.name().clone(), table: database.create(table, &COLUMNS)? })
    }

    /// Adds an event, which nobody has added before: it was taken from where it waited.
    pub(super) fn add(&self, event: Event, at: Timestamp) {
        let headers = event.headers.into_iter().map(|(name, text)| (name, text.into())).collect();
        let values: [Value; 11] = [
            event.target.into(),
            i64::from(event.lane).into(),
            event.position.into(),
            event.topic.into(),
            event.key.into(),
            event.payload.into(),
            event.content_type.into(),
            Value::Json(serde_json::Value::Object(headers)),
            event.event_id.0.into(),
            event.created_at.into(),
            at.into(),
        ];
        let row = COLUMNS.into_iter().zip(values).collect();
        if let Err(error) = self.table.insert(&[row]) {
            unreachable!("a position is published once: {error}");
        }
    }

    /// All of it, by target and position.
    pub(super) fn all(&self) -> Vec<Published> {
        let rows = self.table.rows().into_iter().map(Published::from_record);
        rows.filter_map(Result::ok).collect()
    }

    /// Removes the oldest of what a target has published so long ago; how many they were.
    pub(super) async fn purge(
        &self,
        target: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<u64, StoreError> {
        let old = col("target").eq(target).and(col("published_at").lt(now_minus(older_than)));
        let spec = ClaimSpec::on_table(self.name.clone()).eligible(old).remove();
        let spec = spec.order_by("published_at").order_by("id").limit(batch).build()?;
        Ok(self.table.claim(&spec).await?.len() as u64)
    }
}

impl FromRecord for Published {
    fn from_record(record: Record) -> Result<Self, StoreError> {
        Self::read(&record).ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                "read",
                "published",
                "a column has another kind of value",
            )
        })
    }
}

impl Published {
    fn read(record: &Record) -> Option<Self> {
        let text = |column: &str| match record.get(column)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let int = |column: &str| match record.get(column)? {
            Value::Int(number) => Some(*number),
            _ => None,
        };
        let moment = |column: &str| match record.get(column)? {
            Value::Timestamp(at) => Some(*at),
            _ => None,
        };
        let Value::Bytes(payload) = record.get("payload")? else { return None };
        let Value::Uuid(event_id) = record.get("event_id")? else { return None };
        let Value::Json(headers) = record.get("headers")? else { return None };
        let headers = headers.as_object()?.iter();
        let event = Event {
            event_id: EventId(*event_id),
            position: int("id")?,
            standing: Standing::Lane,
            target: text("target")?,
            lane: u16::try_from(int("lane")?).ok()?,
            topic: text("topic")?,
            key: text("key"),
            payload: payload.clone(),
            content_type: text("content_type"),
            headers: headers
                .filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())))
                .collect(),
            created_at: moment("created_at")?,
            attempts: Attempts::default(),
        };
        Some(Self { event, at: moment("published_at")? })
    }
}
