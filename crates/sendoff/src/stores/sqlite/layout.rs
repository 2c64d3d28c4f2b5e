//! What a table looks like to SQLite, and how it would be claimed from.

use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::super::sql::{ColumnInfo, ColumnKind, Dialect, Layout, Plan, UniqueKey};
use super::errors;
use crate::claim::{Ident, Table};
use crate::error::StoreError;

const OP: &str = "open table";

/// Older ones can corrupt a write-ahead log that several connections share.
const VERSION_MIN: (u32, u32, u32) = (3, 51, 3);

pub(super) fn check_version(version: &str) -> Result<(), StoreError> {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let found = (next(), next(), next());
    if found < VERSION_MIN {
        let (major, minor, patch) = VERSION_MIN;
        return Err(StoreError::schema(
            "connect",
            "database",
            format!(
                "the SQLite library is {version}; before {major}.{minor}.{patch} a write-ahead log with several \
                 connections can be corrupted: build with the bundled library"
            ),
        ));
    }
    Ok(())
}

pub(super) async fn read(connection: &mut SqliteConnection, table: Table) -> Result<Layout, StoreError> {
    let subject = table.name().to_string();
    let convert = |error| errors::convert(OP, &subject, error);
    let name = table.name().name().as_str().to_owned();
    let schema = table.name().schema().map_or("main", |schema| schema.as_str()).to_owned();

    let mut columns = Vec::new();
    let mut primary: Vec<(i64, String)> = Vec::new();
    let rows =
        sqlx::query(include_str!("columns.sql")).bind(&name).bind(&schema).fetch_all(&mut *connection).await;
    for row in rows.map_err(convert)? {
        let column: String = row.try_get("name").map_err(convert)?;
        let declared: String = row.try_get("declared_type").map_err(convert)?;
        let required: bool = row.try_get("required").map_err(convert)?;
        let key_place: i64 = row.try_get("key_place").map_err(convert)?;
        if key_place > 0 {
            primary.push((key_place, column.clone()));
        }
        if let Ok(ident) = Ident::new(&column) {
            // A primary key that may hold NULL is SQLite's own old mistake: looked at below, not refused.
            let nullable = !required && key_place == 0;
            columns.push(ColumnInfo { name: ident, kind: kind(&declared), nullable });
        }
    }
    primary.sort_unstable();
    let mut unique = Vec::new();
    if !primary.is_empty() {
        unique.push(UniqueKey {
            index: String::new(),
            columns: primary.into_iter().map(|(_, name)| name).collect(),
        });
    }
    let rows = sqlx::query(include_str!("unique_keys.sql"))
        .bind(&name)
        .bind(&schema)
        .fetch_all(&mut *connection)
        .await;
    for row in rows.map_err(convert)? {
        let index: String = row.try_get("index").map_err(convert)?;
        let column: String = row.try_get("column").map_err(convert)?;
        match unique.iter_mut().find(|key| key.index == index) {
            Some(key) => key.columns.push(column),
            None => unique.push(UniqueKey { index, columns: vec![column] }),
        }
    }
    let layout = Layout::check(table, columns, &unique, Dialect::Sqlite)?;
    refuse_null_keys(connection, &layout).await?;
    Ok(layout)
}

/// SQLite lets NULL into a primary key that is not declared NOT NULL. Such a row would be picked first and marked
/// never, and hold up all others.
async fn refuse_null_keys(connection: &mut SqliteConnection, layout: &Layout) -> Result<(), StoreError> {
    let subject = layout.name().to_string();
    let table = Dialect::Sqlite.quote_table(layout.name());
    for column in layout.key() {
        let name = Dialect::Sqlite.quote(&column.name);
        let sql = AssertSqlSafe(format!("SELECT EXISTS (SELECT 1 FROM {table} AS t WHERE t.{name} IS NULL)"));
        let found: bool = sqlx::query_scalar(sql)
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| errors::convert(OP, &subject, error))?;
        if found {
            let detail = format!(
                "key column `{}` is null in some row; give it a value, or delete the row",
                column.name
            );
            return Err(StoreError::schema(OP, subject, detail));
        }
    }
    Ok(())
}

/// By the rules with which SQLite itself reads a declared type, and the common names beyond them.
fn kind(declared: &str) -> ColumnKind {
    let declared = declared.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    if has("BOOL") {
        ColumnKind::Bool
    } else if has("INT") {
        ColumnKind::Int
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        ColumnKind::Text
    } else if has("JSON") {
        ColumnKind::Json
    } else if has("BLOB") {
        ColumnKind::Bytes
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        ColumnKind::Float
    } else if has("UUID") {
        ColumnKind::Uuid
    } else if has("DATE") || has("TIME") {
        ColumnKind::Moment
    } else {
        ColumnKind::Any
    }
}

/// What EXPLAIN QUERY PLAN printed, read.
pub(super) fn plan(lines: &[String]) -> Plan {
    let index = lines.iter().find_map(|line| {
        if line.contains("USING INTEGER PRIMARY KEY") || line.contains("USING PRIMARY KEY") {
            return Some("PRIMARY KEY".to_owned());
        }
        let (_, after) =
            line.split_once("USING INDEX ").or_else(|| line.split_once("USING COVERING INDEX "))?;
        after.split_whitespace().next().map(str::to_owned)
    });
    let sorts = lines.iter().any(|line| line.contains("TEMP B-TREE"));
    Plan { index, sorts, text: lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_libraries_are_refused() {
        assert!(check_version("3.51.3").is_ok());
        assert!(check_version("3.52.0").is_ok());
        assert!(check_version("4.0.0").is_ok());
        let error = check_version("3.40.1").unwrap_err().to_string();
        assert!(error.contains("3.40.1") && error.contains("bundled"), "{error}");
    }

    #[test]
    fn declared_types_are_read_as_sqlite_reads_them() {
        for (declared, expected) in [
            ("INTEGER", ColumnKind::Int),
            ("unsigned big int", ColumnKind::Int),
            ("VARCHAR(20)", ColumnKind::Text),
            ("boolean", ColumnKind::Bool),
            ("datetime", ColumnKind::Moment),
            ("TIMESTAMP", ColumnKind::Moment),
            ("BLOB", ColumnKind::Bytes),
            ("double precision", ColumnKind::Float),
            ("jsonb", ColumnKind::Json),
            ("", ColumnKind::Any),
            ("DECIMAL(10,5)", ColumnKind::Any),
        ] {
            assert_eq!(kind(declared), expected, "{declared}");
        }
    }
}
