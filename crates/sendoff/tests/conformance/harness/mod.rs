//! How the suite's tables are made in each store.

/// A harness whose fields are a `database` that claims and a `host` that does not, over `create`, `fill` and `rows` of
/// its module.
macro_rules! sql_harness {
    ($harness:ident, $table:ident, nulls_first: $nulls_first:literal) => {
        impl ClaimHarness for $harness {
            type Table = $table<Record>;

            async fn create(&self, shape: &Shape) -> Self::Table {
                create(&self.host, shape).await;
                self.database.table(shape.description()).await.unwrap()
            }

            async fn insert(&self, shape: &Shape, rows: &[Vec<Value>]) {
                fill(&self.host, shape, rows).await;
            }

            async fn rows(&self, shape: &Shape) -> Vec<Record> {
                rows(&self.host, shape).await
            }

            fn nulls_first(&self) -> bool {
                $nulls_first
            }

            fn race_rows(&self) -> i64 {
                crate::servers::race_rows()
            }
        }
    };
}

/// Binds a value: as the arms say, and else as what it is.
macro_rules! bind {
    ($query:ident, $value:expr, $($own:pat => $bound:expr,)*) => {
        match $value {
            $($own => $bound,)*
            Value::Bool(value) => $query.bind(value),
            Value::Int(value) => $query.bind(value),
            Value::Float(value) => $query.bind(value),
            Value::Text(value) => $query.bind(value),
            Value::Bytes(value) => $query.bind(value),
            Value::Uuid(value) => $query.bind(value),
            other => panic!("the suite does not insert {}", other.kind()),
        }
    };
}

pub(crate) mod memory;
pub(crate) mod memory_outbox;
pub(crate) mod mysql;
pub(crate) mod outbox;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod tasks;

use sendoff::claim::{Ident, Timestamp};
use sendoff::testkit::Shape;

/// Quotes a name with this quote.
pub(crate) fn quote(name: &str, quote: char) -> String {
    let doubled = name.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

/// `CREATE TABLE` with its primary key, and the index if there is one. `kind` names a column's type.
pub(crate) fn ddl(
    shape: &Shape,
    mark: char,
    kind: impl Fn(&sendoff::testkit::ShapeColumn) -> &'static str,
) -> Vec<String> {
    let name = |ident: &Ident| quote(ident.as_str(), mark);
    let mut parts: Vec<String> = shape
        .columns
        .iter()
        .map(|column| {
            let null = if column.is_key { "NOT NULL" } else { "NULL" };
            format!("{} {} {null}", quote(&column.name, mark), kind(column))
        })
        .collect();
    let key: Vec<String> = shape.columns.iter().filter(|c| c.is_key).map(|c| quote(&c.name, mark)).collect();
    parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    let table = name(shape.table.name());
    let mut statements = vec![format!("CREATE TABLE {table} ({})", parts.join(", "))];
    if !shape.index.is_empty() {
        let columns: Vec<String> = shape.index.iter().map(|column| quote(column, mark)).collect();
        let index = quote(&format!("i{:08x}", fastrand::u32(..)), mark);
        statements.push(format!("CREATE INDEX {index} ON {table} ({})", columns.join(", ")));
    }
    statements
}

/// `SELECT *` in key order.
pub(crate) fn select_all(shape: &Shape, mark: char) -> String {
    let key: Vec<String> = shape.columns.iter().filter(|c| c.is_key).map(|c| quote(&c.name, mark)).collect();
    format!("SELECT * FROM {} ORDER BY {}", quote(shape.table.name().as_str(), mark), key.join(", "))
}

/// `INSERT` of so many rows; `placeholder` names the n-th value, counted from 1.
pub(crate) fn insert(
    shape: &Shape,
    mark: char,
    rows: usize,
    placeholder: impl Fn(usize) -> String,
) -> String {
    let width = shape.columns.len();
    let columns: Vec<String> = shape.columns.iter().map(|column| quote(&column.name, mark)).collect();
    let tuples: Vec<String> = (0..rows)
        .map(|row| {
            let values: Vec<String> =
                (0..width).map(|column| placeholder(row * width + column + 1)).collect();
            format!("({})", values.join(", "))
        })
        .collect();
    let table = quote(shape.table.name().as_str(), mark);
    format!("INSERT INTO {table} ({}) VALUES {}", columns.join(", "), tuples.join(", "))
}

/// So many rows fit into one INSERT whatever the database.
pub(crate) const ROWS_PER_INSERT: usize = 1_000;

/// A moment as the drivers take it.
pub(crate) fn moment(at: Timestamp) -> sqlx::types::time::OffsetDateTime {
    sqlx::types::time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1_000).unwrap()
}
