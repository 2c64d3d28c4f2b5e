//! What the tables of an outbox are called.

use crate::claim::{Ident, TableName};
use crate::error::StoreError;
use crate::stores::sql::Dialect;

/// What the tables of an outbox are called: in a schema of their own on PostgreSQL (`sendoff.event`), under a prefix elsewhere
/// (`sendoff_event`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    schema: Option<Ident>,
    prefix: String,
}

impl Names {
    /// Tables in this schema: PostgreSQL's way.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn schema(name: &str) -> Result<Self, StoreError> {
        Ok(Self { schema: Some(ident(name)?), prefix: String::new() })
    }

    /// Tables whose names begin with this, in the connection's own database: the way of MariaDB, MySQL and SQLite.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn prefix(prefix: &str) -> Result<Self, StoreError> {
        ident(&format!("{prefix}published_by_event_id"))?;
        Ok(Self { schema: None, prefix: prefix.to_owned() })
    }

    /// `sendoff.event` on PostgreSQL, `sendoff_event` elsewhere.
    pub(crate) fn default_for(dialect: Dialect) -> Result<Self, StoreError> {
        match dialect {
            Dialect::Postgres => Self::schema("sendoff"),
            Dialect::Sqlite | Dialect::Mysql => Self::prefix("sendoff_"),
        }
    }

    /// The table called so.
    pub(crate) fn table(&self, name: &str) -> Result<TableName, StoreError> {
        let full = ident(&format!("{}{name}", self.prefix))?;
        let refuse =
            |error: crate::claim::IdentError| StoreError::rejected("outbox", name, error.to_string());
        match &self.schema {
            Some(schema) => TableName::in_schema(schema.as_str(), full.as_str()).map_err(refuse),
            None => TableName::bare(full.as_str()).map_err(refuse),
        }
    }

    /// A quoted index name: an index is made in its table's schema and never named with it.
    pub(crate) fn index(&self, dialect: Dialect, name: &str) -> Result<String, StoreError> {
        Ok(dialect.quote(&ident(&format!("{}{name}", self.prefix))?))
    }

    pub(crate) fn quoted(&self, dialect: Dialect, name: &str) -> Result<String, StoreError> {
        Ok(dialect.quote_table(&self.table(name)?))
    }

    pub(crate) fn quoted_schema(&self, dialect: Dialect) -> String {
        self.schema.as_ref().map_or_else(String::new, |schema| dialect.quote(schema))
    }

    /// What the outbox is called in errors.
    pub(crate) fn subject(&self) -> String {
        self.schema.as_ref().map_or_else(|| format!("{}*", self.prefix), |schema| format!("{schema}.*"))
    }
}

fn ident(name: &str) -> Result<Ident, StoreError> {
    Ident::new(name)
        .map_err(|error| StoreError::rejected("outbox", name.escape_debug().to_string(), error.to_string()))
}
