//! Enqueue, and an inbox, on a diesel-async connection.

use diesel::backend::Backend;
use diesel::deserialize::{FromSql, QueryableByName};
use diesel::mysql::Mysql;
use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::result::{DatabaseErrorKind, Error};
use diesel::row::NamedRow;
use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Datetime, Double, Nullable, Text, Timestamp, Timestamptz, Uuid,
};
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl as _,
    TransactionManager as _,
};

use crate::error::{StoreError, StoreErrorKind};
use crate::event::NewEvent;
use crate::stores::sql::{
    Bind, Dialect, EventColumns, HostConnection, Script, Statement, Templates, enqueue_statements,
};

/// ```no_run
/// # async fn example(connection: &mut diesel_async::AsyncPgConnection) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use diesel_async::AsyncConnection as _;
/// use sendoff::{NewEvent, Outbox};
///
/// let outbox = Outbox::new();
/// connection
///     .transaction(async |connection| {
///         outbox.enqueue(connection, NewEvent::new("orders.placed").key("order-4711")).await?;
///         Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// Outside `transaction` it is `Rejected`: an event written there commits at once, whatever becomes of the host's work.
impl HostConnection for &mut AsyncPgConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        refuse_without_transaction(self, "enqueue", "event")?;
        let columns = EventColumns::of(events)?;
        diesel::sql_query(EventColumns::statement(templates)?)
            .bind::<Array<Text>, _>(columns.targets)
            .bind::<Array<Text>, _>(columns.topics)
            .bind::<Array<Nullable<Text>>, _>(columns.keys)
            .bind::<Array<Binary>, _>(columns.payloads)
            .bind::<Array<Nullable<Text>>, _>(columns.content_types)
            .bind::<Array<Nullable<Text>>, _>(columns.headers)
            .bind::<Array<Nullable<Uuid>>, _>(columns.event_ids)
            .bind::<Array<Nullable<Timestamptz>>, _>(columns.deliver_at)
            .execute(self)
            .await
            .map(drop)
            .map_err(|error| convert("enqueue", "event", error))
    }

    async fn read(&mut self, op: &'static str, script: &Script) -> Result<Vec<String>, StoreError> {
        refuse_without_transaction(*self, op, script.subject)?;
        let convert = |error| convert(op, script.subject, error);
        for statement in &script.before {
            pg_query(statement).execute(&mut **self).await.map_err(convert)?;
        }
        let rows: Vec<OneText> = pg_query(&script.last).load(&mut **self).await.map_err(convert)?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}

/// As for PostgreSQL: inside `transaction`.
impl HostConnection for &mut AsyncMysqlConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
        refuse_without_transaction(self, "enqueue", "event")?;
        let convert = |error| convert("enqueue", "event", error);
        for statement in enqueue_statements(templates, events)? {
            mysql_query(&statement).execute(&mut *self).await.map_err(convert)?;
        }
        Ok(())
    }

    async fn read(&mut self, op: &'static str, script: &Script) -> Result<Vec<String>, StoreError> {
        refuse_without_transaction(*self, op, script.subject)?;
        let convert = |error| convert(op, script.subject, error);
        for statement in &script.before {
            mysql_query(statement).execute(&mut **self).await.map_err(convert)?;
        }
        let rows: Vec<OneText> = mysql_query(&script.last).load(&mut **self).await.map_err(convert)?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}

/// A row of one text, whose column is called `answer`.
struct OneText(String);

impl<DB: Backend> QueryableByName<DB> for OneText
where
    String: FromSql<Text, DB>,
{
    fn build<'a>(row: &impl NamedRow<'a, DB>) -> diesel::deserialize::Result<Self> {
        NamedRow::get::<Text, String>(row, "answer").map(Self)
    }
}

fn pg_query(statement: &Statement) -> BoxedSqlQuery<'static, Pg, SqlQuery> {
    let query = diesel::sql_query(statement.sql.clone()).into_boxed::<Pg>();
    statement.binds.iter().cloned().fold(query, |query, bind| match bind {
        Bind::Bool(value) => query.bind::<Bool, _>(value),
        Bind::Int(value) => query.bind::<BigInt, _>(value),
        Bind::Float(value) => query.bind::<Double, _>(value),
        Bind::Text(value) => query.bind::<Text, _>(value),
        Bind::Bytes(value) => query.bind::<Binary, _>(value),
        Bind::Uuid(value) => query.bind::<Uuid, _>(value),
        Bind::Moment(value) => query.bind::<Timestamptz, _>(value),
        Bind::PlainMoment(value) => query.bind::<Timestamp, _>(value),
        Bind::Ints(values) => query.bind::<Array<BigInt>, _>(values),
        Bind::Texts(values) => query.bind::<Array<Text>, _>(values),
        Bind::Uuids(values) => query.bind::<Array<Uuid>, _>(values),
        Bind::Json(_) => unreachable!("only events have JSON, and theirs goes as text"),
    })
}

fn mysql_query(statement: &Statement) -> BoxedSqlQuery<'static, Mysql, SqlQuery> {
    let query = diesel::sql_query(statement.sql.clone()).into_boxed::<Mysql>();
    statement.binds.iter().cloned().fold(query, bind)
}

fn bind(
    query: BoxedSqlQuery<'static, Mysql, SqlQuery>,
    bind: Bind,
) -> BoxedSqlQuery<'static, Mysql, SqlQuery> {
    match bind {
        Bind::Bool(value) => query.bind::<Bool, _>(value),
        Bind::Int(value) => query.bind::<BigInt, _>(value),
        Bind::Float(value) => query.bind::<Double, _>(value),
        Bind::Text(value) => query.bind::<Text, _>(value),
        Bind::Bytes(value) => query.bind::<Binary, _>(value),
        Bind::Uuid(value) => query.bind::<Binary, _>(value.as_bytes().to_vec()),
        Bind::Json(value) => query.bind::<Text, _>(value.to_string()),
        Bind::Moment(value) => query.bind::<Datetime, _>(value),
        Bind::PlainMoment(value) => query.bind::<Datetime, _>(value),
        Bind::Ints(_) | Bind::Texts(_) | Bind::Uuids(_) => {
            unreachable!("only PostgreSQL's claims have arrays")
        }
    }
}

/// diesel counts the transactions it began.
fn refuse_without_transaction<C>(
    connection: &mut C,
    op: &'static str,
    subject: &str,
) -> Result<(), StoreError>
where
    C: AsyncConnection<TransactionManager = AnsiTransactionManager>,
    AnsiTransactionManager: diesel_async::TransactionManager<C>,
{
    let depth = AnsiTransactionManager::transaction_manager_status_mut(connection).transaction_depth();
    match depth.map_err(|error| convert(op, subject, error))? {
        Some(_) => Ok(()),
        None => Err(StoreError::rejected(
            op,
            subject,
            "no transaction is open on the connection; do it inside `transaction`",
        )),
    }
}

/// diesel keeps the database's code to itself: what it has no name for is `Unavailable`.
fn convert(op: &'static str, subject: &str, error: Error) -> StoreError {
    use DatabaseErrorKind as K;
    let kind = match &error {
        Error::DatabaseError(kind, _) => match kind {
            K::UniqueViolation
            | K::ForeignKeyViolation
            | K::NotNullViolation
            | K::CheckViolation
            | K::RestrictViolation
            | K::ExclusionViolation => StoreErrorKind::Rejected,
            K::SerializationFailure => StoreErrorKind::Contended,
            _ => StoreErrorKind::Unavailable,
        },
        Error::SerializationError(_) => StoreErrorKind::Rejected,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, op, subject, error.to_string()).caused_by(error)
}
