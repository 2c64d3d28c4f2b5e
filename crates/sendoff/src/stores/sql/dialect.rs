//! Every way in which the three SQL dialects differ in a claim, in one place.

use std::fmt::Write as _;

use super::layout::ColumnKind;
use crate::claim::{EpochUnit, Ident, TableName};

/// A family of databases that share their SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(all(feature = "postgres", feature = "sqlite", feature = "mysql")), allow(dead_code))]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
    /// MariaDB and MySQL.
    Mysql,
}

impl Dialect {
    /// Column names match whatever their case.
    pub(crate) fn folds_case(self) -> bool {
        !matches!(self, Self::Postgres)
    }

    /// Quotes a name; the quote itself is doubled.
    pub(crate) fn quote(self, name: &Ident) -> String {
        let quote = if self == Self::Mysql { '`' } else { '"' };
        let mut quoted = String::with_capacity(name.as_str().len() + 2);
        quoted.push(quote);
        for character in name.as_str().chars() {
            if character == quote {
                quoted.push(quote);
            }
            quoted.push(character);
        }
        quoted.push(quote);
        quoted
    }

    /// Quotes a table's name with its schema.
    pub(crate) fn quote_table(self, table: &TableName) -> String {
        match table.schema() {
            Some(schema) => format!("{}.{}", self.quote(schema), self.quote(table.name())),
            None => self.quote(table.name()),
        }
    }

    /// The `number`-th bound value, counted from 1.
    pub(crate) fn placeholder(self, number: usize) -> String {
        match self {
            Self::Postgres => format!("${number}"),
            Self::Sqlite | Self::Mysql => "?".to_owned(),
        }
    }

    /// The database's time as a column of `kind` holds it. `offset` is the placeholder of what is
    /// added: microseconds, the epoch's unit, or on SQLite a modifier like `+30.000 seconds`.
    pub(crate) fn now(self, kind: &ColumnKind, offset: Option<&str>) -> String {
        let mut sql = match (self, kind) {
            // statement_timestamp(), not now(): in a transaction now() is its beginning. Not
            // clock_timestamp() either: being volatile, it keeps indexes out of the comparison.
            (Self::Postgres, ColumnKind::PlainMoment) => {
                "(statement_timestamp() AT TIME ZONE 'UTC')".to_owned()
            }
            (Self::Postgres, ColumnKind::Epoch(unit)) => {
                let per_second = 1_000_000 / unit.micros();
                format!("floor(extract(epoch FROM statement_timestamp()) * {per_second})::bigint")
            }
            (Self::Postgres, _) => "statement_timestamp()".to_owned(),
            (Self::Mysql, ColumnKind::Epoch(unit)) => {
                let per_second = 1_000_000 / unit.micros();
                format!("CAST(FLOOR(UNIX_TIMESTAMP(NOW(6)) * {per_second}) AS SIGNED)")
            }
            (Self::Mysql, _) => "UTC_TIMESTAMP(6)".to_owned(),
            // SQLite's clock has milliseconds; rounded, since the seconds come as a float.
            (Self::Sqlite, ColumnKind::Epoch(EpochUnit::Micros)) => {
                "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) * 1000".to_owned()
            }
            (Self::Sqlite, ColumnKind::Epoch(EpochUnit::Millis)) => {
                "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)".to_owned()
            }
            (Self::Sqlite, ColumnKind::Epoch(EpochUnit::Seconds)) => "unixepoch('now')".to_owned(),
            (Self::Sqlite, _) => {
                // Three more digits, so that it compares as text with stored microseconds.
                return match offset {
                    Some(offset) => format!("strftime('%Y-%m-%d %H:%M:%f', 'now', {offset}) || '000'"),
                    None => "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'".to_owned(),
                };
            }
        };
        if let Some(offset) = offset {
            let _ = match (self, kind) {
                (_, ColumnKind::Epoch(_)) => write!(sql, " + {offset}"),
                (Self::Postgres, _) => write!(sql, " + {offset} * interval '1 microsecond'"),
                (_, _) => write!(sql, " + INTERVAL {offset} MICROSECOND"),
            };
        }
        sql
    }

    /// The false of this dialect: what no row fulfils.
    pub(crate) fn never(self) -> &'static str {
        "1 = 0"
    }

    /// What every row fulfils.
    pub(crate) fn always(self) -> &'static str {
        "1 = 1"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled_and_nothing_else_is_touched() {
        let hostile = Ident::new(r#"a"b`c'; DROP TABLE x --"#).unwrap();
        assert_eq!(Dialect::Postgres.quote(&hostile), r#""a""b`c'; DROP TABLE x --""#);
        assert_eq!(Dialect::Mysql.quote(&hostile), r#"`a"b``c'; DROP TABLE x --`"#);
        let table = TableName::parse("shop.orders").unwrap();
        assert_eq!(Dialect::Sqlite.quote_table(&table), r#""shop"."orders""#);
    }
}
