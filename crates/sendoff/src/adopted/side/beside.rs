//! What is kept beside a host's table, and the statements that make it.

use super::super::check::{self, Misfit};
use super::super::mapping::{Mapping, Words};
use super::super::table::{Fit, RowTable};
use super::statements::Statements;
use super::{OP, bundles};
use crate::claim::{Table, TableName, Value};
use crate::error::{StoreError, StoreErrorKind};
use crate::stores::sql::{Dialect, SqlDatabase};

/// What is done to a host's row when it is delivered or given up.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum AtEnd {
    /// Nothing: the host's table is only read. That it was delivered is known beside it for as long as its row is there.
    #[default]
    Leave,
    /// It is deleted when it is delivered. One that was given up stays.
    Delete,
    /// Its status is written, and whatever else is named.
    Write {
        /// The column.
        status: String,
        /// When it was delivered.
        published: Value,
        /// When it was given up.
        dead: Value,
        /// For when it was delivered.
        published_at: Option<String>,
        /// For how often it failed.
        failures: Option<String>,
    },
}

/// Where claims are kept beside a host's table.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    pub(crate) table: TableName,
    pub(crate) at_end: AtEnd,
}

impl Beside {
    /// Claims are kept in the table `name` or `schema.name`, which is sendoff's own.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn new(table: &str) -> Result<Self, StoreError> {
        let table = TableName::parse(table).map_err(|error| {
            StoreError::rejected("map", table.escape_debug().to_string(), error.to_string())
        })?;
        Ok(Self { table, at_end: AtEnd::Leave })
    }

    /// The same in another table.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn named(self, table: &str) -> Result<Self, StoreError> {
        Ok(Self { table: Self::new(table)?.table, ..self })
    }

    /// What is done to a host's row when it is delivered or given up.
    pub fn end(&self) -> &AtEnd {
        &self.at_end
    }

    /// The table that claims are kept in.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// What is done to a host's row when it is delivered or given up.
    #[must_use]
    pub fn at_end(mut self, at_end: AtEnd) -> Self {
        self.at_end = at_end;
        self
    }

    pub(in crate::adopted) fn mapping(&self, host: &Mapping) -> Result<Mapping, StoreError> {
        let words =
            Words { pending: 0.into(), processing: None, published: 1.into(), failed: None, dead: 2.into() };
        let mut mapping = Mapping::new(&self.table.to_string(), "id")?
            .topic("-")?
            .payload("id")
            .order_by("place")
            .attempts_max(host.attempts_max)
            .claims("state", words, "owner", "lease_until", "attempts")
            .token("token")
            .error("error");
        mapping.table = self.table.clone();
        if host.is_ordered_by_key {
            mapping = mapping.key("ordering_key").ordered_by_key();
        }
        Ok(mapping)
    }
}

/// The table beside a host's, if it is there and all that belongs to it.
pub(in crate::adopted) async fn known<D>(
    database: &D,
    host: &Mapping,
    beside: &Beside,
) -> Result<Option<D::Lanes>, StoreError>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    match database.open_lanes(beside.mapping(host)?.description()?).await {
        Ok(_)
            if bundles::are_used(database.dialect(), beside)
                && !bundles::are_there(database, beside).await? =>
        {
            Ok(None)
        }
        Ok(claims) => Ok(Some(claims)),
        Err(error) if error.kind() == StoreErrorKind::Schema => Ok(None),
        Err(error) => Err(error),
    }
}

/// That it is not there, and the statements that make it.
pub(super) async fn missing<D>(database: &D, host: &Mapping, beside: &Beside) -> Result<Misfit, StoreError>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    let script = script(database, host, beside).await?;
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("--")).map(str::trim);
    let what = format!("claims are to be kept in {}, which is not there", beside.table);
    Ok(Misfit::new(what, Some(lines.collect::<Vec<_>>().join(" "))))
}

/// What does not fit of a table whose claims are kept beside it, and of that one.
pub(in crate::adopted) async fn misfits<D>(
    database: &D,
    host: &Mapping,
    beside: &Beside,
) -> Result<Vec<Misfit>, StoreError>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    let bare = Table::named(host.table.clone(), [host.id.as_str()])?;
    let mut misfits = check::of_host(&database.open_lanes(bare).await?, host, &beside.at_end);
    if misfits.is_empty() && known(database, host, beside).await?.is_none() {
        misfits.push(missing(database, host, beside).await?);
    }
    Ok(misfits)
}

/// The statements that make the table beside a host's.
pub(in crate::adopted) async fn script<D>(
    database: &D,
    host: &Mapping,
    beside: &Beside,
) -> Result<String, StoreError>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    let table = database.open_lanes(host.description()?).await?;
    let dialect = database.dialect();
    let statements = Statements::new(dialect, beside, host)?;
    let values = [
        ("bigint", Value::Int(0)),
        ("text", Value::Text(String::new())),
        ("bytea", Value::Bytes(Vec::new())),
        ("uuid", Value::Uuid(uuid::Uuid::nil())),
    ];
    let kind = values.into_iter().find(|(_, value)| table.fit(&host.id, value) == Fit::Fits);
    let Some((kind, _)) = kind else {
        let detail = format!("column `{}` is of a type that cannot be kept beside the table", host.id);
        return Err(StoreError::schema(OP, host.table.to_string(), detail));
    };
    let kind = match (dialect, kind) {
        (Dialect::Sqlite, "bigint") => "INTEGER",
        (Dialect::Sqlite, "bytea" | "uuid") => "BLOB",
        (Dialect::Sqlite, _) => "TEXT",
        (_, kind) => kind,
    };
    let template = match dialect {
        Dialect::Postgres => include_str!("create_postgres.sql"),
        Dialect::Sqlite => include_str!("create_sqlite.sql"),
        Dialect::Mysql => include_str!("create_mysql.sql"),
    };
    let words = [("id_type", kind.to_owned()), ("collation", database.collation().to_owned())];
    let mut script = statements.script(template, &words);
    if bundles::are_used(dialect, beside) {
        script.push_str(&statements.script(bundles::CREATE, &words));
    }
    Ok(script)
}
