//! What a table looks like to PostgreSQL, and how it would be claimed from.

use sqlx::Row as _;

use super::super::sql::{Bind, ColumnInfo, ColumnKind, Dialect, Layout, Plan, Statement, UniqueKey};
use super::{PostgresDatabase, errors};
use crate::claim::{Ident, Table};
use crate::error::StoreError;

const OP: &str = "open table";

pub(super) async fn read(database: &PostgresDatabase, table: Table) -> Result<Layout, StoreError> {
    let subject = table.name().to_string();
    let convert = |error| errors::convert(OP, &subject, error);
    let quoted = Bind::Text(Dialect::Postgres.quote_table(table.name()));

    let describe = |sql: &'static str| Statement { sql: sql.to_owned(), binds: vec![quoted.clone()] };
    let mut columns = Vec::new();
    for row in database.run(OP, &subject, &describe(include_str!("columns.sql"))).await? {
        let name: String = row.try_get("name").map_err(convert)?;
        let base: String = row.try_get("base_type").map_err(convert)?;
        let declared: String = row.try_get("declared_type").map_err(convert)?;
        let required: bool = row.try_get("required").map_err(convert)?;
        // A column whose name could not be quoted cannot be claimed by, but is no reason to refuse the table.
        if let Ok(name) = Ident::new(&name) {
            columns.push(ColumnInfo { name, kind: kind(&base, &declared), nullable: !required });
        }
    }
    let mut unique = Vec::new();
    for row in database.run(OP, &subject, &describe(include_str!("unique_keys.sql"))).await? {
        unique.push(UniqueKey {
            index: row.try_get("index").map_err(convert)?,
            columns: row.try_get("columns").map_err(convert)?,
        });
    }
    Layout::check(table, columns, &unique, Dialect::Postgres)
}

/// `base` is the type under a domain, `declared` what a text is cast to where there is no kind for it.
fn kind(base: &str, declared: &str) -> ColumnKind {
    match base {
        "boolean" => ColumnKind::Bool,
        "smallint" | "integer" | "bigint" => ColumnKind::Int,
        "real" | "double precision" => ColumnKind::Float,
        "numeric" => ColumnKind::Decimal,
        "text" | "character varying" | "character" => ColumnKind::Text,
        "bytea" => ColumnKind::Bytes,
        "uuid" => ColumnKind::Uuid,
        "timestamp with time zone" => ColumnKind::Moment,
        "timestamp without time zone" => ColumnKind::PlainMoment,
        "json" | "jsonb" => ColumnKind::Json,
        _ => ColumnKind::Other(declared.to_owned()),
    }
}

/// What EXPLAIN printed, read.
pub(super) fn plan(lines: &[String]) -> Plan {
    // Only the CTE `picked` sees the whole backlog, and may not sort. Nothing may read the table itself whole.
    let start = lines.iter().position(|line| line.contains("CTE picked")).unwrap_or(0);
    let depth = |line: &String| line.len() - line.trim_start().len();
    let picked: Vec<&String> = lines
        .iter()
        .skip(start + 1)
        .take_while(|line| depth(line) > lines.get(start).map_or(0, depth))
        .collect();
    let reads_all = lines.iter().any(|line| line.contains("Seq Scan on "));
    let index = picked.iter().filter(|_| !reads_all).find_map(|line| {
        let (_, after) =
            line.split_once("Index Scan using ").or_else(|| line.split_once("Index Only Scan using "))?;
        after.split_whitespace().next().map(str::to_owned)
    });
    let sorts = picked.iter().any(|line| line.contains("Sort"));
    Plan { index, sorts, text: lines.join("\n") }
}

/// What EXPLAIN printed of a fetch, in which the event table is called `alias`: how it is read, and whether its rows are sorted.
pub(super) fn fetch_plan(lines: &[String], alias: &str) -> Plan {
    let end = format!(" {alias}");
    let of_events = |line: &&String| line.ends_with(&end) && line.contains(" on ");
    let reads_all = lines.iter().filter(of_events).any(|line| line.contains("Seq Scan on "));
    let index = lines.iter().filter(|_| !reads_all).find_map(|line| {
        let after = ["Index Scan using ", "Index Only Scan using ", "Bitmap Index Scan on "]
            .into_iter()
            .find_map(|kind| line.split_once(kind))?
            .1;
        let is_bitmap = line.contains("Bitmap Index Scan on ");
        (is_bitmap || of_events(&line)).then(|| after.split_whitespace().next().map(str::to_owned))?
    });
    let key = format!("Sort Key: {alias}.");
    let sorts = lines.iter().any(|line| line.contains(&key));
    Plan { index, sorts, text: lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Plan {
        fetch_plan(&text.lines().map(str::to_owned).collect::<Vec<_>>(), "e")
    }

    #[test]
    fn a_fetch_is_judged_by_how_events_are_read() {
        let good = "Limit\n  ->  Nested Loop\n        ->  Limit\n              InitPlan 1 (returns $2)\n                ->  Seq Scan on parked any_of\n              \
                    ->  Index Scan using event_pkey on event e\n                    SubPlan 2\n                        Sort Key: p.id";
        assert_eq!(read(good).index.as_deref(), Some("event_pkey"));
        assert!(read(good).is_served_by_index());
        assert!(!read("->  Sort\n  Sort Key: e.id\n  ->  Seq Scan on event e").is_served_by_index());
        let sorted = "->  Sort\n  Sort Key: e.id\n  ->  Bitmap Heap Scan on event e\n    ->  Bitmap Index Scan on event_pkey";
        assert!(read(sorted).sorts && !read(sorted).is_served_by_index());
    }
}
