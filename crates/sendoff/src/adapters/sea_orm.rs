//! Enqueue in a SeaORM transaction.

use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, DbErr, RuntimeErr, Statement, Value};

use crate::error::{StoreError, StoreErrorKind};
use crate::event::NewEvent;
use crate::stores::sql::{self, Bind, Dialect, HostConnection, Templates, enqueue_statements};

/// Whatever database the transaction is on:
///
/// ```no_run
/// # async fn example(database: sea_orm::DatabaseConnection) -> Result<(), Box<dyn std::error::Error>> {
/// use sea_orm::TransactionTrait as _;
/// use sendoff::{NewEvent, Outbox};
///
/// let transaction = database.begin().await?;
/// Outbox::new().enqueue(&transaction, NewEvent::new("orders.placed").key("order-4711")).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// A connection alone is refused by the compiler: what is written on it commits at once, whatever becomes of the host's work.
///
/// ```compile_fail
/// # async fn example(database: sea_orm::DatabaseConnection) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::{NewEvent, Outbox};
/// Outbox::new().enqueue(&database, NewEvent::new("orders.placed").key("order-4711")).await?;
/// # Ok(())
/// # }
/// ```
impl HostConnection for &DatabaseTransaction {
    fn dialect(&self) -> Dialect {
        match self.get_database_backend() {
            DbBackend::MySql => Dialect::Mysql,
            DbBackend::Sqlite => Dialect::Sqlite,
            // Of the rest only PostgreSQL is known, and a database that is new to us says by its error that it is not.
            _ => Dialect::Postgres,
        }
    }

    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        let backend = self.get_database_backend();
        for statement in enqueue_statements(templates, events)? {
            let values: Vec<Value> = statement.binds.into_iter().map(value).collect();
            let insert = Statement::from_sql_and_values(backend, statement.sql, values);
            self.execute_raw(insert).await.map_err(|error| convert(backend, error))?;
        }
        Ok(())
    }
}

fn value(bind: Bind) -> Value {
    match bind {
        Bind::Bool(value) => value.into(),
        Bind::Int(value) => value.into(),
        Bind::Float(value) => value.into(),
        Bind::Text(value) => value.into(),
        Bind::Bytes(value) => value.into(),
        Bind::Uuid(value) => value.into(),
        Bind::Json(value) => value.into(),
        Bind::Moment(value) => value.into(),
        Bind::PlainMoment(value) => value.into(),
        Bind::Ints(_) | Bind::Texts(_) | Bind::Uuids(_) => {
            unreachable!("only PostgreSQL's claims have arrays")
        }
    }
}

fn convert(backend: DbBackend, error: DbErr) -> StoreError {
    let (DbErr::Exec(RuntimeErr::SqlxError(driver))
    | DbErr::Query(RuntimeErr::SqlxError(driver))
    | DbErr::Conn(RuntimeErr::SqlxError(driver))) = &error
    else {
        let detail = error.to_string();
        return StoreError::new(StoreErrorKind::Unavailable, "enqueue", "event", detail).caused_by(error);
    };
    let (kind, detail) = match driver.as_ref() {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            let kind = match backend {
                DbBackend::Sqlite => sql::sqlite(code.parse().unwrap_or_default(), database.message()),
                _ => sql::sqlstate(&code),
            };
            (kind, format!("{} ({code})", database.message()))
        }
        sqlx::Error::Encode(_) => (StoreErrorKind::Rejected, driver.to_string()),
        other => (StoreErrorKind::Unavailable, other.to_string()),
    };
    StoreError::new(kind, "enqueue", "event", detail).caused_by(error)
}
