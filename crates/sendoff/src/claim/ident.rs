//! Names of tables and columns: checked once, quoted by each dialect.

use std::fmt;
use std::str::FromStr;

/// The longest name every supported database keeps whole: PostgreSQL silently cuts at 63 bytes.
pub const IDENT_BYTES_MAX: usize = 63;

/// A name that is safe to quote in every dialect.
///
/// Anything a database accepts between quotes is accepted here: reserved words, spaces, quotes,
/// semicolons, any script. What no dialect can quote safely, or some would silently change, is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ident(Box<str>);

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentError {
    /// Nothing to quote.
    #[error("a name may not be empty")]
    Empty,
    /// PostgreSQL would cut it, and two long names could become one.
    #[error(
        "the name `{start}…` has {bytes} bytes; {IDENT_BYTES_MAX} is the most that every database keeps whole"
    )]
    TooLong {
        /// Its beginning.
        start: String,
        /// Its full length.
        bytes: usize,
    },
    /// NUL ends a C string, and no control character belongs in a name.
    #[error("the name {name} contains a control character, which no database can quote safely")]
    Control {
        /// The name, escaped.
        name: String,
    },
    /// MariaDB and MySQL refuse such names.
    #[error("the name `{name}` ends with a space")]
    TrailingSpace {
        /// The name.
        name: String,
    },
    /// Neither `table` nor `schema.table`.
    #[error("`{name}` has more than one dot; write `schema.table`, or use `TableName::in_schema`")]
    TooManyParts {
        /// The name.
        name: String,
    },
}

impl Ident {
    /// Checks `name`.
    ///
    /// # Errors
    /// If the name is empty, over [`IDENT_BYTES_MAX`] bytes, ends with a space, or has a control character.
    pub fn new(name: &str) -> Result<Self, IdentError> {
        if name.is_empty() {
            return Err(IdentError::Empty);
        }
        if name.len() > IDENT_BYTES_MAX {
            let start = name.chars().take(20).flat_map(char::escape_debug).collect();
            return Err(IdentError::TooLong { start, bytes: name.len() });
        }
        if name.chars().any(char::is_control) {
            return Err(IdentError::Control { name: format!("{name:?}") });
        }
        if name.ends_with(' ') {
            return Err(IdentError::TrailingSpace { name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Ident {
    type Err = IdentError;
    fn from_str(name: &str) -> Result<Self, IdentError> {
        Self::new(name)
    }
}

/// A table's name, with its schema (PostgreSQL), database (MariaDB, MySQL) or attached
/// database (SQLite) where it is not the connection's own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    schema: Option<Ident>,
    name: Ident,
}

impl TableName {
    /// Reads `table` or `schema.table`. A name that itself has a dot needs [`TableName::in_schema`]
    /// or [`TableName::bare`].
    ///
    /// # Errors
    /// If a part is not a valid [`Ident`], or there are more than two.
    pub fn parse(name: &str) -> Result<Self, IdentError> {
        let mut parts = name.split('.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(table), None, _) => Self::bare(table),
            (Some(schema), Some(table), None) => Self::in_schema(schema, table),
            _ => Err(IdentError::TooManyParts { name: name.escape_debug().to_string() }),
        }
    }

    /// A table in the connection's own schema; dots are part of the name.
    ///
    /// # Errors
    /// If the name is not a valid [`Ident`].
    pub fn bare(name: &str) -> Result<Self, IdentError> {
        Ok(Self { schema: None, name: Ident::new(name)? })
    }

    /// A table in a named schema; dots are part of the names.
    ///
    /// # Errors
    /// If either is not a valid [`Ident`].
    pub fn in_schema(schema: &str, name: &str) -> Result<Self, IdentError> {
        Ok(Self { schema: Some(Ident::new(schema)?), name: Ident::new(name)? })
    }

    /// The schema, if one was given.
    pub fn schema(&self) -> Option<&Ident> {
        self.schema.as_ref()
    }

    /// The table's own name.
    pub fn name(&self) -> &Ident {
        &self.name
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_be_quoted_and_says_why() {
        for (name, part) in [
            ("", "empty"),
            ("a\0b", "control character"),
            ("tab\tle", "control character"),
            ("new\nline", "control character"),
            ("ends ", "ends with a space"),
        ] {
            let error = Ident::new(name).expect_err(name).to_string();
            assert!(error.contains(part), "{name:?}: {error}");
        }
    }

    #[test]
    fn counts_bytes_not_characters() {
        assert!(Ident::new(&"a".repeat(63)).is_ok());
        assert!(Ident::new(&"a".repeat(64)).is_err());
        assert!(Ident::new(&"ü".repeat(31)).is_ok());
        assert!(Ident::new(&"ü".repeat(32)).unwrap_err().to_string().contains("64 bytes"));
    }

    #[test]
    fn accepts_what_quotes_can_hold() {
        for name in
            ["select", "order by", "a;b", "it's", "quo\"te", "back`tick", "Größe", "表", "{set}", "$1", "?"]
        {
            assert!(Ident::new(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn splits_a_schema_from_a_table() {
        let name = TableName::parse("shop.orders").unwrap();
        assert_eq!((name.schema().unwrap().as_str(), name.name().as_str()), ("shop", "orders"));
        assert_eq!(TableName::bare("a.b").unwrap().name().as_str(), "a.b");
        assert!(TableName::parse("a.b.c").unwrap_err().to_string().contains("more than one dot"));
        assert!(TableName::parse("a.").is_err());
    }
}
