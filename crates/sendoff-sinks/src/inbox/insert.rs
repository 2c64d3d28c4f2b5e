//! The statements, in the words of each database.

use sendoff::claim::TableName;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, MySql, MySqlPool, PgPool, QueryBuilder, Sqlite, SqlitePool};

use super::InboxConfig;
use super::row::Row;

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Postgres,
    Mysql,
    Sqlite,
}

impl Kind {
    pub(super) fn of(url: &str) -> Option<Self> {
        match url.split(':').next()? {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            "sqlite" => Some(Self::Sqlite),
            _ => None,
        }
    }

    /// Host and database, for people.
    ///
    /// # Errors
    /// That it is no URL, without its text: it may have a password in it.
    pub(super) fn server(self, url: &str) -> Result<String, String> {
        let wrong = |_| "its URL cannot be read; give postgres://…, mysql://… or sqlite:PATH".to_owned();
        let named = |host: &str, port: u16, database: Option<&str>| {
            let database = database.map(|name| format!("/{name}")).unwrap_or_default();
            format!("{host}:{port}{database}")
        };
        Ok(match self {
            Self::Postgres => {
                let options: PgConnectOptions = url.parse().map_err(wrong)?;
                named(options.get_host(), options.get_port(), options.get_database())
            }
            Self::Mysql => {
                let options: MySqlConnectOptions = url.parse().map_err(wrong)?;
                named(options.get_host(), options.get_port(), options.get_database())
            }
            Self::Sqlite => {
                let options: SqliteConnectOptions = url.parse().map_err(wrong)?;
                options.get_filename().display().to_string()
            }
        })
    }

    /// A statement for this table.
    fn fill(self, sql: &str, table: &TableName) -> String {
        sql.replace("{table}", &self.quoted(table))
    }

    fn quoted(self, table: &TableName) -> String {
        let mark = if self == Self::Mysql { '`' } else { '"' };
        let quote = |name: &str| format!("{mark}{}{mark}", name.replace(mark, &format!("{mark}{mark}")));
        let name = quote(table.name().as_str());
        table.schema().map_or(name.clone(), |schema| format!("{}.{name}", quote(schema.as_str())))
    }
}

/// Connections to one of them.
#[derive(Debug, Clone)]
pub(super) enum Pool {
    Postgres(PgPool),
    Mysql(MySqlPool),
    Sqlite(SqlitePool),
}

impl Pool {
    pub(super) fn open(
        kind: Kind,
        config: &InboxConfig,
        password: Option<&str>,
    ) -> Result<Self, sqlx::Error> {
        let InboxConfig { url, connections, timeout, .. } = config;
        macro_rules! open {
            ($options:ident, $pool:ident, $ca:ident, $verified:expr) => {{
                let mut options: $options = url.parse()?;
                if let Some(username) = &config.username {
                    options = options.username(username);
                }
                if let Some(password) = password {
                    options = options.password(password);
                }
                if let Some(file) = &config.ca_file {
                    options = options.$ca(file);
                }
                if let (Some(certificate), Some(key)) = (&config.client_cert_file, &config.client_key_file) {
                    options = options.ssl_client_cert(certificate).ssl_client_key(key);
                }
                if config.is_encrypted() {
                    options = options.ssl_mode($verified);
                }
                $pool::new()
                    .max_connections(*connections)
                    .acquire_timeout(*timeout)
                    .connect_lazy_with(options)
            }};
        }
        Ok(match kind {
            Kind::Postgres => {
                Self::Postgres(open!(PgConnectOptions, PgPoolOptions, ssl_root_cert, PgSslMode::VerifyFull))
            }
            Kind::Mysql => Self::Mysql(open!(
                MySqlConnectOptions,
                MySqlPoolOptions,
                ssl_ca,
                MySqlSslMode::VerifyIdentity
            )),
            Kind::Sqlite => {
                let options: SqliteConnectOptions = url.parse()?;
                let options = options.busy_timeout(*timeout);
                // One writes at a time anyway.
                let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(*timeout);
                Self::Sqlite(pool.connect_lazy_with(options))
            }
        })
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Postgres(_) => Kind::Postgres,
            Self::Mysql(_) => Kind::Mysql,
            Self::Sqlite(_) => Kind::Sqlite,
        }
    }

    async fn execute(&self, sql: String) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Self::Postgres(pool) => sql.execute(pool).await.map(drop),
            Self::Mysql(pool) => sql.execute(pool).await.map(drop),
            Self::Sqlite(pool) => sql.execute(pool).await.map(drop),
        }
    }

    pub(super) async fn create(&self, table: &TableName) -> Result<(), sqlx::Error> {
        let create = match self.kind() {
            Kind::Postgres => include_str!("postgres/create.sql"),
            Kind::Mysql => include_str!("mysql/create.sql"),
            Kind::Sqlite => include_str!("sqlite/create.sql"),
        };
        self.execute(self.kind().fill(create, table)).await
    }

    /// Whether the table is there, with the columns that are needed.
    pub(super) async fn check(&self, table: &TableName) -> Result<(), sqlx::Error> {
        let key = if self.kind() == Kind::Mysql { "`key`" } else { "\"key\"" };
        let sql = format!(
            "SELECT event_id, target, topic, {key}, payload, content_type, headers, position, epoch, created_at \
             FROM {{table}} WHERE 1 = 0"
        );
        self.execute(self.kind().fill(&sql, table)).await
    }

    /// With one statement: all of them or none.
    pub(super) async fn insert(&self, table: &TableName, rows: &[&Row<'_>]) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(pool) => insert_postgres(pool, table, rows).await,
            Self::Mysql(pool) => insert_mysql(pool, table, rows).await,
            Self::Sqlite(pool) => insert_sqlite(pool, table, rows).await,
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Postgres(pool) => pool.close().await,
            Self::Mysql(pool) => pool.close().await,
            Self::Sqlite(pool) => pool.close().await,
        }
    }
}

async fn insert_postgres(pool: &PgPool, table: &TableName, rows: &[&Row<'_>]) -> Result<(), sqlx::Error> {
    macro_rules! each {
        ($row:ident => $value:expr) => {
            rows.iter().map(|$row| $value).collect::<Vec<_>>()
        };
    }
    let sql = Kind::Postgres.fill(include_str!("postgres/insert.sql"), table);
    sqlx::query(AssertSqlSafe(sql))
        .bind(each!(row => row.claimed.event.event_id.0))
        .bind(each!(row => row.claimed.event.target.as_str()))
        .bind(each!(row => row.claimed.event.topic.as_str()))
        .bind(each!(row => row.key))
        .bind(each!(row => row.payload.as_ref()))
        .bind(each!(row => row.content_type.as_deref()))
        .bind(each!(row => row.headers.as_str()))
        .bind(each!(row => row.position))
        .bind(each!(row => row.epoch))
        .bind(each!(row => row.claimed.event.created_at.as_micros()))
        .execute(pool)
        .await
        .map(drop)
}

/// The parts of a statement before and after its rows.
fn around_rows(sql: &str) -> (&str, &str) {
    sql.split_once("VALUES {rows}").unwrap_or((sql, ""))
}

async fn insert_mysql(pool: &MySqlPool, table: &TableName, rows: &[&Row<'_>]) -> Result<(), sqlx::Error> {
    let sql = Kind::Mysql.fill(include_str!("mysql/insert.sql"), table);
    let (before, after) = around_rows(&sql);
    let mut query: QueryBuilder<MySql> = QueryBuilder::new(before);
    query.push_values(rows, |mut values, row| {
        let event = &row.claimed.event;
        values.push_bind(event.event_id.to_string()).push_bind(&event.target).push_bind(&event.topic);
        values.push_bind(row.key).push_bind(row.payload.as_ref()).push_bind(row.content_type.as_deref());
        values.push_bind(&row.headers).push_bind(row.position).push_bind(row.epoch);
        // It has no time zone: it is UTC.
        values.push_bind(row.created_at.trim_end_matches('Z').replace('T', " "));
    });
    query.push(after).build().execute(pool).await.map(drop)
}

async fn insert_sqlite(pool: &SqlitePool, table: &TableName, rows: &[&Row<'_>]) -> Result<(), sqlx::Error> {
    let sql = Kind::Sqlite.fill(include_str!("sqlite/insert.sql"), table);
    let (before, after) = around_rows(&sql);
    let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(before);
    query.push_values(rows, |mut values, row| {
        let event = &row.claimed.event;
        values.push_bind(event.event_id.to_string()).push_bind(&event.target).push_bind(&event.topic);
        values.push_bind(row.key).push_bind(row.payload.as_ref()).push_bind(row.content_type.as_deref());
        values.push_bind(&row.headers).push_bind(row.position).push_bind(row.epoch);
        values.push_bind(&row.created_at);
    });
    query.push(after).build().execute(pool).await.map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_table_name_stays_a_name() {
        let table = TableName::bare("in\"box`; DROP TABLE x").unwrap();
        assert_eq!(Kind::Postgres.quoted(&table), "\"in\"\"box`; DROP TABLE x\"");
        assert_eq!(Kind::Mysql.quoted(&table), "`in\"box``; DROP TABLE x`");
        let table = TableName::in_schema("shop", "inbox").unwrap();
        assert_eq!(Kind::Sqlite.fill("INTO {table} (", &table), "INTO \"shop\".\"inbox\" (");
    }
}
