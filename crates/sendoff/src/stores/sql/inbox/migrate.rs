//! Making the inbox's tables. They have a version of their own: a database may have an inbox and no outbox, and the other way round.

use super::{Arg, Names, RowReader, SqlDatabase, Templates};
use crate::error::{StoreError, StoreErrorKind};
use crate::stores::sql::{Dialect, SchemaState};

/// The version of the tables that this program makes and speaks.
const VERSION: i64 = 1;

/// Where the version stands in `meta`.
const NAME: &str = "inbox_protocol_version";

/// Makes an inbox's tables, in the schema or under the prefix of the outbox's, whether that is there or not.
#[derive(Debug)]
pub struct InboxMigration<D: SqlDatabase> {
    database: D,
    templates: Templates,
}

impl<D: SqlDatabase> InboxMigration<D> {
    /// Of the inbox under its usual names: `sendoff.inbox_seen` on PostgreSQL, `sendoff_inbox_seen` elsewhere.
    ///
    /// # Errors
    /// None in practice: the usual names are good ones.
    pub fn new(database: D) -> Result<Self, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Ok(Self::named(database, names))
    }

    /// Of the inbox under other names.
    pub fn named(database: D, names: Names) -> Self {
        let templates = Templates { dialect: database.dialect(), names };
        Self { database, templates }
    }

    /// The whole of it as SQL, for people who run their migrations themselves. It may be run again.
    ///
    /// # Errors
    /// `Rejected` for names that cannot be.
    pub fn script(&self) -> Result<String, StoreError> {
        let file = match self.templates.dialect {
            Dialect::Postgres => include_str!("../../postgres/inbox_schema.sql"),
            Dialect::Sqlite => include_str!("../../sqlite/inbox_schema.sql"),
            Dialect::Mysql => include_str!("../../mysql/inbox_schema.sql"),
        };
        let (insert, leave) = match self.templates.dialect {
            Dialect::Postgres => ("INSERT INTO", " ON CONFLICT DO NOTHING"),
            Dialect::Sqlite => ("INSERT OR IGNORE INTO", ""),
            Dialect::Mysql => ("INSERT IGNORE INTO", ""),
        };
        let meta = self.templates.names.quoted(self.templates.dialect, "meta")?;
        let tables = self.templates.script(file, self.database.collation())?;
        Ok(format!("{tables}\n{insert} {meta} (name, value) VALUES ('{NAME}', '{VERSION}'){leave};\n"))
    }

    /// How the tables stand to this program. Changes nothing.
    ///
    /// # Errors
    /// As the database's, if it cannot be asked.
    pub async fn state(&self) -> Result<SchemaState, StoreError> {
        Ok(look(&self.database, &self.templates).await?.0)
    }

    /// Runs it. Safe to run twice, and by two processes at once.
    ///
    /// # Errors
    /// As the database's; `Schema` if the tables are newer than this program.
    pub async fn run(&self) -> Result<(), StoreError> {
        match self.state().await? {
            SchemaState::Current => return Ok(()),
            SchemaState::Newer { .. } => return check(&self.database, &self.templates).await,
            SchemaState::Missing | SchemaState::Stale { .. } | SchemaState::Unreadable(_) => {}
        }
        // The lock of the outbox's own migration: both may make the schema and `meta`.
        self.database.run_schema(&self.templates.names.subject(), &self.script()?).await?;
        check(&self.database, &self.templates).await
    }
}

/// How the tables that are there stand to this program, and what the database said if they are missing.
async fn look<D: SqlDatabase>(
    database: &D,
    templates: &Templates,
) -> Result<(SchemaState, Option<StoreError>), StoreError> {
    let statement = templates
        .fill("SELECT m.value FROM {meta} AS m WHERE m.name = {:name}", &[("name", Arg::from(NAME))])?;
    let rows = match database.query("open inbox", &statement).await {
        Ok(rows) => rows,
        Err(error) if matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Contended) => {
            return Err(error);
        }
        Err(error) => return Ok((SchemaState::Missing, Some(error))),
    };
    let Some(row) = rows.into_iter().next() else { return Ok((SchemaState::Missing, None)) };
    let text = RowReader::new(row).text("value")?;
    let state = match text.parse::<i64>() {
        Err(_) => SchemaState::Unreadable(text),
        Ok(found) if found > VERSION => SchemaState::Newer { found, spoken: VERSION },
        Ok(found) if found < VERSION => SchemaState::Stale { found, spoken: VERSION },
        Ok(_) => SchemaState::Current,
    };
    Ok((state, None))
}

/// Whether this program can work with the tables that are there.
pub(super) async fn check<D: SqlDatabase>(database: &D, templates: &Templates) -> Result<(), StoreError> {
    let (state, cause) = look(database, templates).await?;
    let detail = match state {
        SchemaState::Current => return Ok(()),
        SchemaState::Missing => {
            "its tables are not there; run the inbox's migration (`InboxMigration::run`, or \
             its script in your own migrations)"
                .to_owned()
        }
        SchemaState::Unreadable(text) => format!("its version is `{text}`, not a number"),
        SchemaState::Newer { found, spoken } => format!(
            "its version is {found}, newer than this program, which speaks {spoken}; update the program"
        ),
        SchemaState::Stale { found, spoken } => {
            format!("its version is {found}, this program speaks {spoken}; migrate it")
        }
    };
    let error = StoreError::schema("open inbox", templates.names.subject(), detail);
    Err(match cause {
        Some(cause) => error.caused_by(cause),
        None => error,
    })
}
