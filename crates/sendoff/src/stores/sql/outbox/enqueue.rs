//! Writing events in the host's own transaction.

use std::future::Future;

use super::{Arg, Names, Templates};
use crate::error::StoreError;
use crate::event::{EventId, Limits, NewEvent};
use crate::stores::sql::{Bind, Dialect, Statement};

/// So many rows fit into one statement whatever the database: each binds eight values.
const ROWS_PER_STATEMENT: usize = 1_000;

/// Writes events in the host's own transaction: they are there if it commits, and never were if it does not.
///
/// It takes the connection that the transaction is open on, of any driver that has an adapter here:
///
/// ```no_run
/// # #[cfg(feature = "postgres")]
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::{NewEvent, Outbox};
///
/// let outbox = Outbox::new();
/// let mut transaction = pool.begin().await?;
/// // … the host's own statements …
/// outbox.enqueue(&mut transaction, NewEvent::new("orders.placed").key("order-4711").payload("…")).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// A pool is refused by the compiler, since an event written on a connection of its own commits whatever the host does:
///
/// ```compile_fail
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::{NewEvent, Outbox};
/// Outbox::new().enqueue(&pool, NewEvent::new("orders.placed")).await?;
/// # Ok(())
/// # }
/// ```
///
/// sqlx is always among them, by the features of the stores; `tokio-postgres`, `diesel-async` and `sea-orm` have features of their own.
/// With the feature `otel` events carry the W3C trace context of the current span.
///
/// Tools that have no transaction of a host's, such as one that publishes by hand, begin one.
#[derive(Debug, Clone, Default)]
pub struct Outbox {
    names: Option<Names>,
    limits: Limits,
}

impl Outbox {
    /// The outbox under its usual names: `sendoff.event` on PostgreSQL, `sendoff_event` elsewhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// The outbox under other names.
    pub fn named(names: Names) -> Self {
        Self { names: Some(names), limits: Limits::default() }
    }

    /// Takes events within these limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Writes one event.
    ///
    /// # Errors
    /// `Rejected` for an event beyond the limits, before anything is sent; otherwise as the database's, and then the host's
    /// transaction is to be rolled back.
    pub async fn enqueue<C: HostConnection>(
        &self,
        connection: C,
        event: NewEvent,
    ) -> Result<EventId, StoreError> {
        let ids = self.enqueue_all(connection, vec![event]).await?;
        let [id] = ids[..] else { unreachable!("one event has one id") };
        Ok(id)
    }

    /// Writes events, in their order, in one statement for every thousand of them. None of them if one is beyond the limits.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    pub async fn enqueue_all<C: HostConnection>(
        &self,
        connection: C,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<EventId>, StoreError> {
        let mut ids = Vec::with_capacity(events.len());
        #[cfg(feature = "otel")]
        let trace = crate::trace_context::TraceContext::current();
        for event in &mut events {
            event.check(&self.limits)?;
            #[cfg(feature = "otel")]
            trace.add_to(event);
            ids.push(*event.event_id.get_or_insert_with(EventId::generate));
        }
        if events.is_empty() {
            return Ok(ids);
        }
        let names = match &self.names {
            Some(names) => names.clone(),
            None => Names::default_for(connection.dialect())?,
        };
        let templates = Templates { dialect: connection.dialect(), names };
        connection.write(&templates, &events).await?;
        Ok(ids)
    }
}

/// A connection of the host's with its transaction open on it.
pub trait HostConnection: Send {
    /// Its SQL.
    #[doc(hidden)]
    fn dialect(&self) -> Dialect;

    /// Inserts events whose ids are set.
    #[doc(hidden)]
    fn write(
        self,
        templates: &Templates,
        events: &[NewEvent],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs statements in their order, and reads the rows of the last one, each of them one text.
    #[doc(hidden)]
    fn read(
        &mut self,
        op: &'static str,
        script: &Script,
    ) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
}

/// Statements that belong together: the last one answers.
#[derive(Debug)]
pub struct Script {
    /// Run first; what they answer is passed over.
    pub(crate) before: Vec<Statement>,
    /// Its rows are read.
    pub(crate) last: Statement,
    /// What the rows are of, for errors.
    pub(crate) subject: &'static str,
    /// The texts come again: they may be kept prepared.
    pub(crate) comes_again: bool,
}

/// INSERTs of these events, a thousand rows each.
pub(crate) fn statements(templates: &Templates, events: &[NewEvent]) -> Result<Vec<Statement>, StoreError> {
    let insert = |chunk: &[NewEvent]| {
        let rows = chunk.iter().map(|event| row(templates, event)).collect();
        templates.fill(include_str!("enqueue.sql"), &[("rows", Arg::Rows(rows))])
    };
    events.chunks(ROWS_PER_STATEMENT).map(insert).collect()
}

fn row(templates: &Templates, event: &NewEvent) -> Vec<Arg> {
    let headers = (!event.headers.is_empty()).then(|| headers_json(event));
    vec![
        Arg::from(event.target.as_str()),
        Arg::from(event.topic.as_str()),
        Arg::from(event.key.as_deref()),
        Arg::from(event.payload.clone()),
        Arg::from(event.content_type.as_deref()),
        headers.map_or(Arg::Null, |headers| match templates.dialect {
            Dialect::Postgres => Arg::Bound(Bind::Json(headers)),
            Dialect::Sqlite | Dialect::Mysql => Arg::Bound(Bind::Text(headers.to_string())),
        }),
        templates.event_id(event.event_id.unwrap_or_else(EventId::generate)),
        event.deliver_at.map_or(Arg::Null, Arg::Moment),
    ]
}

pub(super) fn headers_json(event: &NewEvent) -> serde_json::Value {
    event.headers.iter().map(|(name, value)| (name.clone(), serde_json::Value::from(value.clone()))).collect()
}

/// Makes a driver's connection, and its transaction, a [`HostConnection`] that runs the portable INSERTs. The module has `errors` and `arguments`.
#[cfg_attr(not(any(feature = "sqlite", feature = "mysql")), allow(unused_macros))]
macro_rules! host_connection {
    ($database:ty, $connection:ty, $dialect:expr) => {
        impl HostConnection for &mut $connection {
            fn dialect(&self) -> Dialect {
                $dialect
            }

            async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
                let convert = |error| errors::convert("enqueue", "event", error);
                for statement in enqueue_statements(templates, events)? {
                    let arguments = arguments(&statement).map_err(convert)?;
                    // One event at a time is what hosts do most: only that text is kept prepared.
                    let insert = sqlx::query_with(AssertSqlSafe(statement.sql), arguments)
                        .persistent(events.len() == 1);
                    insert.execute(&mut *self).await.map_err(convert)?;
                }
                Ok(())
            }

            host_read!();
        }

        impl HostConnection for &mut sqlx::Transaction<'_, $database> {
            fn dialect(&self) -> Dialect {
                $dialect
            }

            async fn write(self, templates: &Templates, events: &[NewEvent]) -> Result<(), StoreError> {
                HostConnection::write(&mut **self, templates, events).await
            }

            async fn read(&mut self, op: &'static str, script: &Script) -> Result<Vec<String>, StoreError> {
                HostConnection::read(&mut &mut ***self, op, script).await
            }
        }
    };
}

/// How a connection of sqlx runs a script. The module has `errors` and `arguments`.
macro_rules! host_read {
    () => {
        async fn read(
            &mut self,
            op: &'static str,
            script: &crate::stores::sql::Script,
        ) -> Result<Vec<String>, StoreError> {
            let convert = |error| errors::convert(op, script.subject, error);
            for statement in &script.before {
                let arguments = arguments(statement).map_err(convert)?;
                sqlx::query_with(AssertSqlSafe(statement.sql.clone()), arguments)
                    .persistent(script.comes_again)
                    .execute(&mut **self)
                    .await
                    .map_err(convert)?;
            }
            let arguments = arguments(&script.last).map_err(convert)?;
            sqlx::query_scalar_with(AssertSqlSafe(script.last.sql.clone()), arguments)
                .persistent(script.comes_again)
                .fetch_all(&mut **self)
                .await
                .map_err(convert)
        }
    };
}

#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use host_connection;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(crate) use host_read;
