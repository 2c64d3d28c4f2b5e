//! What a consumer writes in its own transaction.

use std::collections::HashSet;

use super::{Arg, Names, Templates};
use crate::error::{StoreError, StoreErrorKind};
use crate::event::EventId;
use crate::inbox::{Arrival, Mark, Once, Order, check_consumer, check_key, check_source};
use crate::stores::sql::{Dialect, HostConnection, Script};

/// So many events fit into one statement whatever the database.
const EVENTS_PER_STATEMENT: usize = 1_000;

/// Remembers in the consumer's own transaction which events it has handled, and how far it is in each key.
///
/// ```no_run
/// # #[cfg(feature = "postgres")]
/// # async fn example(pool: sqlx::PgPool, event_id: sendoff::EventId) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::inbox::{Inbox, Once};
///
/// let mut transaction = pool.begin().await?;
/// if Inbox::new().once(&mut transaction, "billing", event_id).await? == Once::First {
///     // … the consumer's own statements, on the same transaction …
/// }
/// transaction.commit().await?;
/// // … and only now the broker is told that the event is handled.
/// # Ok(())
/// # }
/// ```
///
/// A pool is refused by the compiler, since what is written on a connection of its own commits whatever becomes of the consumer's work:
///
/// ```compile_fail
/// # async fn example(pool: sqlx::PgPool, event_id: sendoff::EventId) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::inbox::Inbox;
/// Inbox::new().once(&pool, "billing", event_id).await?;
/// # Ok(())
/// # }
/// ```
///
/// It takes the connections that [`Outbox`](crate::Outbox) takes, so that a consumer may also enqueue what follows in the same transaction.
///
/// # Two at once
///
/// Where two transactions have the same event, the second one waits in `once` until the first has ended: it is `Seen` after a commit, and `First` after a rollback.
///
/// - **PostgreSQL**: as said, at READ COMMITTED. At REPEATABLE READ or SERIALIZABLE a commit that the second one's snapshot does not see is a serialization failure, `Contended`: roll back
///   and try again, and it is `Seen`.
/// - **MariaDB and MySQL**: as said, at any isolation; never an error for a duplicate. Who waits longer than `innodb_lock_wait_timeout` (50 s) is `Contended`. Of three or more that wait
///   for one that rolls back InnoDB may end one as a deadlock, `Contended`: its transaction is rolled back, try it again.
/// - **SQLite**: there is one writer, and the second transaction waits for its busy timeout, whatever its event is; after that it is `Contended` (BUSY). A transaction that has read before it
///   first writes is `Contended` at once if anybody wrote meanwhile: begin it with `BEGIN IMMEDIATE`, or call `once` first.
///
/// Transactions with several events take them in one [`once_many`](Self::once_many), which asks for them in the same order everywhere: one call each, in different orders, may deadlock.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    names: Option<Names>,
}

impl Inbox {
    /// The inbox under its usual names: `sendoff.inbox_seen` on PostgreSQL, `sendoff_inbox_seen` elsewhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// The inbox under other names.
    pub fn named(names: Names) -> Self {
        Self { names: Some(names) }
    }

    /// Whether this transaction is the first of `consumer` to handle the event. If it is, and commits, no other will be, for as long as that is remembered.
    ///
    /// # Errors
    /// `Rejected` for a consumer's name that cannot be, before anything is sent; `Schema` if the inbox's tables are not there; otherwise as the database's, and then the consumer's
    /// transaction is to be rolled back and the event not acknowledged.
    pub async fn once<C: HostConnection>(
        &self,
        connection: C,
        consumer: &str,
        event_id: impl Into<EventId> + Send,
    ) -> Result<Once, StoreError> {
        let answers = self.once_many(connection, consumer, &[event_id.into()]).await?;
        let [answer] = answers[..] else { unreachable!("one event has one answer") };
        Ok(answer)
    }

    /// The same for many events, in one statement for every thousand of them; answers in their order. An event that is there twice is `Seen` the second time.
    ///
    /// # Errors
    /// As [`once`](Self::once).
    pub async fn once_many<C: HostConnection>(
        &self,
        mut connection: C,
        consumer: &str,
        event_ids: &[EventId],
    ) -> Result<Vec<Once>, StoreError> {
        check_consumer("once", consumer)?;
        let templates = self.templates(connection.dialect())?;
        let mut sorted = event_ids.to_vec();
        // Whoever has the same events asks for them in the same order, and waits instead of deadlocking.
        sorted.sort_unstable();
        sorted.dedup();
        let mut first = HashSet::with_capacity(sorted.len());
        for chunk in sorted.chunks(EVENTS_PER_STATEMENT) {
            let script = once_script(&templates, consumer, chunk, event_ids.len() == 1)?;
            for id in connection.read("once", &script).await.map_err(|error| advise("once", error))? {
                first.insert(id.parse::<EventId>().map_err(|error| {
                    let detail = "the database has answered with what is no event id";
                    StoreError::new(StoreErrorKind::Corrupt, "once", SEEN, detail).caused_by(error)
                })?);
            }
        }
        let answer = |id| if first.remove(id) { Once::First } else { Once::Seen };
        Ok(event_ids.iter().map(answer).collect())
    }

    /// How an arrival stands to those of its key that `consumer` has followed before, in transactions that committed; from then on others stand to it. Arrivals of a key wait for each other.
    ///
    /// This is [`OrderChecker`](crate::inbox::OrderChecker) with a memory that outlives the process, and that a rollback takes back. It remembers one event of a key, not several: a copy of an
    /// earlier one than the last is [`Behind`](Order::Behind), and [`once`](Self::once) says that it was seen.
    ///
    /// # Errors
    /// As [`once`](Self::once); `Rejected` also for a key or a source that is too long.
    pub async fn follow<C: HostConnection>(
        &self,
        mut connection: C,
        consumer: &str,
        arrival: &Arrival,
    ) -> Result<Order, StoreError> {
        check_consumer("follow", consumer)?;
        let (Some(key), Some(position)) = (&arrival.key, arrival.position) else {
            return Ok(Order::Unordered);
        };
        check_key("follow", key)?;
        let source = arrival.source.as_deref().unwrap_or_default();
        check_source("follow", source)?;
        let templates = self.templates(connection.dialect())?;
        let script = follow_script(&templates, [consumer, source, key], arrival, position)?;
        let answers = connection.read("follow", &script).await.map_err(|error| advise("follow", error))?;
        let last = match answers.first() {
            Some(text) => Mark::read(text)
                .map_err(|detail| StoreError::new(StoreErrorKind::Corrupt, "follow", ORDER, detail))?,
            None => None,
        };
        Ok(Order::judge(last.as_ref(), arrival, position))
    }

    fn templates(&self, dialect: Dialect) -> Result<Templates, StoreError> {
        let names = match &self.names {
            Some(names) => names.clone(),
            None => Names::default_for(dialect)?,
        };
        Ok(Templates { dialect, names })
    }
}

const SEEN: &str = "inbox_seen";
const ORDER: &str = "inbox_order";

/// Tables that are not there are what is forgotten most.
fn advise(op: &'static str, error: StoreError) -> StoreError {
    if error.kind() != StoreErrorKind::Schema {
        return error;
    }
    let subject = error.subject().to_owned();
    let detail = "the inbox's tables are not there, or may not be written; run its migration (`SqlInbox::migration`, or \
                  its script in your own migrations), and grant SELECT, INSERT and UPDATE on them";
    StoreError::schema(op, subject, detail).caused_by(error)
}

pub(in crate::stores::sql) fn once_script(
    templates: &Templates,
    consumer: &str,
    ids: &[EventId],
    comes_again: bool,
) -> Result<Script, StoreError> {
    let row = |id: &EventId| vec![Arg::from(consumer), templates.event_id(*id), Arg::Now(0)];
    let rows = ids.iter().map(row).collect();
    let returning = |file| templates.fill(file, &[("rows", Arg::Rows(rows))]);
    let (before, last) = match templates.dialect {
        Dialect::Postgres => (Vec::new(), returning(include_str!("../../postgres/inbox_once.sql"))?),
        Dialect::Sqlite => (Vec::new(), returning(include_str!("../../sqlite/inbox_once.sql"))?),
        Dialect::Mysql => {
            let receipt = Arg::from(fastrand::i64(..));
            let row = |id: &EventId| {
                vec![Arg::from(consumer), templates.event_id(*id), Arg::Now(0), receipt.clone()]
            };
            let rows = Arg::Rows(ids.iter().map(row).collect());
            let insert =
                templates.fill(include_str!("../../mysql/inbox_once_1_insert.sql"), &[("rows", rows)])?;
            let ids = ids.iter().map(|id| templates.uuid(id.0)).collect();
            let args = [("consumer", Arg::from(consumer)), ("ids", Arg::List(ids)), ("receipt", receipt)];
            (vec![insert], templates.fill(include_str!("../../mysql/inbox_once_2_read.sql"), &args)?)
        }
    };
    Ok(Script { before, last, subject: SEEN, comes_again })
}

pub(in crate::stores::sql) fn follow_script(
    templates: &Templates,
    [consumer, source, key]: [&str; 3],
    arrival: &Arrival,
    position: i64,
) -> Result<Script, StoreError> {
    let args = [
        ("consumer", Arg::from(consumer)),
        ("source", Arg::from(source)),
        ("key", Arg::from(key)),
        ("event_id", templates.event_id(arrival.event_id)),
        ("position", Arg::from(position)),
        ("epoch", Arg::from(arrival.epoch)),
    ];
    let (before, last) = match templates.dialect {
        Dialect::Postgres => {
            (Vec::new(), templates.fill(include_str!("../../postgres/inbox_follow.sql"), &args)?)
        }
        Dialect::Sqlite => {
            (Vec::new(), templates.fill(include_str!("../../sqlite/inbox_follow.sql"), &args)?)
        }
        Dialect::Mysql => {
            let moved = templates.fill(include_str!("../../mysql/inbox_follow_1_move.sql"), &args)?;
            (vec![moved], templates.fill(include_str!("../../mysql/inbox_follow_2_read.sql"), &args)?)
        }
    };
    Ok(Script { before, last, subject: ORDER, comes_again: true })
}
