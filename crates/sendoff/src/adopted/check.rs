//! Whether a mapping fits its table, and the statements that would make it fit.

use std::fmt;

use uuid::Uuid;

use super::leases::Grant;
use super::mapping::{Mapping, Stamp};
use super::table::{Database, Fit, RowTable};
use crate::claim::{ClaimSpec, Direction, Value, col, now};
use crate::error::StoreError;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
use {super::side::AtEnd, crate::claim::Table, crate::stores::sql::SqlDatabase};

const OP: &str = "adopt table";

/// Something of a table that does not fit its mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// What does not fit.
    pub what: String,
    /// The statement that mends it. None: it is the mapping that is to be mended.
    pub run: Option<String>,
}

impl Misfit {
    pub(super) fn new(what: impl Into<String>, run: Option<String>) -> Self {
        Self { what: what.into(), run }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some(run) => write!(f, "{}; run: {run}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Refuses what does not fit.
pub(super) fn refuse(mapping: &Mapping, misfits: &[Misfit]) -> Result<(), StoreError> {
    if misfits.is_empty() {
        return Ok(());
    }
    let detail = misfits.iter().map(Misfit::to_string).collect::<Vec<_>>().join(". ");
    Err(StoreError::schema(OP, mapping.table.to_string(), detail))
}

/// What a column is for, as far as its type depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Status,
    Owner,
    Token,
    Moment,
    Count,
    Error,
    ErrorJson,
    Stamp,
    /// Read, and no more.
    Content,
}

/// Opens the table, when the mapping fits it.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(super) async fn open<D>(database: &D, mapping: &Mapping) -> Result<D::Lanes, StoreError>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    let bare = Table::named(mapping.table.clone(), [mapping.id.as_str()])?;
    refuse(mapping, &of_columns(&database.open_lanes(bare).await?, columns(mapping)?, mapping))?;
    database.open_lanes(mapping.description()?).await
}

/// What does not fit of a table that has columns for claims.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(super) async fn misfits<D>(database: &D, mapping: &Mapping) -> Result<Vec<Misfit>, StoreError>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    let bare = Table::named(mapping.table.clone(), [mapping.id.as_str()])?;
    let wrong = of_columns(&database.open_lanes(bare).await?, columns(mapping)?, mapping);
    if !wrong.is_empty() {
        return Ok(wrong);
    }
    order_fits(mapping)?;
    of_indexes(&database.open_lanes(mapping.description()?).await?, mapping).await
}

/// Refuses a mapping that does not fit.
pub(super) async fn fits<T: RowTable>(table: &T, mapping: &Mapping) -> Result<(), StoreError> {
    refuse(mapping, &of_columns(table, columns(mapping)?, mapping))?;
    order_fits(mapping)?;
    refuse(mapping, &of_indexes(table, mapping).await?)
}

/// What does not fit of a table whose claims are kept beside it.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(super) fn of_host<T: RowTable>(table: &T, mapping: &Mapping, at_end: &AtEnd) -> Vec<Misfit> {
    let mut wanted = content(mapping);
    if let AtEnd::Write { status, published, dead, published_at, failures } = at_end {
        wanted.extend([published, dead].map(|word| (status.as_str(), Role::Content, word.clone())));
        wanted.extend(published_at.iter().map(|column| (column.as_str(), Role::Moment, now())));
        wanted.extend(failures.iter().map(|column| (column.as_str(), Role::Count, Value::Int(0))));
    }
    of_columns(table, wanted, mapping)
}

async fn of_indexes<T: RowTable>(table: &T, mapping: &Mapping) -> Result<Vec<Misfit>, StoreError> {
    let mut wanted = Vec::new();
    for spec in claims(mapping)? {
        if !table.is_servable(&spec).await? {
            wanted.push(claim_index(table.database(), mapping));
        }
    }
    if let Some(spec) = of_key(table, mapping)?
        && !table.is_servable(&spec).await?
    {
        wanted.push(key_index(table.database(), mapping));
    }
    wanted.dedup();
    let what =
        "no index gives the rows of a claim in their order, so each claim would read and sort all that waits";
    Ok(wanted.into_iter().map(|statement| Misfit::new(what, Some(statement))).collect())
}

fn claims(mapping: &Mapping) -> Result<Vec<ClaimSpec>, StoreError> {
    let plain = Mapping { is_ordered_by_key: false, ..mapping.clone() };
    plain.turns(&Grant::new("check", Uuid::nil(), true), std::time::Duration::from_secs(1), 1)
}

/// What looks for the earlier rows of a key, whichever it is.
fn of_key<T: RowTable>(table: &T, mapping: &Mapping) -> Result<Option<ClaimSpec>, StoreError> {
    let (Some(key), true) = (&mapping.key, mapping.is_ordered_by_key) else { return Ok(None) };
    let claim = mapping.claim_columns()?;
    let values = [Value::Text(String::new()), Value::Int(0), Value::Uuid(Uuid::nil())];
    let Some(some) = values.into_iter().find(|value| table.fit(key, value) == Fit::Fits) else {
        return Ok(None);
    };
    let mut spec = ClaimSpec::on_table(mapping.table.clone()).eligible(col(key).eq(some));
    for (column, _) in &mapping.order {
        spec = spec.order_by(column);
    }
    spec.set(&claim.status, claim.words.pending.clone()).limit(1).build().map(Some)
}

fn order_fits(mapping: &Mapping) -> Result<(), StoreError> {
    let refuse = |detail: &str| Err(StoreError::rejected(OP, mapping.table.to_string(), detail.to_owned()));
    if mapping.order.is_empty() {
        return refuse(
            "no order was named; rows are taken by a column, such as when they were written: name one",
        );
    }
    if !mapping.is_ordered_by_key {
        return Ok(());
    }
    if mapping.key.is_none() {
        return refuse("the order of keys is to be kept, and no column of keys is named");
    }
    match mapping.order.iter().any(|(_, direction)| *direction == Direction::Descending) {
        true => {
            refuse("the order of keys is to be kept, and rows are taken largest first: name only what rises")
        }
        false => Ok(()),
    }
}

/// A column, what it is for, and what it must be able to hold.
type Wanted<'m> = (&'m str, Role, Value);

/// The columns that are read, and those that a row is chosen by.
fn content(mapping: &Mapping) -> Vec<Wanted<'_>> {
    let read = mapping.content().map(|column| (column, Role::Content, Value::Null));
    let chosen = mapping.filter.iter().map(|(column, value)| (column.as_str(), Role::Content, value.clone()));
    read.chain(chosen).collect()
}

/// The columns that a mapping names, with what will be written to them.
fn columns(mapping: &Mapping) -> Result<Vec<Wanted<'_>>, StoreError> {
    let claim = mapping.claim_columns()?;
    let mut wanted = content(mapping);
    wanted.extend(claim.words.open().map(|word| (claim.status.as_str(), Role::Status, word.clone())));
    wanted.push((&claim.owner, Role::Owner, Value::Text(String::new())));
    wanted.push((&claim.lease_end, Role::Moment, now()));
    wanted.push((&claim.attempts, Role::Count, Value::Int(0)));
    let moments = [&claim.claimed_at, &claim.due, &claim.published_at].into_iter().flatten();
    wanted.extend(moments.map(|column| (column.as_str(), Role::Moment, now())));
    wanted.extend(claim.token.iter().map(|column| (column.as_str(), Role::Token, Value::Uuid(Uuid::nil()))));
    let count = mapping.attempts_max_column.iter();
    wanted.extend(count.map(|column| (column.as_str(), Role::Count, Value::Int(0))));
    wanted.extend(claim.error.iter().map(|column| match claim.error_is_json {
        true => (column.as_str(), Role::ErrorJson, Value::Json(serde_json::Value::Null)),
        false => (column.as_str(), Role::Error, Value::Text(String::new())),
    }));
    wanted.extend(claim.stamp.iter().map(|stamp| match stamp {
        Stamp::Fresh(column) => (column.as_str(), Role::Stamp, Value::Uuid(Uuid::nil())),
        Stamp::Counter(column) => (column.as_str(), Role::Count, Value::Int(0)),
    }));
    Ok(wanted)
}

fn of_columns<T: RowTable>(table: &T, wanted: Vec<Wanted<'_>>, mapping: &Mapping) -> Vec<Misfit> {
    let database = table.database();
    let mut wrong: Vec<Misfit> = Vec::new();
    for (column, role, value) in wanted {
        let misfit = match table.fit(column, &value) {
            Fit::Fits => continue,
            Fit::Missing(detail) if role == Role::Content => {
                Misfit::new(format!("{detail}; name the one that is meant"), None)
            }
            Fit::Missing(detail) => Misfit::new(detail, Some(add_column(database, mapping, column, role))),
            Fit::Wrong(detail) if role == Role::Content => {
                Misfit::new(format!("{detail}; name a value of its type"), None)
            }
            Fit::Wrong(detail) => change_column(database, mapping, column, role, detail),
        };
        if !wrong.contains(&misfit) {
            wrong.push(misfit);
        }
    }
    wrong
}

/// The type that a column of this role has where sendoff's own statements make it.
fn type_of(database: Database, mapping: &Mapping, role: Role) -> String {
    let (text, moment, json) = match database {
        Database::Postgres | Database::Memory => ("text", "timestamptz", "jsonb"),
        Database::Sqlite => ("TEXT", "TEXT", "TEXT"),
        Database::Mysql => ("VARCHAR(255)", "DATETIME(6)", "JSON"),
    };
    let uuid = match database {
        Database::Postgres | Database::Memory => "uuid",
        Database::Sqlite => "TEXT",
        Database::Mysql => "CHAR(36)",
    };
    match role {
        Role::Status => match mapping.claim.as_ref().map(|claim| &claim.words.pending) {
            Some(Value::Int(number)) => format!("integer NOT NULL DEFAULT {number}"),
            Some(Value::Text(word)) => format!("{text} NOT NULL DEFAULT '{}'", word.replace('\'', "''")),
            _ => text.to_owned(),
        },
        Role::Owner | Role::Stamp | Role::Content => text.to_owned(),
        Role::Error => if database == Database::Mysql { "TEXT" } else { text }.to_owned(),
        Role::ErrorJson => json.to_owned(),
        Role::Token => uuid.to_owned(),
        Role::Moment => moment.to_owned(),
        Role::Count => "integer NOT NULL DEFAULT 0".to_owned(),
    }
}

fn add_column(database: Database, mapping: &Mapping, column: &str, role: Role) -> String {
    let (table, name) = (quoted_table(database, mapping), quote(database, column));
    format!("ALTER TABLE {table} ADD COLUMN {name} {}", type_of(database, mapping, role))
}

fn change_column(database: Database, mapping: &Mapping, column: &str, role: Role, detail: String) -> Misfit {
    let (table, name) = (quoted_table(database, mapping), quote(database, column));
    let wanted = type_of(database, mapping, role);
    match database {
        Database::Postgres | Database::Memory => {
            let bare = wanted.split(' ').next().unwrap_or(&wanted).to_owned();
            let run =
                format!("ALTER TABLE {table} ALTER COLUMN {name} TYPE {bare} USING {name}::text::{bare}");
            Misfit::new(detail, Some(run))
        }
        Database::Mysql => {
            Misfit::new(detail, Some(format!("ALTER TABLE {table} MODIFY COLUMN {name} {wanted}")))
        }
        Database::Sqlite => {
            let other = quote(database, &format!("sendoff_{column}"));
            let what = format!("{detail}; SQLite changes no types: map another one");
            Misfit::new(what, Some(format!("ALTER TABLE {table} ADD COLUMN {other} {wanted}")))
        }
    }
}

/// The index that serves a claim: what is equal first, then the order.
pub(super) fn claim_index(database: Database, mapping: &Mapping) -> String {
    let Some(claim) = &mapping.claim else { return String::new() };
    let fixed = mapping.filter.iter().map(|(column, _)| column.as_str()).chain([claim.status.as_str()]);
    let mut columns: Vec<String> = fixed.map(|column| quote(database, column)).collect();
    columns.extend(mapping.order.iter().map(|(column, direction)| {
        let mark = if *direction == Direction::Descending { " DESC" } else { "" };
        format!("{}{mark}", quote(database, column))
    }));
    let only = if database == Database::Postgres {
        format!(" WHERE {}", open_rows(database, mapping))
    } else {
        String::new()
    };
    create_index(database, mapping, "claim", &columns, &only)
}

fn key_index(database: Database, mapping: &Mapping) -> String {
    let key = mapping.key.iter().map(String::as_str);
    let columns = key.chain(mapping.order.iter().map(|(column, _)| column.as_str()));
    let columns: Vec<String> = columns.map(|column| quote(database, column)).collect();
    create_index(database, mapping, "key", &columns, "")
}

fn open_rows(database: Database, mapping: &Mapping) -> String {
    let Some(claim) = &mapping.claim else { return String::new() };
    let words = claim.words.open().map(|word| match word {
        Value::Int(number) => number.to_string(),
        Value::Text(word) => format!("'{}'", word.replace('\'', "''")),
        other => other.kind().to_owned(),
    });
    format!("{} IN ({})", quote(database, &claim.status), words.collect::<Vec<_>>().join(", "))
}

fn create_index(database: Database, mapping: &Mapping, name: &str, columns: &[String], only: &str) -> String {
    let name = quote(database, &format!("{}_sendoff_{name}", mapping.table.name().as_str()));
    // Without it the host could not write while the index is made.
    let how = if database == Database::Postgres { "CONCURRENTLY " } else { "" };
    format!("CREATE INDEX {how}{name} ON {} ({}){only}", quoted_table(database, mapping), columns.join(", "))
}

fn quoted_table(database: Database, mapping: &Mapping) -> String {
    let name = quote(database, mapping.table.name().as_str());
    match mapping.table.schema() {
        Some(schema) => format!("{}.{name}", quote(database, schema.as_str())),
        None => name,
    }
}

fn quote(database: Database, name: &str) -> String {
    let mark = if database == Database::Mysql { '`' } else { '"' };
    format!("{mark}{}{mark}", name.replace(mark, &format!("{mark}{mark}")))
}
