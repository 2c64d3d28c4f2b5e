//! Enqueue, and an inbox, in a tokio-postgres transaction.

use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{StoreError, StoreErrorKind};
use crate::event::NewEvent;
use crate::stores::sql::{
    Bind, Dialect, EventColumns, HostConnection, Script, Statement, Templates, sqlstate,
};

/// ```no_run
/// # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::{NewEvent, Outbox};
///
/// let transaction = client.transaction().await?;
/// Outbox::new().enqueue(&transaction, NewEvent::new("orders.placed").key("order-4711")).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// A client alone is refused by the compiler: what is written on it commits at once, whatever becomes of the host's work.
///
/// ```compile_fail
/// # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::{NewEvent, Outbox};
/// Outbox::new().enqueue(&*client, NewEvent::new("orders.placed").key("order-4711")).await?;
/// # Ok(())
/// # }
/// ```
impl HostConnection for &Transaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    /// The types go with the values: nothing is prepared, so it is one trip, also through a pooler.
    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        let sql = EventColumns::statement(templates)?;
        let columns = EventColumns::of(events)?;
        let values: [(&(dyn ToSql + Sync), Type); 8] = [
            (&columns.targets, Type::TEXT_ARRAY),
            (&columns.topics, Type::TEXT_ARRAY),
            (&columns.keys, Type::TEXT_ARRAY),
            (&columns.payloads, Type::BYTEA_ARRAY),
            (&columns.content_types, Type::TEXT_ARRAY),
            (&columns.headers, Type::TEXT_ARRAY),
            (&columns.event_ids, Type::UUID_ARRAY),
            (&columns.deliver_at, Type::TIMESTAMPTZ_ARRAY),
        ];
        let convert = |error| convert("enqueue", "event", error);
        self.execute_typed(&sql, &values).await.map(drop).map_err(convert)
    }

    async fn read(&mut self, op: &'static str, script: &Script) -> Result<Vec<String>, StoreError> {
        let convert = |error| convert(op, script.subject, error);
        for statement in &script.before {
            self.execute_typed(&statement.sql, &values(statement)).await.map_err(convert)?;
        }
        let rows = self.query_typed(&script.last.sql, &values(&script.last)).await.map_err(convert)?;
        rows.iter().map(|row| row.try_get(0).map_err(convert)).collect()
    }
}

fn values(statement: &Statement) -> Vec<(&(dyn ToSql + Sync), Type)> {
    statement.binds.iter().map(value).collect()
}

fn value(bind: &Bind) -> (&(dyn ToSql + Sync), Type) {
    match bind {
        Bind::Bool(value) => (value, Type::BOOL),
        Bind::Int(value) => (value, Type::INT8),
        Bind::Float(value) => (value, Type::FLOAT8),
        Bind::Text(value) => (value, Type::TEXT),
        Bind::Bytes(value) => (value, Type::BYTEA),
        Bind::Uuid(value) => (value, Type::UUID),
        Bind::Moment(value) => (value, Type::TIMESTAMPTZ),
        Bind::PlainMoment(value) => (value, Type::TIMESTAMP),
        Bind::Ints(value) => (value, Type::INT8_ARRAY),
        Bind::Texts(value) => (value, Type::TEXT_ARRAY),
        Bind::Uuids(value) => (value, Type::UUID_ARRAY),
        Bind::Json(_) => unreachable!("only events have JSON, and theirs goes as text"),
    }
}

fn convert(op: &'static str, subject: &str, error: tokio_postgres::Error) -> StoreError {
    let (kind, detail) = match error.as_db_error() {
        Some(database) => {
            let code = database.code().code();
            (sqlstate(code), format!("{} ({code})", database.message()))
        }
        None => (StoreErrorKind::Unavailable, error.to_string()),
    };
    StoreError::new(kind, op, subject, detail).caused_by(error)
}
