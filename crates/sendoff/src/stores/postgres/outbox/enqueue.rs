//! Enqueue on a host's sqlx connection.

use sqlx::types::Uuid;
use sqlx::types::time::OffsetDateTime;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};

use super::super::{arguments, errors};
use crate::error::StoreError;
use crate::event::NewEvent;
use crate::stores::sql::{Dialect, HostConnection, Templates, enqueue_statements, headers_json};

impl HostConnection for &mut PgConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        let convert = |error| errors::convert("enqueue", "event", error);
        if let [_] = events {
            for statement in enqueue_statements(templates, events)? {
                let arguments = arguments(&statement).map_err(convert)?;
                let insert = sqlx::query_with(AssertSqlSafe(statement.sql), arguments);
                insert.execute(&mut *self).await.map_err(convert)?;
            }
            return Ok(());
        }
        let sql = templates.fill(include_str!("enqueue_many.sql"), &[])?.sql;
        let column = |read: fn(&NewEvent) -> &str| events.iter().map(read).collect::<Vec<&str>>();
        let optional = |read: fn(&NewEvent) -> Option<&str>| events.iter().map(read).collect::<Vec<_>>();
        let payloads: Vec<&[u8]> = events.iter().map(|event| event.payload.as_slice()).collect();
        let headers: Vec<Option<String>> = events
            .iter()
            .map(|event| (!event.headers.is_empty()).then(|| headers_json(event).to_string()))
            .collect();
        let ids: Vec<Option<Uuid>> = events.iter().map(|event| event.event_id.map(|id| id.0)).collect();
        let deliver_at: Vec<Option<OffsetDateTime>> = events
            .iter()
            .map(|event| {
                let nanos = i128::from(event.deliver_at?.as_micros()) * 1_000;
                OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
            })
            .collect();
        sqlx::query(AssertSqlSafe(sql))
            .bind(column(|event| &event.target))
            .bind(column(|event| &event.topic))
            .bind(optional(|event| event.key.as_deref()))
            .bind(payloads)
            .bind(optional(|event| event.content_type.as_deref()))
            .bind(headers)
            .bind(ids)
            .bind(deliver_at)
            .execute(&mut *self)
            .await
            .map_err(convert)?;
        Ok(())
    }
}

impl HostConnection for &mut Transaction<'_, Postgres> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        HostConnection::write(&mut **self, templates, events).await
    }
}
