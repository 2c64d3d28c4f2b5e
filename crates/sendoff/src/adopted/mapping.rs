//! What the columns of a host's own table mean.

use std::collections::HashSet;

use super::template::Template;
use crate::claim::{Direction, EpochUnit, Ident, IdentError, Key, Record, Table, TableName, Value};
use crate::error::StoreError;

/// The words, or numbers, that a status column has for what becomes of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Words {
    /// Not delivered yet.
    pub pending: Value,
    /// Claimed. None: the host has no word for it; the row stays pending, and its lease alone says that it is claimed.
    pub processing: Option<Value>,
    /// Delivered.
    pub published: Value,
    /// Waits for its retry. None: it is pending again, and is not due yet.
    pub failed: Option<Value>,
    /// Given up.
    pub dead: Value,
}

impl Words {
    /// Those of rows that are still to be delivered.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Value> {
        [Some(&self.pending), self.processing.as_ref(), self.failed.as_ref()].into_iter().flatten()
    }
}

/// A column that changes with every write of a row, by which the host's own programs notice it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stamp {
    /// A new UUID each time.
    Fresh(String),
    /// One more each time.
    Counter(String),
}

/// The columns of a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimColumns {
    pub(crate) status: String,
    pub(crate) words: Words,
    pub(crate) owner: String,
    pub(crate) token: Option<String>,
    pub(crate) lease_end: String,
    pub(crate) attempts: String,
    pub(crate) claimed_at: Option<String>,
    pub(crate) due: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) error_is_json: bool,
    pub(crate) published_at: Option<String>,
    pub(crate) stamp: Option<Stamp>,
}

impl ClaimColumns {
    fn meanings(&self) -> Vec<(&'static str, &str)> {
        let stamp = self.stamp.as_ref().map(|stamp| match stamp {
            Stamp::Fresh(column) | Stamp::Counter(column) => column,
        });
        let all = [
            ("status", Some(&self.status)),
            ("owner", Some(&self.owner)),
            ("lease_end", Some(&self.lease_end)),
            ("attempts", Some(&self.attempts)),
            ("token", self.token.as_ref()),
            ("claimed_at", self.claimed_at.as_ref()),
            ("due", self.due.as_ref()),
            (if self.error_is_json { "error_json" } else { "error" }, self.error.as_ref()),
            ("published_at", self.published_at.as_ref()),
            ("stamp", stamp),
        ];
        all.into_iter().filter_map(|(role, column)| Some((role, column?.as_str()))).collect()
    }
}

/// What the columns of a host's own table mean.
///
/// ```
/// use sendoff::adopted::{Mapping, Words};
/// let words = Words {
///     pending: "new".into(), processing: Some("busy".into()), published: "sent".into(),
///     failed: None, dead: "dead".into(),
/// };
/// let mapping = Mapping::new("shop.outbox", "id")?
///     .topic("orders.{event_type}")?
///     .key("order_id")
///     .payload("body")
///     .order_by("created_at")
///     .claims("status", words, "locked_by", "locked_until", "tries")
///     .token("lock_token");
/// # Ok::<(), sendoff::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    pub(crate) table: TableName,
    pub(crate) id: String,
    pub(crate) topic: Template,
    pub(crate) target: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) payload: String,
    pub(crate) headers: Option<String>,
    pub(crate) header_columns: Vec<(String, String)>,
    pub(crate) content_type: Option<String>,
    pub(crate) content_type_column: Option<String>,
    pub(crate) created: Option<String>,
    pub(crate) order: Vec<(String, Direction)>,
    pub(crate) position: Option<String>,
    pub(crate) filter: Vec<(String, Value)>,
    pub(crate) attempts_max: u32,
    pub(crate) attempts_max_column: Option<String>,
    pub(crate) epochs: Vec<(String, EpochUnit)>,
    pub(crate) is_ordered_by_key: bool,
    pub(crate) claim: Option<ClaimColumns>,
}

/// After so many attempts an event is given up, unless the mapping says otherwise.
const ATTEMPTS_MAX: u32 = 20;

impl Mapping {
    /// A table `name` or `schema.name` whose rows are told apart by the column `id`.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn new(table: &str, id: &str) -> Result<Self, StoreError> {
        let name = TableName::parse(table).map_err(|error| {
            StoreError::rejected("map", table.escape_debug().to_string(), error.to_string())
        })?;
        Ok(Self {
            table: name,
            id: id.to_owned(),
            topic: Template::parse("{topic}")?,
            target: None,
            key: None,
            payload: "payload".to_owned(),
            headers: None,
            header_columns: Vec::new(),
            content_type: Some("application/json".to_owned()),
            content_type_column: None,
            created: None,
            order: Vec::new(),
            position: None,
            filter: Vec::new(),
            attempts_max: ATTEMPTS_MAX,
            attempts_max_column: None,
            epochs: Vec::new(),
            is_ordered_by_key: false,
            claim: None,
        })
    }

    /// The column that rows are told apart by.
    #[must_use]
    pub fn id(mut self, column: &str) -> Self {
        column.clone_into(&mut self.id);
        self
    }

    /// Where events are published: text with columns in it, `orders.{event_type}`. `{topic}` if not said.
    ///
    /// # Errors
    /// `Rejected` for a brace that is not closed.
    pub fn topic(mut self, template: &str) -> Result<Self, StoreError> {
        self.topic = Template::parse(template)?;
        Ok(self)
    }

    /// The column that says which target an event is for. A relay of several targets hands each the rows that name it; see [`of_target`](Self::of_target).
    #[must_use]
    pub fn target(mut self, column: &str) -> Self {
        self.target = Some(column.to_owned());
        self
    }

    /// The rows of one target: those that name it, or all where no column says.
    #[must_use]
    pub fn of_target(mut self, target: &str) -> Self {
        match self.target.take() {
            Some(column) => self.only(&column, target),
            None => self,
        }
    }

    /// The column of the ordering key. An empty or NULL one is none.
    #[must_use]
    pub fn key(mut self, column: &str) -> Self {
        self.key = Some(column.to_owned());
        self
    }

    /// The column of the content; `payload` if not said. NULL is empty. JSON is passed on as the database writes it.
    #[must_use]
    pub fn payload(mut self, column: &str) -> Self {
        column.clone_into(&mut self.payload);
        self
    }

    /// A column with a JSON object of headers. What is no text in it is written as JSON.
    #[must_use]
    pub fn headers(mut self, column: &str) -> Self {
        self.headers = Some(column.to_owned());
        self
    }

    /// A header made of a column; none where that is NULL.
    #[must_use]
    pub fn header(mut self, name: &str, column: &str) -> Self {
        self.header_columns.push((name.to_owned(), column.to_owned()));
        self
    }

    /// What the content is, for every row; `application/json` if not said.
    #[must_use]
    pub fn content_type(mut self, content_type: Option<&str>) -> Self {
        self.content_type = content_type.map(str::to_owned);
        self
    }

    /// The column that says what the content is.
    #[must_use]
    pub fn content_type_column(mut self, column: &str) -> Self {
        self.content_type_column = Some(column.to_owned());
        self
    }

    /// When the event was written. None: when it was claimed is all that is known.
    #[must_use]
    pub fn created(mut self, column: &str) -> Self {
        self.created = Some(column.to_owned());
        self
    }

    /// Forgets the order that was named, for another.
    #[must_use]
    pub fn without_order(mut self) -> Self {
        self.order.clear();
        self
    }

    /// Rows are taken by this column, smallest first; further calls break ties.
    #[must_use]
    pub fn order_by(mut self, column: &str) -> Self {
        self.order.push((column.to_owned(), Direction::Ascending));
        self
    }

    /// Rows are taken by this column, largest first.
    #[must_use]
    pub fn order_by_desc(mut self, column: &str) -> Self {
        self.order.push((column.to_owned(), Direction::Descending));
        self
    }

    /// A column of whole numbers that rises along every key, in the order in which the host's transactions were serialised: a sequence with CACHE 1 that
    /// is read inside of them. Sinks send it as the position, and a consumer may drop what is older than what it has: say it only if it is true. A time stamp
    /// is none: `now()` is when a transaction began, and one that began earlier may be serialised later.
    #[must_use]
    pub fn position(mut self, column: &str) -> Self {
        self.position = Some(column.to_owned());
        self
    }

    /// Only rows with this value in this column.
    #[must_use]
    pub fn only(mut self, column: &str, value: impl Into<Value>) -> Self {
        self.filter.push((column.to_owned(), value.into()));
        self
    }

    /// Claims are written into the table: its status with the words for it, who has a row, until when, and how often it was handed out.
    #[must_use]
    pub fn claims(
        mut self,
        status: &str,
        words: Words,
        owner: &str,
        lease_end: &str,
        attempts: &str,
    ) -> Self {
        self.claim = Some(ClaimColumns {
            status: status.to_owned(),
            words,
            owner: owner.to_owned(),
            token: None,
            lease_end: lease_end.to_owned(),
            attempts: attempts.to_owned(),
            claimed_at: None,
            due: None,
            error: None,
            error_is_json: false,
            published_at: None,
            stamp: None,
        });
        self
    }

    fn claim(mut self, change: impl FnOnce(&mut ClaimColumns)) -> Self {
        if let Some(claim) = &mut self.claim {
            change(claim);
        }
        self
    }

    /// The column of the token, new with every claim: a UUID, or its text. Without one it is part of the owner's name.
    #[must_use]
    pub fn token(self, column: &str) -> Self {
        self.claim(|claim| claim.token = Some(column.to_owned()))
    }

    /// The column for when a row was claimed last.
    #[must_use]
    pub fn claimed_at(self, column: &str) -> Self {
        self.claim(|claim| claim.claimed_at = Some(column.to_owned()))
    }

    /// The column for when a row may be tried again. Without one a retry waits as a lease that nobody has.
    #[must_use]
    pub fn due(self, column: &str) -> Self {
        self.claim(|claim| claim.due = Some(column.to_owned()))
    }

    /// The column for what went wrong, as text.
    #[must_use]
    pub fn error(self, column: &str) -> Self {
        self.claim(|claim| (claim.error, claim.error_is_json) = (Some(column.to_owned()), false))
    }

    /// The column for what went wrong, as a JSON object: `cause` and `message`.
    #[must_use]
    pub fn error_json(self, column: &str) -> Self {
        self.claim(|claim| (claim.error, claim.error_is_json) = (Some(column.to_owned()), true))
    }

    /// The column for when it was published.
    #[must_use]
    pub fn published_at(self, column: &str) -> Self {
        self.claim(|claim| claim.published_at = Some(column.to_owned()))
    }

    /// The column that changes with every write.
    #[must_use]
    pub fn stamp(self, stamp: Stamp) -> Self {
        self.claim(|claim| claim.stamp = Some(stamp))
    }

    /// After so many attempts an event is given up; 20 if not said. A worker that was lost with it in hand is one, and so is a failure.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts.max(1);
        self
    }

    /// The column with a row's own number of attempts.
    #[must_use]
    pub fn attempts_max_column(mut self, column: &str) -> Self {
        self.attempts_max_column = Some(column.to_owned());
        self
    }

    /// What the whole numbers of a column mean that holds moments; microseconds since 1970 if not said.
    #[must_use]
    pub fn epoch(mut self, column: &str, unit: EpochUnit) -> Self {
        self.epochs.push((column.to_owned(), unit));
        self
    }

    /// Hands out the rows of a key one after the other, in the order of the host's columns: a row only while no earlier one of its key is still to be
    /// delivered, and those behind it with it. **Off unless said, and dearer**: every claim looks for earlier rows of each candidate's key, for which the
    /// table needs an index on the key.
    ///
    /// It can promise no more than the host's order does. A row that commits after a later one was delivered comes late; a time stamp of a transaction's beginning
    /// may contradict the order in which transactions were serialised. A sequence that is read while a lock on the key is held does not.
    #[must_use]
    pub fn ordered_by_key(mut self) -> Self {
        self.is_ordered_by_key = true;
        self
    }

    /// The table.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Every column that it names, with what it is for: the name of the method that says so.
    pub fn meanings(&self) -> Vec<(&'static str, &str)> {
        fn one<'c>(role: &'static str, column: &'c Option<String>) -> Option<(&'static str, &'c str)> {
            column.as_deref().map(|column| (role, column))
        }
        let mut all = vec![("id", self.id.as_str())];
        all.extend(self.topic.columns().map(|column| ("topic", column)));
        all.extend(one("target", &self.target));
        all.extend(one("key", &self.key));
        all.push(("payload", &self.payload));
        all.extend(one("headers", &self.headers));
        all.extend(self.header_columns.iter().map(|(_, column)| ("header", column.as_str())));
        all.extend(one("content_type_column", &self.content_type_column));
        all.extend(one("created", &self.created));
        all.extend(self.order.iter().map(|(column, _)| ("order_by", column.as_str())));
        all.extend(one("position", &self.position));
        all.extend(self.filter.iter().map(|(column, _)| ("only", column.as_str())));
        all.extend(one("attempts_max_column", &self.attempts_max_column));
        all.extend(self.claim.iter().flat_map(ClaimColumns::meanings));
        all
    }

    /// The columns that events are read from, and taken by.
    pub(crate) fn content(&self) -> impl Iterator<Item = &str> {
        let single = [
            &self.target,
            &self.key,
            &self.headers,
            &self.content_type_column,
            &self.created,
            &self.position,
        ];
        let single = single.into_iter().flatten().map(String::as_str);
        let order = self.order.iter().map(|(column, _)| column.as_str());
        let headers = self.header_columns.iter().map(|(_, column)| column.as_str());
        self.topic.columns().chain(single).chain([self.payload.as_str()]).chain(order).chain(headers)
    }

    /// The ordering keys of these rows, each once.
    pub(crate) fn keys_of(&self, records: &[Record]) -> Vec<Value> {
        let Some(column) = &self.key else { return Vec::new() };
        let mut seen = HashSet::new();
        let keys = records.iter().filter_map(|record| record.get(column)).filter(|key| **key != Value::Null);
        keys.filter(|key| seen.insert(Key(vec![(*key).clone()]).to_bytes())).cloned().collect()
    }

    /// The columns that are read of each row.
    pub(crate) fn returned(&self) -> Result<Vec<Ident>, StoreError> {
        let mut returned: Vec<&str> = vec![&self.id];
        returned.extend(self.topic.columns());
        let single = [
            &self.target,
            &self.key,
            &self.headers,
            &self.content_type_column,
            &self.created,
            &self.position,
        ];
        returned.extend(single.into_iter().flatten().map(String::as_str));
        returned.extend(self.attempts_max_column.as_deref());
        returned.extend(self.header_columns.iter().map(|(_, column)| column.as_str()));
        returned.push(&self.payload);
        if let Some(claim) = &self.claim {
            returned.push(&claim.attempts);
        }
        let mut seen = HashSet::new();
        returned.retain(|column| seen.insert(*column));
        let refuse =
            |error: IdentError| StoreError::rejected("map", self.table.to_string(), error.to_string());
        returned.into_iter().map(|name| Ident::new(name).map_err(refuse)).collect()
    }

    /// The table as a store opens it, to explain a claim on it.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn description(&self) -> Result<Table, StoreError> {
        self.described(&[])
    }

    /// The same, with what an operator wants to see of a claim.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub(crate) fn operators_description(&self) -> Result<Table, StoreError> {
        let Some(claim) = &self.claim else { return self.description() };
        let wanted = [Some(&claim.owner), Some(&claim.lease_end), claim.due.as_ref(), claim.error.as_ref()];
        self.described(&wanted.into_iter().flatten().map(String::as_str).collect::<Vec<_>>())
    }

    fn described(&self, more: &[&str]) -> Result<Table, StoreError> {
        let mut table = Table::named(self.table.clone(), [self.id.as_str()])?;
        let returned = self.returned()?;
        let mut returned: Vec<&str> = returned.iter().map(Ident::as_str).collect();
        let more: Vec<&str> = more.iter().copied().filter(|column| !returned.contains(column)).collect();
        returned.extend(more);
        table = table.returning(returned)?;
        for (column, unit) in &self.epochs {
            table = table.epoch(column, *unit)?;
        }
        Ok(table.json_as_text())
    }
}
