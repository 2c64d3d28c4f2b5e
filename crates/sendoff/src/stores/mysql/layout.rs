//! What a table looks like to MariaDB or MySQL, and how it would be claimed from.

use sqlx::mysql::MySqlRow;
use sqlx::{MySqlConnection, Row as _};

use super::super::sql::{ColumnInfo, ColumnKind, Dialect, Layout, Plan, UniqueKey};
use super::errors;
use super::index::{Index, IndexPart};
use crate::claim::{Ident, Table};
use crate::error::StoreError;

const OP: &str = "open table";

pub(super) async fn read(
    connection: &mut MySqlConnection,
    table: Table,
) -> Result<(Layout, Vec<Index>), StoreError> {
    let subject = table.name().to_string();
    let convert = |error| errors::convert(OP, &subject, error);
    let name = table.name().name().as_str().to_owned();
    let schema = table.name().schema().map(|schema| schema.as_str().to_owned());

    let mut columns = Vec::new();
    let found =
        sqlx::query(include_str!("columns.sql")).bind(&schema).bind(&name).fetch_all(&mut *connection).await;
    for row in found.map_err(convert)? {
        let column: String = row.try_get("name").map_err(convert)?;
        let base: String = row.try_get("base_type").map_err(convert)?;
        let declared: String = row.try_get("declared_type").map_err(convert)?;
        let nullable: String = row.try_get("nullable").map_err(convert)?;
        if let Ok(ident) = Ident::new(&column) {
            columns.push(ColumnInfo {
                name: ident,
                kind: kind(&base, &declared),
                nullable: nullable == "YES",
            });
        }
    }
    let mut indexes: Vec<Index> = Vec::new();
    let found = sqlx::query(include_str!("unique_keys.sql"))
        .bind(&schema)
        .bind(&name)
        .fetch_all(&mut *connection)
        .await;
    for row in found.map_err(convert)? {
        let name: String = row.try_get("index").map_err(convert)?;
        let part = IndexPart {
            column: row.try_get("column").map_err(convert)?,
            descending: row.try_get::<String, _>("direction").map_err(convert)? == "D",
        };
        // Only the beginning of the column is in the index: it can neither order nor identify.
        let is_prefix: i64 = row.try_get("is_prefix").map_err(convert)?;
        let part = if is_prefix == 1 { IndexPart { column: String::new(), ..part } } else { part };
        let unique: i64 = row.try_get("is_unique").map_err(convert)?;
        match indexes.iter_mut().find(|index| index.name == name) {
            Some(index) => index.parts.push(part),
            None => indexes.push(Index { name, unique: unique == 1, parts: vec![part] }),
        }
    }
    let unique: Vec<UniqueKey> = indexes
        .iter()
        .filter(|index| index.unique)
        .map(|index| UniqueKey {
            index: index.name.clone(),
            columns: index.parts.iter().map(|part| part.column.clone()).collect(),
        })
        .collect();
    let layout = Layout::check(table, columns, &unique, Dialect::Mysql)?;
    Ok((layout, indexes))
}

fn kind(base: &str, declared: &str) -> ColumnKind {
    match base {
        "tinyint" if declared.starts_with("tinyint(1)") => ColumnKind::Bool,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => ColumnKind::Int,
        "float" | "double" => ColumnKind::Float,
        "decimal" => ColumnKind::Decimal,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => ColumnKind::Text,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => ColumnKind::Bytes,
        "uuid" => ColumnKind::Uuid,
        "datetime" | "timestamp" => ColumnKind::Moment,
        "json" => ColumnKind::Json,
        _ => ColumnKind::Other(declared.to_owned()),
    }
}

/// What EXPLAIN answered, read.
pub(super) fn plan(rows: &[MySqlRow]) -> Result<Plan, sqlx::Error> {
    let mut lines = Vec::new();
    let mut index = None;
    let mut sorts = false;
    for row in rows {
        let access: Option<String> = row.try_get("type")?;
        let key: Option<String> = row.try_get("key")?;
        let extra: Option<String> = row.try_get("Extra")?;
        sorts |=
            extra.as_deref().is_some_and(|extra| extra.contains("filesort") || extra.contains("temporary"));
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        lines.push(format!("type={} key={} extra={}", shown(&access), shown(&key), shown(&extra)));
        index = index.or(key);
    }
    Ok(Plan { index, sorts, text: lines.join("\n") })
}
