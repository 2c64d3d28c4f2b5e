//! Enqueue on a host's sqlx connection.

use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};

use super::super::{arguments, errors};
use crate::error::StoreError;
use crate::event::NewEvent;
use crate::stores::sql::{
    Dialect, EventColumns, HostConnection, Script, Templates, enqueue_statements, host_read,
};

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
        let columns = EventColumns::of(events)?;
        sqlx::query(AssertSqlSafe(EventColumns::statement(templates)?))
            .bind(columns.targets)
            .bind(columns.topics)
            .bind(columns.keys)
            .bind(columns.payloads)
            .bind(columns.content_types)
            .bind(columns.headers)
            .bind(columns.event_ids)
            .bind(columns.deliver_at)
            .execute(&mut *self)
            .await
            .map_err(convert)?;
        Ok(())
    }

    host_read!();
}

impl HostConnection for &mut Transaction<'_, Postgres> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        HostConnection::write(&mut **self, templates, events).await
    }

    async fn read(&mut self, op: &'static str, script: &Script) -> Result<Vec<String>, StoreError> {
        HostConnection::read(&mut &mut ***self, op, script).await
    }
}
