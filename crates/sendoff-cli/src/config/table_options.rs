//! `[table]`: a host's own outbox table, and what its columns mean. The words are those of `sendoff::adopted`; `table_mapping` is what they come to.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use sendoff::adopted::{Beside, Mapping, presets};
use sendoff::claim::Value;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A table whose keys do not contradict each other.
#[derive(Debug, Clone)]
pub(crate) struct TableConfig(TableOptions);

impl<'de> Deserialize<'de> for TableConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let options = TableOptions::deserialize(deserializer)?;
        options.mapped().map_err(|error| D::Error::custom(format!("table: {error}")))?;
        Ok(Self(options))
    }
}

impl JsonSchema for TableConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        TableOptions::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        TableOptions::json_schema(generator)
    }
}

impl TableConfig {
    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// A column says which target a row is for.
    pub(crate) fn has_target(&self) -> bool {
        self.0.target.is_some() || self.0.preset == Some(Preset::Framework)
    }

    /// What its columns mean, and where its claims are kept if not in it.
    pub(crate) fn mapped(&self) -> Result<(Mapping, Option<Beside>), String> {
        self.0.mapped()
    }
}

/// A host's own outbox table, whose rows are claimed instead of events of sendoff's own tables. `sendoff adopt TABLE` writes this. Columns are named as the database has them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableOptions {
    /// The table: `outbox`, or `schema.outbox`.
    pub(super) name: String,
    /// A shape that is known: `framework`, `governance`, `adr003` or `debezium`. What else is given here goes over it.
    pub(super) preset: Option<Preset>,
    /// The column that rows are told apart by; it must be unique. Without it: `id`.
    pub(super) id: Option<String>,
    /// Where events are published: text with columns in it, such as `orders.{event_type}`. Without it: `{topic}`.
    pub(super) topic: Option<String>,
    /// The column that says which target a row is for, by its name here. Without it all rows are for the only target.
    pub(super) target: Option<String>,
    /// The column of the ordering key.
    pub(super) key: Option<String>,
    /// The column of the content. Without it: `payload`.
    pub(super) payload: Option<String>,
    /// A column with a JSON object of headers.
    pub(super) headers: Option<String>,
    /// Headers that are made of columns: `{ tenant = "tenant_id" }`.
    #[serde(default)]
    pub(super) header_columns: BTreeMap<String, String>,
    /// What the content is, for every row; an empty text: nobody says. Without it: `application/json`.
    pub(super) content_type: Option<String>,
    /// The column that says what the content is.
    pub(super) content_type_column: Option<String>,
    /// The column for when an event was written.
    pub(super) created: Option<String>,
    /// Rows are taken by these columns, smallest first; with ` desc` behind its name, largest first.
    #[serde(default)]
    pub(super) order_by: Vec<String>,
    /// A column of whole numbers that rises along every key in the order of the host's transactions. Consumers may drop what is older: give it only if that is so. A time stamp is none.
    pub(super) position: Option<String>,
    /// Only rows that have these values: `{ kind = "event" }`.
    #[serde(default)]
    pub(super) only: BTreeMap<String, Word>,
    /// The rows of a key are handed out one after the other, in the order of `order_by`. Dearer, and no more true than that order is.
    #[serde(default)]
    pub(super) ordered_by_key: bool,
    /// After so many attempts a row is given up; a worker that was lost with it is one. The target's `retry.attempts` holds as well. Without it: 20.
    pub(super) attempts_max: Option<NonZeroU32>,
    /// The column with a row's own number of attempts.
    pub(super) attempts_max_column: Option<String>,
    /// What whole numbers mean that stand for moments, by their column: `seconds`, `millis` or `micros` since 1970. Without it: `micros`.
    #[serde(default)]
    pub(super) epochs: BTreeMap<String, Epoch>,
    /// The columns of a claim, where the table has them.
    pub(super) claims: Option<ClaimsOptions>,
    /// Claims are kept in a table of sendoff's own, where this one has no columns for them or may not be written. `sendoff migrate` makes it.
    pub(super) beside: Option<BesideOptions>,
}

/// A shape of a table that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Preset {
    /// The outbox of a Python framework (its ADR-0013): `locked_by`, `locked_until`, a row for each `target_broker`, which is its target.
    Framework,
    /// A governance outbox: `ClaimedBy`, `ClaimExpiresUtc`, `ConcurrencyStamp`.
    Governance,
    /// ADR-003's `outbox_events`; claims are kept beside it, its status is written.
    Adr003,
    /// The outbox of Debezium's event router; claims are kept beside it, it is only read.
    Debezium,
}

impl Preset {
    pub(crate) const ALL: [Self; 4] = [Self::Framework, Self::Governance, Self::Adr003, Self::Debezium];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Framework => "framework",
            Self::Governance => "governance",
            Self::Adr003 => "adr003",
            Self::Debezium => "debezium",
        }
    }

    /// The words that its status has.
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Framework => &["pending", "processing", "published", "failed", "abandoned"],
            Self::Governance => &["Pending", "Delivered", "RetryReady", "DeadLettered"],
            Self::Adr003 => &["PENDING", "PUBLISHED", "FAILED"],
            Self::Debezium => &[],
        }
    }

    /// What it says of a table of this name.
    pub(crate) fn mapped(self, table: &str, in_order: bool) -> Result<(Mapping, Option<Beside>), String> {
        let beside = |(mapping, beside): (Mapping, Beside)| (mapping, Some(beside));
        let mapped = match self {
            Self::Framework if in_order => presets::framework_rows_in_order(table).map(|one| (one, None)),
            Self::Framework => presets::framework_rows(table).map(|one| (one, None)),
            Self::Governance => presets::governance(table).map(|one| (one, None)),
            Self::Adr003 => presets::adr003(table).map(beside),
            Self::Debezium => presets::debezium(table, &beside_name(table)).map(beside),
        };
        mapped.map_err(|error| error.to_string())
    }
}

/// What the table beside one is called, if nobody says.
pub(crate) fn beside_name(table: &str) -> String {
    format!("{table}_sendoff")
}

/// A value of a column: a text, a whole number, true or false.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Word {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// True or false.
    Flag(bool),
}

impl From<Word> for Value {
    fn from(word: Word) -> Self {
        match word {
            Word::Text(text) => Self::Text(text),
            Word::Number(number) => Self::Int(number),
            Word::Flag(flag) => Self::Bool(flag),
        }
    }
}

/// What whole numbers mean that stand for moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Epoch {
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// Microseconds since 1970.
    Micros,
}

/// The columns of a claim.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimsOptions {
    /// The column of the status.
    pub(super) status: String,
    /// The words, or numbers, that it has for what becomes of a row: `pending`, `published` and `dead`; `processing` and `failed` where there are such.
    pub(super) words: WordOptions,
    /// The column for who has a row: a text of 64 characters.
    pub(super) owner: String,
    /// The column for when its lease ends.
    pub(super) lease_end: String,
    /// The column for how often it was handed out.
    pub(super) attempts: String,
    /// The column of the token, new with every claim. Without it, it is part of the owner.
    pub(super) token: Option<String>,
    /// The column for when it was claimed last.
    pub(super) claimed_at: Option<String>,
    /// The column for when it may be tried again. Without it a retry waits as a lease that nobody has.
    pub(super) due: Option<String>,
    /// The column for what went wrong, as text.
    pub(super) error: Option<String>,
    /// The column for what went wrong, as a JSON object: `cause` and `message`.
    pub(super) error_json: Option<String>,
    /// The column for when it was published.
    pub(super) published_at: Option<String>,
    /// A column that changes with every write: `{ fresh = "stamp" }`, a new UUID each time; `{ counter = "version" }`, one more each time.
    pub(super) stamp: Option<StampOptions>,
}

/// The words of a status.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WordOptions {
    /// Not delivered yet.
    pub(super) pending: Word,
    /// Claimed. Without it the row stays as it was, and its lease alone says so.
    pub(super) processing: Option<Word>,
    /// Delivered.
    pub(super) published: Word,
    /// Waits for its retry. Without it, it is pending again.
    pub(super) failed: Option<Word>,
    /// Given up.
    pub(super) dead: Word,
}

/// A column that changes with every write.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StampOptions {
    /// A new UUID each time.
    Fresh(String),
    /// One more each time.
    Counter(String),
}

/// Where claims are kept beside a table.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BesideOptions {
    /// The table, which is sendoff's own. Without it: the name of the host's, and `_sendoff`.
    pub(super) table: Option<String>,
    /// What is done to a host's row when it is delivered or given up: `leave` it, `delete` it when it is delivered, `write` its status.
    pub(super) at_end: Option<AtEndOption>,
    /// With `write`: the column of the status.
    pub(super) status: Option<String>,
    /// With `write`: its word for delivered.
    pub(super) published: Option<Word>,
    /// With `write`: its word for given up.
    pub(super) dead: Option<Word>,
    /// With `write`: the column for when it was delivered.
    pub(super) published_at: Option<String>,
    /// With `write`: the column for how often it failed.
    pub(super) failures: Option<String>,
}

/// What is done to a host's row at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtEndOption {
    /// Nothing: the table is only read.
    Leave,
    /// It is deleted when it is delivered.
    Delete,
    /// Its status is written.
    Write,
}
