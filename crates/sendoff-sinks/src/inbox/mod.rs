//! The inbox of another database: a table that its consumers read, and claim from.

mod errors;
mod insert;
mod row;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::claim::TableName;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};
use tokio::sync::Mutex;

use self::errors::Fault;
use self::insert::{Kind, Pool};
use self::row::Row;
use crate::envelope::EnvelopeConfig;

/// How long a server may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Where an [`Inbox`] sink inserts events, and how.
#[derive(Clone)]
pub struct InboxConfig {
    /// The database: `postgres://user:password@host/shop`, `mysql://…`, `sqlite:/var/lib/shop.db`.
    pub url: String,
    /// The table, with its schema if it has one.
    pub table: String,
    /// The table is made if it is not there.
    pub create: bool,
    /// At most so many connections.
    pub connections: u32,
    /// A server that has not answered by then is taken to be down, if it does not answer a ping either.
    pub timeout: Duration,
    /// How events are wrapped: what is known about an event is in the column `headers`.
    pub envelope: EnvelopeConfig,
}

impl InboxConfig {
    /// The table `inbox` of this database, which is there.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            table: "inbox".to_owned(),
            create: false,
            connections: 4,
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }
}

impl fmt::Debug for InboxConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password in it.
        f.debug_struct("InboxConfig")
            .field("table", &self.table)
            .field("create", &self.create)
            .field("connections", &self.connections)
            .field("timeout", &self.timeout)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}

/// Inserts events into a table of another database, all of a call with one statement. An event id that is there already is left as it is: for as long as a
/// row stays, its event comes once.
#[derive(Debug)]
pub struct Inbox {
    config: InboxConfig,
    kind: Kind,
    table: TableName,
    /// Host and database, for people.
    server: String,
    pool: Mutex<Option<Pool>>,
}

impl Inbox {
    /// A sink of this database, which is connected to with the first event.
    ///
    /// # Errors
    /// A URL or a table name that is none.
    pub fn new(config: InboxConfig) -> Result<Self, SinkError> {
        let wrong = |detail: String| SinkError::new("inbox", detail);
        let kind = Kind::of(&config.url).ok_or_else(|| {
            wrong("its URL cannot be read; give postgres://…, mysql://… or sqlite:PATH".to_owned())
        })?;
        let table = TableName::parse(&config.table).map_err(|error| wrong(error.to_string()))?;
        // Without user and password.
        let server = config.url.rsplit_once('@').map_or(config.url.as_str(), |(_, server)| server).to_owned();
        Ok(Self { config, kind, table, server, pool: Mutex::default() })
    }

    /// Connects, unless it is connected, and makes the table if it is to.
    async fn connect(&self) -> Result<Pool, sqlx::Error> {
        let mut held = self.pool.lock().await;
        if let Some(pool) = &*held {
            return Ok(pool.clone());
        }
        let pool = Pool::open(self.kind, &self.config)?;
        if self.config.create {
            pool.create(&self.table).await?;
        }
        *held = Some(pool.clone());
        Ok(pool)
    }

    /// Lets go of connections that cannot be trusted any more.
    async fn disconnect(&self) {
        self.pool.lock().await.take();
    }

    async fn ping(&self) -> Result<(), Fault> {
        let asked = async { self.connect().await?.check(&self.table).await };
        match tokio::time::timeout(PING_TIMEOUT.min(self.config.timeout), asked).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(errors::classify(&error)),
            Err(_) => Err(Fault::Down("it does not answer".to_owned())),
        }
    }

    /// Inserts rows, all or none.
    async fn insert(&self, rows: &[&Row<'_>]) -> Result<(), Fault> {
        let inserted = async { self.connect().await?.insert(&self.table, rows).await };
        let fault = match tokio::time::timeout(self.config.timeout, inserted).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => errors::classify(&error),
            Err(_) => {
                self.disconnect().await;
                match self.ping().await {
                    Ok(()) => Fault::Retry("it did not answer in time".to_owned()),
                    Err(fault) => fault,
                }
            }
        };
        if matches!(fault, Fault::Down(_)) {
            self.disconnect().await;
        }
        Err(fault)
    }

    fn delivery(&self, fault: Fault) -> Delivery {
        let named = |text: String| format!("{}, table {}: {text}", self.server, self.table);
        match fault {
            Fault::Refused(text) => Delivery::reject(named(text)),
            Fault::Retry(text) => Delivery::retry(named(text)),
            Fault::Down(text) => Delivery::down(named(text)),
        }
    }

    /// Inserts the rows in their order. One that the table does not take is found by halves; no later one of its key goes before it.
    async fn deliver(&self, rows: &[Row<'_>]) -> Vec<Delivery> {
        let mut deliveries = vec![Delivery::Untried; rows.len()];
        let mut stopped: HashSet<&str> = HashSet::new();
        let mut parts: Vec<Range<usize>> = std::iter::once(0..rows.len()).collect();
        while let Some(part) = parts.pop() {
            let is_free = |row: &Row<'_>| row.key.is_none_or(|key| !stopped.contains(key));
            let free: Vec<usize> = part.clone().filter(|index| is_free(&rows[*index])).collect();
            if free.is_empty() {
                continue;
            }
            let wanted: Vec<&Row<'_>> = free.iter().map(|index| &rows[*index]).collect();
            match self.insert(&wanted).await {
                Ok(()) => free.iter().for_each(|index| deliveries[*index] = Delivery::Delivered),
                Err(Fault::Refused(_)) if free.len() > 1 => {
                    let middle = part.start + part.len() / 2;
                    parts.extend([middle..part.end, part.start..middle]);
                }
                Err(fault) => {
                    let delivery = self.delivery(fault);
                    for index in free {
                        stopped.extend(rows[index].key);
                        deliveries[index] = delivery.clone();
                    }
                    if matches!(delivery, Delivery::Down { .. }) {
                        break;
                    }
                }
            }
        }
        deliveries
    }
}

#[async_trait]
impl Sink for Inbox {
    fn capabilities(&self) -> Capabilities {
        // One statement: all of it or nothing.
        Capabilities { keeps_order: true, dedupes_for: Some(Duration::MAX), ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let made: Vec<Result<Row<'_>, String>> =
            events.iter().map(|event| Row::new(&self.config.envelope, event)).collect();
        let mut stopped: HashSet<&str> = HashSet::new();
        let (mut rows, mut answers) = (Vec::new(), Vec::with_capacity(events.len()));
        for (event, row) in events.iter().zip(made) {
            let key = event.event.key.as_deref();
            match row {
                _ if key.is_some_and(|key| stopped.contains(key)) => answers.push(Some(Delivery::Untried)),
                Ok(row) => {
                    rows.push(row);
                    answers.push(None);
                }
                Err(reason) => {
                    stopped.extend(key);
                    answers.push(Some(Delivery::reject(reason)));
                }
            }
        }
        let mut delivered = self.deliver(&rows).await.into_iter();
        let next =
            |answer: Option<Delivery>| answer.or_else(|| delivered.next()).unwrap_or(Delivery::Untried);
        answers.into_iter().map(next).collect()
    }

    async fn check(&self) -> Result<(), SinkError> {
        match self.ping().await {
            Ok(()) => Ok(()),
            Err(fault) => {
                self.disconnect().await;
                let (Fault::Refused(text) | Fault::Retry(text) | Fault::Down(text)) = fault;
                Err(SinkError::new("inbox", format!("{}, table {}: {text}", self.server, self.table)))
            }
        }
    }

    async fn close(&self) -> Result<(), SinkError> {
        if let Some(pool) = self.pool.lock().await.take() {
            pool.close().await;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_work_is_refused_at_once() {
        let error = |url: &str, table: &str| {
            let config = InboxConfig { table: table.to_owned(), ..InboxConfig::new(url) };
            Inbox::new(config).unwrap_err().to_string()
        };
        assert!(error("oracle://scott:t1ger@h/x", "inbox").contains("give postgres://…"));
        assert!(!error("oracle://scott:t1ger@h/x", "inbox").contains("t1ger"));
        assert!(!error("sqlite:x.db", "").is_empty());
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let sink = Inbox::new(InboxConfig::new("postgres://user:s3cret@localhost:1/shop")).unwrap();
        assert!(!format!("{sink:?}").contains("s3cret"), "{sink:?}");
        assert_eq!(sink.server, "localhost:1/shop");
    }
}
