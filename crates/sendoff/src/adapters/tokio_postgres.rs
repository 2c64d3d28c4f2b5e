//! Enqueue in a tokio-postgres transaction.

use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{StoreError, StoreErrorKind};
use crate::event::NewEvent;
use crate::stores::sql::{Dialect, EventColumns, HostConnection, Templates, sqlstate};

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
        self.execute_typed(&sql, &values).await.map(drop).map_err(convert)
    }
}

fn convert(error: tokio_postgres::Error) -> StoreError {
    let (kind, detail) = match error.as_db_error() {
        Some(database) => {
            let code = database.code().code();
            (sqlstate(code), format!("{} ({code})", database.message()))
        }
        None => (StoreErrorKind::Unavailable, error.to_string()),
    };
    StoreError::new(kind, "enqueue", "event", detail).caused_by(error)
}
