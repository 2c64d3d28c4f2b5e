//! The inbox of another database: a table that its consumers read, and claim from.

mod errors;
mod insert;
mod row;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
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
use crate::secret::{self, Secret};
use crate::tls::Files;
use crate::unusable::Unusable;

/// How long a server may take to say that it is there.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Where an [`Inbox`] sink inserts events, and how.
#[derive(Clone)]
pub struct InboxConfig {
    /// The database: `postgres://user:password@host/shop`, `mysql://…`, `sqlite:/var/lib/shop.db`. With
    /// `?sslmode=verify-full`, or for MySQL `?ssl-mode=VERIFY_IDENTITY`, it has to be one that the system trusts.
    pub url: String,
    /// Who asks, instead of the user in the URL.
    pub username: Option<String>,
    /// The password, instead of the one in the URL; read anew for each connection.
    pub password: Option<Secret>,
    /// Whom to trust besides those whom the system trusts: certificates of authorities as PEM. With it the connection is encrypted, and the server has to prove that it is the
    /// one that the URL names, whatever else the URL says.
    pub ca_file: Option<PathBuf>,
    /// A certificate that the server knows this client by, as PEM, with those that it was signed by.
    pub client_cert_file: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub client_key_file: Option<PathBuf>,
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
            username: None,
            password: None,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            table: "inbox".to_owned(),
            create: false,
            connections: 4,
            timeout: Duration::from_secs(5),
            envelope: EnvelopeConfig::default(),
        }
    }

    fn tls_files(&self) -> Files<'_> {
        Files::new(&self.ca_file, &self.client_cert_file, &self.client_key_file)
    }

    /// With any of its files a connection is encrypted, and the server has to prove who it is.
    fn is_encrypted(&self) -> bool {
        self.tls_files().are_given()
    }

    /// # Errors
    /// Files that cannot be read, and what a database that is a file has no use for.
    fn check_access(&self, kind: Kind) -> Result<(), String> {
        if kind == Kind::Sqlite && (self.is_encrypted() || self.username.is_some() || self.password.is_some())
        {
            return Err("a file has neither user and password nor certificates".to_owned());
        }
        if self.is_encrypted() { self.tls_files().client().map(drop) } else { Ok(()) }
    }
}

impl fmt::Debug for InboxConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a password in it.
        f.debug_struct("InboxConfig")
            .field("username", &self.username)
            .field("password", &self.password)
            .field("ca_file", &self.ca_file)
            .field("client_cert_file", &self.client_cert_file)
            .field("client_key_file", &self.client_key_file)
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
        let server = kind.server(&config.url).map_err(wrong)?;
        config.check_access(kind).map_err(wrong)?;
        Ok(Self { config, kind, table, server, pool: Mutex::default() })
    }

    /// Connects, unless it is connected, and makes the table if it is to.
    async fn connect(&self) -> Result<Pool, Fault> {
        let mut held = self.pool.lock().await;
        if let Some(pool) = &*held {
            return Ok(pool.clone());
        }
        let password = secret::read(self.config.password.as_ref(), "password").map_err(Fault::Wrong)?;
        // Said better here than by the driver, which opens them itself.
        self.config.check_access(self.kind).map_err(Fault::Wrong)?;
        let opened = Pool::open(self.kind, &self.config, password.as_deref());
        let pool = opened.map_err(|error| errors::classify(&error))?;
        if self.config.create {
            pool.create(&self.table).await.map_err(|error| errors::classify(&error))?;
        }
        *held = Some(pool.clone());
        Ok(pool)
    }

    /// Lets go of connections that cannot be trusted any more.
    async fn disconnect(&self) {
        self.pool.lock().await.take();
    }

    async fn ping(&self) -> Result<(), Fault> {
        let asked = async {
            let checked = self.connect().await?.check(&self.table).await;
            checked.map_err(|error| errors::classify(&error))
        };
        match tokio::time::timeout(PING_TIMEOUT.min(self.config.timeout), asked).await {
            Ok(checked) => checked,
            Err(_) => Err(Fault::Down("it does not answer".to_owned())),
        }
    }

    /// Inserts rows, all or none.
    async fn insert(&self, rows: &[&Row<'_>]) -> Result<(), Fault> {
        let inserted = async {
            let inserted = self.connect().await?.insert(&self.table, rows).await;
            inserted.map_err(|error| errors::classify(&error))
        };
        let fault = match tokio::time::timeout(self.config.timeout, inserted).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(fault)) => fault,
            Err(_) => {
                self.disconnect().await;
                match self.ping().await {
                    Ok(()) => Fault::Retry("it did not answer in time".to_owned()),
                    Err(fault) => fault,
                }
            }
        };
        if matches!(fault, Fault::Down(_) | Fault::Wrong(_)) {
            self.disconnect().await;
        }
        Err(fault)
    }

    fn delivery(&self, fault: Fault) -> Delivery {
        let named = |text: String| format!("{}, table {}: {text}", self.server, self.table);
        match fault {
            Fault::Refused(text) => Delivery::reject(named(text)),
            Fault::Retry(text) => Delivery::retry(named(text)),
            Fault::Down(text) | Fault::Wrong(text) => Delivery::down(named(text)),
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
                let unusable = match fault {
                    Fault::Retry(text) | Fault::Down(text) => Unusable::Away(text),
                    Fault::Refused(text) | Fault::Wrong(text) => Unusable::Wrong(text),
                };
                Err(unusable.of(&format!("{}, table {}", self.server, self.table)).error("inbox"))
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
    use crate::json_line::tests::claimed;

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

    #[tokio::test]
    async fn a_password_is_shown_nowhere() {
        let sink =
            Inbox::new(InboxConfig::new("postgres://user:s3cret@127.0.0.1:1/shop?sslmode=prefer")).unwrap();
        let error = sink.check().await.unwrap_err();
        let delivery = sink.publish(&[claimed(1, None, b"x")]).await;
        let shown = format!("{sink:?} {error} {delivery:?}");
        assert!(!shown.contains("s3cret") && shown.contains("127.0.0.1:1/shop"), "{shown}");
        for url in ["postgres://localhost:1/shop?password=s3cret", "mysql://user:s3cret@localhost:1/shop"] {
            let config =
                InboxConfig { password: Some(Secret::Plain("s3cret".to_owned())), ..InboxConfig::new(url) };
            let sink = Inbox::new(config).unwrap();
            assert!(!format!("{sink:?}").contains("s3cret"), "{sink:?}");
            assert_eq!(sink.server, "localhost:1/shop");
        }
        let error =
            Inbox::new(InboxConfig::new("postgres://user:s3cret@h:port/shop")).unwrap_err().to_string();
        assert!(error.contains("its URL cannot be read") && !error.contains("s3cret"), "{error}");
    }

    #[tokio::test]
    async fn a_password_that_is_not_there_is_said() {
        let password = Some(Secret::File("/nowhere/password".into()));
        let sink =
            Inbox::new(InboxConfig { password, ..InboxConfig::new("mysql://127.0.0.1:1/shop") }).unwrap();
        let named = "127.0.0.1:1/shop, table inbox: `password`: the file /nowhere/password cannot be read";
        let error = sink.check().await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        let delivery = sink.publish(&[claimed(1, None, b"x")]).await.remove(0);
        assert!(matches!(&delivery, Delivery::Down { error } if error.contains(named)), "{delivery:?}");
    }

    #[test]
    fn what_a_file_has_no_use_for_is_refused() {
        let config = InboxConfig { username: Some("user".to_owned()), ..InboxConfig::new("sqlite:x.db") };
        assert!(Inbox::new(config).unwrap_err().to_string().contains("neither user and password"));
        let config =
            InboxConfig { ca_file: Some("/nowhere.pem".into()), ..InboxConfig::new("postgres://h/x") };
        assert!(Inbox::new(config).unwrap_err().to_string().contains("`ca_file` /nowhere.pem"));
    }
}
