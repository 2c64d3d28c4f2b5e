//! Making a set of tables, and knowing whether this program can work with those that are there.

use super::{Arg, Names, RowReader, SqlDatabase, Templates};
use crate::error::{StoreError, StoreErrorKind};
use crate::stores::sql::Dialect;

/// The version of the outbox's tables that this program makes.
pub const SCHEMA_VERSION: i64 = 2;

/// Tables that are made together and have versions of their own: a host that does not use a part of sendoff has none of its tables.
///
/// All sets share one table, `meta`, for their versions; each makes it if it is not there.
#[derive(Debug, Clone, Copy)]
pub struct SchemaSet {
    /// What it is called in errors.
    pub(crate) name: &'static str,
    /// What its version rows in `meta` begin with.
    pub(crate) prefix: &'static str,
    /// The version of the tables that this program makes.
    pub(crate) version: i64,
    /// The oldest version of the tables that this program works with, and the oldest program that the newest tables work with.
    pub(crate) protocol: i64,
    /// Its files, in their order. Each may be run again.
    pub(crate) files: fn(Dialect) -> &'static [&'static str],
}

impl SchemaSet {
    /// The outbox.
    pub const OUTBOX: Self =
        Self { name: "outbox", prefix: "", version: SCHEMA_VERSION, protocol: 1, files: outbox_files };

    /// The inbox.
    pub const INBOX: Self =
        Self { name: "inbox", prefix: "inbox_", version: 1, protocol: 1, files: inbox_files };

    /// Tasks.
    pub const TASKS: Self =
        Self { name: "tasks", prefix: "tasks_", version: 1, protocol: 1, files: task_files };
}

/// How a set of tables stands to this program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaState {
    /// This program can work with them.
    Current,
    /// They are not there, or may not be read.
    Missing,
    /// They are of an older version: the migration brings them up to date.
    Stale {
        /// The version that was found.
        found: i64,
        /// The version that this program speaks.
        spoken: i64,
    },
    /// They are of a version that this program does not know yet.
    Newer {
        /// The version that was found.
        found: i64,
        /// The version that this program speaks.
        spoken: i64,
    },
    /// What stands there for a version is no number.
    Unreadable(String),
}

/// Makes or brings up to date a set of tables: the outbox's, unless another is named.
#[derive(Debug)]
pub struct Migration<D: SqlDatabase> {
    database: D,
    templates: Templates,
    set: SchemaSet,
}

impl<D: SqlDatabase> Migration<D> {
    /// Of the outbox under its usual names.
    ///
    /// # Errors
    /// None in practice: the usual names are good ones.
    pub fn new(database: D) -> Result<Self, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Ok(Self::named(database, names))
    }

    /// Of the outbox under other names.
    pub fn named(database: D, names: Names) -> Self {
        Self::of(SchemaSet::OUTBOX, database, names)
    }

    /// Of this set of tables.
    pub fn of(set: SchemaSet, database: D, names: Names) -> Self {
        let templates = Templates { dialect: database.dialect(), names };
        Self { database, templates, set }
    }

    /// The whole of it as SQL, for people who run their migrations themselves. It may be run again.
    ///
    /// # Errors
    /// `Rejected` for names that cannot be.
    pub fn script(&self) -> Result<String, StoreError> {
        let meta = self.templates.names.quoted(self.templates.dialect, "meta")?;
        let mut script = String::new();
        let SchemaSet { prefix, version, protocol, files, .. } = self.set;
        for file in files(self.templates.dialect) {
            script.push_str(&self.templates.script(file, self.database.collation())?);
        }
        let (insert, leave) = match self.templates.dialect {
            Dialect::Postgres => ("INSERT INTO", " ON CONFLICT DO NOTHING"),
            Dialect::Sqlite => ("INSERT OR IGNORE INTO", ""),
            Dialect::Mysql => ("INSERT IGNORE INTO", ""),
        };
        script.push_str(&format!(
            "\n{insert} {meta} (name, value) VALUES ('{prefix}schema_version', '{version}'), \
             ('{prefix}protocol_version', '{protocol}'){leave};\n"
        ));
        Ok(script)
    }

    /// How the tables stand to this program. Changes nothing.
    ///
    /// # Errors
    /// As the database's, if it cannot be asked.
    pub async fn state(&self) -> Result<SchemaState, StoreError> {
        Ok(look(&self.database, &self.templates, &self.set).await?.0)
    }

    /// Runs it. Safe to run twice, and by two processes at once.
    ///
    /// # Errors
    /// As the database's; `Schema` if the tables are newer than this program.
    pub async fn run(&self) -> Result<(), StoreError> {
        match self.state().await? {
            SchemaState::Current => return Ok(()),
            SchemaState::Newer { .. } => return check(&self.database, &self.templates, &self.set).await,
            SchemaState::Missing | SchemaState::Stale { .. } | SchemaState::Unreadable(_) => {}
        }
        self.database.run_schema(&self.templates.names.subject(), &self.script()?).await?;
        check(&self.database, &self.templates, &self.set).await
    }
}

fn outbox_files(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Postgres => &[
            include_str!("../../postgres/schema_1.sql"),
            include_str!("../../postgres/schema_2_functions.sql"),
            include_str!("../../postgres/schema_3_settle.sql"),
            include_str!("../../postgres/schema_5_parked_index.sql"),
        ],
        Dialect::Sqlite => &[
            include_str!("../../sqlite/schema_1.sql"),
            include_str!("../../sqlite/schema_5_parked_index.sql"),
        ],
        Dialect::Mysql => &[include_str!("../../mysql/schema_1.sql")],
    }
}

fn inbox_files(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Postgres => &[include_str!("../../postgres/inbox_schema.sql")],
        Dialect::Sqlite => &[include_str!("../../sqlite/inbox_schema.sql")],
        Dialect::Mysql => &[include_str!("../../mysql/inbox_schema.sql")],
    }
}

fn task_files(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Postgres => &[include_str!("../../postgres/schema_tasks_1.sql")],
        Dialect::Sqlite => &[include_str!("../../sqlite/schema_tasks_1.sql")],
        Dialect::Mysql => &[include_str!("../../mysql/schema_tasks_1.sql")],
    }
}

/// How the tables that are there stand to this program, and what the database said if they are missing.
async fn look<D: SqlDatabase>(
    database: &D,
    templates: &Templates,
    set: &SchemaSet,
) -> Result<(SchemaState, Option<StoreError>), StoreError> {
    let name = format!("{}protocol_version", set.prefix);
    let statement = templates.fill(
        "SELECT m.value FROM {meta} AS m WHERE m.name = {:name}",
        &[("name", Arg::from(name.as_str()))],
    )?;
    let rows = match database.query("open", &statement).await {
        Ok(rows) => rows,
        Err(error) if matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Contended) => {
            return Err(error);
        }
        Err(error) => return Ok((SchemaState::Missing, Some(error))),
    };
    let Some(row) = rows.into_iter().next() else { return Ok((SchemaState::Missing, None)) };
    let text = RowReader::new(row).text("value")?;
    let spoken = set.protocol;
    let state = match text.parse::<i64>() {
        Err(_) => SchemaState::Unreadable(text),
        Ok(found) if found > spoken => SchemaState::Newer { found, spoken },
        Ok(found) if found < spoken => SchemaState::Stale { found, spoken },
        Ok(_) => SchemaState::Current,
    };
    Ok((state, None))
}

/// Whether this program can work with the tables that are there.
pub(crate) async fn check<D: SqlDatabase>(
    database: &D,
    templates: &Templates,
    set: &SchemaSet,
) -> Result<(), StoreError> {
    let (state, cause) = look(database, templates, set).await?;
    let detail = match state {
        SchemaState::Current => return Ok(()),
        SchemaState::Missing => {
            format!(
                "the tables of the {} are not there; run the migration (`Migration::run`, or its script in your own migrations)",
                set.name
            )
        }
        SchemaState::Unreadable(text) => format!("its protocol version is `{text}`, not a number"),
        SchemaState::Newer { found, spoken } => format!(
            "its protocol version is {found}, newer than this program, which speaks {spoken}; update the program"
        ),
        SchemaState::Stale { found, spoken } => {
            format!("its protocol version is {found}, this program speaks {spoken}; migrate it")
        }
    };
    let error = StoreError::schema("open", templates.names.subject(), detail);
    Err(match cause {
        Some(cause) => error.caused_by(cause),
        None => error,
    })
}
