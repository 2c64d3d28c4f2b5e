//! A table as its owner describes it to a store.

use std::collections::BTreeMap;

use super::ident::{Ident, TableName};
use crate::error::StoreError;

/// What a whole number means in a column that holds moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EpochUnit {
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// Microseconds since 1970: what sendoff's own tables use where the database has no type for it.
    #[default]
    Micros,
}

impl EpochUnit {
    /// How many microseconds one of them is.
    pub const fn micros(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000,
            Self::Millis => 1_000,
            Self::Micros => 1,
        }
    }
}

/// A table to claim from: its name, the columns that identify a row, and what to return.
///
/// ```
/// use sendoff::claim::Table;
/// let table = Table::new("shop.jobs", ["id"])?.returning(["id", "payload", "attempts"])?;
/// # Ok::<(), sendoff::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub(crate) name: TableName,
    pub(crate) key: Vec<Ident>,
    /// None: all of them.
    pub(crate) returning: Option<Vec<Ident>>,
    pub(crate) epochs: BTreeMap<Ident, EpochUnit>,
    pub(crate) claim_index: Option<Ident>,
    pub(crate) json_as_text: bool,
}

impl Table {
    /// A table `name` or `schema.name` whose rows are told apart by the columns of `key`: its
    /// primary key, or any unique key without NULLs. The store checks that it is one.
    ///
    /// # Errors
    /// `Rejected` for a bad name or an empty key.
    pub fn new<'k>(name: &str, key: impl IntoIterator<Item = &'k str>) -> Result<Self, StoreError> {
        let parsed = TableName::parse(name).map_err(|error| refuse(name, error.to_string()))?;
        Self::named(parsed, key)
    }

    /// As [`Table::new`], for a name that has been checked.
    ///
    /// # Errors
    /// `Rejected` for a bad name or an empty key.
    pub fn named<'k>(name: TableName, key: impl IntoIterator<Item = &'k str>) -> Result<Self, StoreError> {
        let key = idents(&name, key)?;
        if key.is_empty() {
            return Err(refuse(&name.to_string(), "no key column was given".to_owned()));
        }
        Ok(Self {
            name,
            key,
            returning: None,
            epochs: BTreeMap::new(),
            claim_index: None,
            json_as_text: false,
        })
    }

    /// Returns only these columns. Without it a claim returns every column that the table has when
    /// it is opened.
    ///
    /// # Errors
    /// `Rejected` for a bad name or no column.
    pub fn returning<'c>(mut self, columns: impl IntoIterator<Item = &'c str>) -> Result<Self, StoreError> {
        let columns = idents(&self.name, columns)?;
        if columns.is_empty() {
            return Err(refuse(&self.name.to_string(), "no column to return was given".to_owned()));
        }
        self.returning = Some(columns);
        Ok(self)
    }

    /// Says what the whole numbers of a column mean when a moment is compared with them or set.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn epoch(mut self, column: &str, unit: EpochUnit) -> Result<Self, StoreError> {
        let column = Ident::new(column).map_err(|error| refuse(&self.name.to_string(), error.to_string()))?;
        self.epochs.insert(column, unit);
        Ok(self)
    }

    /// Names the index that claims scan on MariaDB and MySQL, instead of the one whose columns
    /// fit the claim. Other stores leave the choice to their planner.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn claim_index(mut self, index: &str) -> Result<Self, StoreError> {
        let index = Ident::new(index).map_err(|error| refuse(&self.name.to_string(), error.to_string()))?;
        self.claim_index = Some(index);
        Ok(self)
    }

    /// Returns JSON as text, as the database writes it: what is passed on is not to be parsed and written again, which changes its numbers.
    #[must_use]
    pub fn json_as_text(mut self) -> Self {
        self.json_as_text = true;
        self
    }

    /// The table's name.
    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// The columns that tell rows apart.
    pub fn key(&self) -> &[Ident] {
        &self.key
    }
}

fn idents<'n>(table: &TableName, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Ident>, StoreError> {
    names
        .into_iter()
        .map(|name| Ident::new(name).map_err(|error| refuse(&table.to_string(), error.to_string())))
        .collect()
}

fn refuse(subject: &str, detail: String) -> StoreError {
    let subject = subject.escape_debug().to_string();
    StoreError::rejected("table", if subject.is_empty() { "?".to_owned() } else { subject }, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_with_a_description() {
        let table = || Table::new("jobs", ["id"]).unwrap();
        for (answer, part) in [
            (Table::new("", ["id"]), "empty"),
            (Table::new("a.b.c", ["id"]), "more than one dot"),
            (Table::new("jobs", []), "no key column"),
            (Table::new("jobs", ["i\0d"]), "control character"),
            (table().returning([]), "no column to return"),
            (table().returning([""]), "empty"),
            (table().epoch("", EpochUnit::Seconds), "empty"),
            (table().claim_index("ends "), "ends with a space"),
        ] {
            let error = answer.expect_err(part).to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
