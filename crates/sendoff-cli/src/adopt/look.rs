//! What a database says of a table: columns, what is unique, indexes, rights. Nothing here writes.

use std::path::Path;

use anyhow::Result;
use sendoff::claim::TableName;
use sendoff::{StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Row as _};

use crate::exit::Refused;
use crate::site::{Host, Site};

/// No more rows are counted.
pub(super) const ROWS_MAX: u64 = 100_000;

/// What the database says of a table.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) name: String,
    pub(super) database: Kind,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
    pub(super) rights: Rights,
    /// Counted up to [`ROWS_MAX`].
    pub(super) rows: u64,
}

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postgres,
    Sqlite,
    Mysql,
}

impl Kind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
            Self::Mysql => "MariaDB/MySQL",
        }
    }

    /// A name in a statement.
    fn quoted(self, name: &str) -> String {
        let mark = if self == Self::Mysql { '`' } else { '"' };
        format!("{mark}{}{mark}", name.replace(mark, &format!("{mark}{mark}")))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// As it was declared.
    pub(super) kind: String,
    pub(super) family: Family,
    pub(super) is_nullable: bool,
    /// The text that it is by itself, if that is a plain one.
    pub(super) usual: Option<String>,
    /// It rises by itself: a sequence, an identity.
    pub(super) rises: bool,
    /// The words that its type has.
    pub(super) labels: Vec<String>,
}

/// What a column holds, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Text,
    Int,
    Bool,
    Uuid,
    Moment,
    Json,
    Bytes,
    Other,
}

/// How the types of whole numbers begin.
const INTEGERS: [&str; 8] =
    ["int", "bigint", "smallint", "mediumint", "tinyint", "serial", "bigserial", "smallserial"];

impl Family {
    fn of(kind: &str) -> Self {
        let kind = kind.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
        let families = [
            (kind.starts_with("tinyint(1)") || has(&["bool"]), Self::Bool),
            (has(&["uuid"]), Self::Uuid),
            (has(&["json"]), Self::Json),
            (has(&["timestamp", "datetime", "date"]), Self::Moment),
            (has(&["char", "text", "enum", "clob"]), Self::Text),
            (INTEGERS.iter().any(|name| kind.starts_with(name)), Self::Int),
            (has(&["bytea", "blob", "binary"]), Self::Bytes),
        ];
        families.into_iter().find(|(is_so, _)| *is_so).map_or(Self::Other, |(_, family)| family)
    }
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) is_unique: bool,
    pub(super) columns: Vec<String>,
}

/// What this role may do with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) delete: bool,
    /// Make a table beside it.
    pub(super) create: bool,
}

impl Looked {
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| match self.database {
            Kind::Postgres => column.name == name,
            _ => column.name.eq_ignore_ascii_case(name),
        })
    }

    /// Every row is told apart by this column.
    pub(super) fn is_unique(&self, column: &Column) -> bool {
        !column.is_nullable
            && self.indexes.iter().any(|index| index.is_unique && index.columns == [column.name.as_str()])
    }

    /// Whether a column can hold a moment.
    pub(super) fn holds_moments(&self, column: &Column) -> bool {
        let is_sqlite = self.database == Kind::Sqlite;
        column.family == Family::Moment || is_sqlite && matches!(column.family, Family::Text | Family::Other)
    }
}

type Texts = Vec<Vec<Option<String>>>;

/// Looks at a table.
pub(super) async fn look(site: &Site, name: &str) -> Result<Looked> {
    let table = TableName::parse(name).map_err(|error| Refused(format!("table {name:?}: {error}")))?;
    let (database, statements) = match &site.host {
        Host::Postgres(_) => (Kind::Postgres, POSTGRES),
        Host::Sqlite(_) => (Kind::Sqlite, SQLITE),
        Host::Mysql(_) => (Kind::Mysql, MYSQL),
    };
    let schema = table.schema().map(|schema| schema.as_str().to_owned());
    let quoted = quoted(database, &table);
    let binds: Vec<Option<String>> = match database {
        Kind::Postgres => vec![Some(quoted.clone())],
        _ => vec![Some(table.name().as_str().to_owned()), schema],
    };
    let columns = texts(site, statements.columns, &binds).await?;
    if columns.is_empty() {
        let detail = "no such table, or no right to see it; check the schema and the name's case";
        return Err(StoreError::new(StoreErrorKind::Schema, "look at table", name, detail).into());
    }
    let indexes = texts(site, statements.indexes, &binds).await?;
    let rights = match statements.rights {
        Some(statement) => rights(texts(site, statement, &binds).await?.first()),
        None => rights_to_file(&site.url),
    };
    let rows = if rights.read { count(site, &quoted).await? } else { 0 };
    let index = |mut row: Vec<Option<String>>| {
        let columns = row.get_mut(2).and_then(Option::take).unwrap_or_default();
        Index {
            name: row[0].take().unwrap_or_default(),
            is_unique: is_yes(row.get(1)),
            columns: columns.split('\n').map(|column| column.trim_matches('"').to_owned()).collect(),
        }
    };
    Ok(Looked {
        name: name.to_owned(),
        database,
        columns: columns.into_iter().map(column).collect(),
        indexes: indexes
            .into_iter()
            .filter(|row| row.get(2).is_some_and(Option::is_some))
            .map(index)
            .collect(),
        rights,
        rows,
    })
}

/// The values that a column has.
pub(super) async fn words(site: &Site, looked: &Looked, column: &str) -> Result<Vec<String>> {
    let table = TableName::parse(&looked.name).map_err(|error| Refused(error.to_string()))?;
    let sql = include_str!("look/words.sql")
        .replace("{table}", &quoted(looked.database, &table))
        .replace("{column}", &looked.database.quoted(column))
        .replace("{text}", if looked.database == Kind::Mysql { "CHAR" } else { "TEXT" });
    Ok(texts(site, &sql, &[]).await?.into_iter().flatten().flatten().collect())
}

struct Statements {
    columns: &'static str,
    indexes: &'static str,
    /// None: it is a file's.
    rights: Option<&'static str>,
}

macro_rules! statements {
    ($database:literal, $rights:expr) => {
        Statements {
            columns: include_str!(concat!("look/", $database, "/columns.sql")),
            indexes: include_str!(concat!("look/", $database, "/indexes.sql")),
            rights: $rights,
        }
    };
}

const POSTGRES: Statements = statements!("postgres", Some(include_str!("look/postgres/rights.sql")));
const SQLITE: Statements = statements!("sqlite", None);
const MYSQL: Statements = statements!("mysql", Some(include_str!("look/mysql/rights.sql")));

fn quoted(database: Kind, table: &TableName) -> String {
    let name = database.quoted(table.name().as_str());
    match table.schema() {
        Some(schema) => format!("{}.{name}", database.quoted(schema.as_str())),
        None => name,
    }
}

fn is_yes(text: Option<&Option<String>>) -> bool {
    text.and_then(Option::as_deref) == Some("yes")
}

fn column(mut row: Vec<Option<String>>) -> Column {
    let mut take = |index: usize| row.get_mut(index).and_then(Option::take);
    let (name, kind) = (take(0).unwrap_or_default(), take(1).unwrap_or_default());
    let (is_nullable, usual, rises, labels) = (take(2), take(3), take(4), take(5));
    let mut labels: Vec<String> =
        labels.map(|labels| labels.split('\n').map(str::to_owned).collect()).unwrap_or_default();
    if let Some(list) = kind.strip_prefix("enum(").and_then(|rest| rest.strip_suffix(')')) {
        labels = list.split(',').map(|label| label.trim_matches('\'').to_owned()).collect();
    }
    let family = if labels.is_empty() { Family::of(&kind) } else { Family::Text };
    Column {
        is_nullable: is_nullable.as_deref() == Some("yes"),
        rises: rises.as_deref() == Some("yes"),
        usual: usual.as_deref().and_then(plain),
        name,
        kind,
        family,
        labels,
    }
}

/// `'pending'::character varying`, `pending`, `0`: the value, if it is a plain one.
fn plain(usual: &str) -> Option<String> {
    let text = match usual.strip_prefix('\'') {
        Some(rest) => rest.split('\'').next()?,
        None if usual.starts_with('(') => usual.trim_matches(['(', ')']),
        None => usual,
    };
    let is_plain =
        !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "_-".contains(letter));
    (is_plain && !text.eq_ignore_ascii_case("null")).then(|| text.to_owned())
}

fn rights(row: Option<&Vec<Option<String>>>) -> Rights {
    let may = |index: usize| is_yes(row.and_then(|row| row.get(index)));
    Rights { read: may(0), write: may(1), delete: may(2), create: may(3) }
}

/// Who may write a file of SQLite may do everything.
fn rights_to_file(url: &str) -> Rights {
    let path = url.trim_start_matches("sqlite:").trim_start_matches("//");
    let path = Path::new(path.split('?').next().unwrap_or(path));
    let write = !url.contains("mode=ro") && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    Rights { read: true, write, delete: write, create: write }
}

async fn count(site: &Site, quoted: &str) -> Result<u64> {
    let sql = AssertSqlSafe(include_str!("look/rows.sql").replace("{table}", quoted));
    let counted: i64 = match &site.host {
        Host::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        Host::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        Host::Mysql(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
    };
    Ok(u64::try_from(counted).unwrap_or_default())
}

/// Rows of texts.
async fn texts(site: &Site, sql: &str, binds: &[Option<String>]) -> Result<Texts> {
    let sql = AssertSqlSafe(sql.to_owned());
    macro_rules! read {
        ($pool:expr, $row:ty) => {{
            let query = binds.iter().fold(sqlx::query(sql), |query, bind| query.bind(bind.clone()));
            let rows = query.fetch_all($pool).await?;
            let cells = |row: &$row| (0..row.len()).map(|index| row.try_get(index)).collect();
            rows.iter().map(cells).collect::<sqlx::Result<Texts>>()?
        }};
    }
    Ok(match &site.host {
        Host::Postgres(pool) => read!(pool, sqlx::postgres::PgRow),
        Host::Sqlite(pool) => read!(pool, sqlx::sqlite::SqliteRow),
        Host::Mysql(pool) => read!(pool, sqlx::mysql::MySqlRow),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_a_column_is_by_itself_is_read() {
        for (usual, value) in [
            ("'pending'::character varying", Some("pending")),
            ("'NEW'", Some("NEW")),
            ("NEW", Some("NEW")),
            ("0", Some("0")),
            ("((0))", Some("0")),
            ("now()", None),
            ("nextval('a.b_seq'::regclass)", None),
            ("NULL", None),
            ("''", None),
        ] {
            assert_eq!(plain(usual).as_deref(), value, "{usual}");
        }
    }

    #[test]
    fn types_have_their_families() {
        for (kind, family) in [
            ("character varying(20)", Family::Text),
            ("timestamp without time zone", Family::Moment),
            ("DATETIME(6)", Family::Moment),
            ("tinyint(1)", Family::Bool),
            ("tinyint(4)", Family::Int),
            ("bigint(20) unsigned", Family::Int),
            ("jsonb", Family::Json),
            ("uuid", Family::Uuid),
            ("longblob", Family::Bytes),
            ("point", Family::Other),
        ] {
            assert_eq!(Family::of(kind), family, "{kind}");
        }
        let row = ["state", "enum('NEW','SENT')", "no", "NEW", "no"].map(|text| Some(text.to_owned()));
        let column = column(row.into_iter().chain([None]).collect());
        assert_eq!((column.family, column.labels.join(" ").as_str()), (Family::Text, "NEW SENT"));
    }
}
