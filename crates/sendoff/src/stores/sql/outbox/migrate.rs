//! Making the outbox's tables, and knowing whether this program can work with those that are there.

use super::{Arg, Names, RowReader, SqlDatabase, Templates};
use crate::error::{StoreError, StoreErrorKind};
use crate::stores::sql::Dialect;

/// The version of the tables that this program makes.
pub const SCHEMA_VERSION: i64 = 1;

/// The oldest version of the tables that this program works with, and the oldest program that the newest tables work with.
const PROTOCOL_VERSION: i64 = 1;

/// Makes or brings up to date an outbox's tables.
#[derive(Debug)]
pub struct Migration<D: SqlDatabase> {
    database: D,
    templates: Templates,
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
        let templates = Templates { dialect: database.dialect(), names };
        Self { database, templates }
    }

    /// The whole of it as SQL, for people who run their migrations themselves. It may be run again.
    ///
    /// # Errors
    /// `Rejected` for names that cannot be.
    pub fn script(&self) -> Result<String, StoreError> {
        let meta = self.templates.names.quoted(self.templates.dialect, "meta")?;
        let mut script = String::new();
        for file in schema_files(self.templates.dialect) {
            script.push_str(&self.templates.script(file, self.database.collation())?);
        }
        let (insert, leave) = match self.templates.dialect {
            Dialect::Postgres => ("INSERT INTO", " ON CONFLICT DO NOTHING"),
            Dialect::Sqlite => ("INSERT OR IGNORE INTO", ""),
            Dialect::Mysql => ("INSERT IGNORE INTO", ""),
        };
        script.push_str(&format!(
            "\n{insert} {meta} (name, value) VALUES ('schema_version', '{SCHEMA_VERSION}'), \
             ('protocol_version', '{PROTOCOL_VERSION}'){leave};\n"
        ));
        Ok(script)
    }

    /// Runs it. Safe to run twice, and by two processes at once.
    ///
    /// # Errors
    /// As the database's; `Schema` if the tables are newer than this program.
    pub async fn run(&self) -> Result<(), StoreError> {
        match check(&self.database, &self.templates).await {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == StoreErrorKind::Schema && !error.to_string().contains(NEWER) => {}
            Err(error) => return Err(error),
        }
        self.database.run_schema(&self.templates.names.subject(), &self.script()?).await?;
        check(&self.database, &self.templates).await
    }
}

const NEWER: &str = "newer than this program";

fn schema_files(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Postgres => &[
            include_str!("../../postgres/schema_1.sql"),
            include_str!("../../postgres/schema_2_functions.sql"),
            include_str!("../../postgres/schema_3_settle.sql"),
        ],
        Dialect::Sqlite => &[include_str!("../../sqlite/schema_1.sql")],
        Dialect::Mysql => &[include_str!("../../mysql/schema_1.sql")],
    }
}

/// Whether this program can work with the tables that are there.
pub(super) async fn check<D: SqlDatabase>(database: &D, templates: &Templates) -> Result<(), StoreError> {
    let subject = templates.names.subject();
    let statement = templates.fill(
        "SELECT m.value FROM {meta} AS m WHERE m.name = {:name}",
        &[("name", Arg::from("protocol_version"))],
    )?;
    let rows = database.query("open outbox", &statement).await.map_err(|error| {
        if matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Contended) {
            return error;
        }
        missing(&subject).caused_by(error)
    })?;
    let Some(row) = rows.into_iter().next() else { return Err(missing(&subject)) };
    let text = RowReader::new(row).text("value")?;
    let Ok(version) = text.parse::<i64>() else {
        return Err(StoreError::schema(
            "open outbox",
            subject,
            format!("its protocol version is `{text}`, not a number"),
        ));
    };
    if version > PROTOCOL_VERSION {
        let detail = format!(
            "its protocol version is {version}, {NEWER}, which speaks {PROTOCOL_VERSION}; update the program"
        );
        return Err(StoreError::schema("open outbox", subject, detail));
    }
    if version < PROTOCOL_VERSION {
        let detail =
            format!("its protocol version is {version}, this program speaks {PROTOCOL_VERSION}; migrate it");
        return Err(StoreError::schema("open outbox", subject, detail));
    }
    Ok(())
}

fn missing(subject: &str) -> StoreError {
    StoreError::schema(
        "open outbox",
        subject,
        "its tables are not there; run the migration (`Migration::run`, or its script in your own migrations)",
    )
}
