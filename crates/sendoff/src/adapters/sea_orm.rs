//! Enqueue, and an inbox, in a SeaORM transaction.

use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, DbErr, RuntimeErr, Statement, Value};

use crate::error::{StoreError, StoreErrorKind};
use crate::event::NewEvent;
use crate::stores::sql::{self, Bind, Dialect, HostConnection, Script, Templates, enqueue_statements};

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
        let convert = |error| convert(backend, "enqueue", "event", error);
        for statement in enqueue_statements(templates, events)? {
            self.execute_raw(ready(backend, &statement)).await.map_err(convert)?;
        }
        Ok(())
    }

    async fn read(&mut self, op: &'static str, script: &Script) -> Result<Vec<String>, StoreError> {
        let backend = self.get_database_backend();
        let convert = |error| convert(backend, op, script.subject, error);
        for statement in &script.before {
            self.execute_raw(ready(backend, statement)).await.map_err(convert)?;
        }
        let rows = self.query_all_raw(ready(backend, &script.last)).await.map_err(convert)?;
        rows.iter().map(|row| row.try_get_by_index(0).map_err(convert)).collect()
    }
}

fn ready(backend: DbBackend, statement: &sql::Statement) -> Statement {
    let values: Vec<Value> = statement.binds.iter().cloned().map(value).collect();
    Statement::from_sql_and_values(backend, &statement.sql, values)
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

fn convert(backend: DbBackend, op: &'static str, subject: &str, error: DbErr) -> StoreError {
    let (DbErr::Exec(RuntimeErr::SqlxError(driver))
    | DbErr::Query(RuntimeErr::SqlxError(driver))
    | DbErr::Conn(RuntimeErr::SqlxError(driver))) = &error
    else {
        let detail = error.to_string();
        return StoreError::new(StoreErrorKind::Unavailable, op, subject, detail).caused_by(error);
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
    StoreError::new(kind, op, subject, detail).caused_by(error)
}
