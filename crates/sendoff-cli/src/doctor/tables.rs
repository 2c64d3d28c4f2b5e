//! What the outbox's tables are called in statements.

use anyhow::Result;
use sqlx::AssertSqlSafe;

use crate::site::{Host, Site};

/// All of an outbox's tables.
pub(super) const TABLES: [&str; 8] =
    ["meta", "event", "lane", "worker", "parked", "dead", "published", "operation"];

/// Names a table as a statement does. The name was checked when the outbox was named.
pub(super) fn quoted(site: &Site, table: &str) -> String {
    match site.host {
        Host::Postgres(_) => format!("\"{}\".\"{table}\"", site.names.replace('"', "\"\"")),
        Host::Mysql(_) => format!("`{}{table}`", site.names.replace('`', "``")),
        Host::Sqlite(_) => format!("\"{}{table}\"", site.names.replace('"', "\"\"")),
    }
}

/// Fills the holes of a statement: `{event}` is the table, `{1}` the first bound value.
pub(super) fn fill(site: &Site, statement: &str) -> String {
    let mut sql = statement.to_owned();
    for table in TABLES {
        sql = sql.replace(&format!("{{{table}}}"), &quoted(site, table));
    }
    for number in 1..=3 {
        let placeholder =
            if matches!(site.host, Host::Postgres(_)) { format!("${number}") } else { "?".to_owned() };
        sql = sql.replace(&format!("{{{number}}}"), &placeholder);
    }
    sql
}

/// A text as a literal, for a statement that people are shown.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Counts with a statement about a target, and about one of its lanes if that is given.
pub(super) async fn count(site: &Site, statement: &str, target: &str, lane: Option<i16>) -> Result<i64> {
    let sql = AssertSqlSafe(fill(site, statement));
    macro_rules! count {
        ($pool:expr) => {{
            let query = sqlx::query_scalar(sql).bind(target);
            match lane {
                Some(lane) => query.bind(lane).fetch_one($pool).await?,
                None => query.fetch_one($pool).await?,
            }
        }};
    }
    Ok(match &site.host {
        Host::Postgres(pool) => count!(pool),
        Host::Mysql(pool) => count!(pool),
        Host::Sqlite(pool) => count!(pool),
    })
}
