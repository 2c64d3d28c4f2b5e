//! Making the tables: twice, by two at once, by hand from the printed script; and meeting those of another version.

use libtest_mimic::Trial;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Names, SqlOutbox};
use sendoff::{StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool, PgPool, SqlitePool};

use crate::servers::Server;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("sqlite::outbox::migrations_run_twice_and_at_once".into(), None, sqlite),
        trial("mariadb::outbox::migrations_run_twice_and_at_once".into(), Some(Server::Mariadb), mariadb),
    ];
    for server in [Server::Postgres15, Server::Postgres18] {
        let name = |case: &str| format!("{}::outbox::{case}", server.name());
        trials.push(trial(name("migrations_run_twice_and_at_once"), Some(server), move || postgres(server)));
        trials.push(trial(name("the_printed_script_makes_the_same_tables"), Some(server), move || {
            printed(server)
        }));
    }
    trials
}

fn fresh() -> String {
    format!("m{:012x}_", fastrand::u64(..1 << 48))
}

/// Both must be refused with what to do about it: no tables, and tables of a newer program.
fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, part: &str) {
    let error = answer.expect_err("it is refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

macro_rules! story {
    ($database:expr, $again:expr, $names:expr, $host:expr, $meta:expr) => {{
        let (first, second, names) = ($database, $again, $names);
        refused(SqlOutbox::open_as(first.clone(), names.clone()).await, "run the migration");
        let (one, two) =
            (Migration::named(first.clone(), names.clone()), Migration::named(second, names.clone()));
        let (one_ran, two_ran) = tokio::join!(one.run(), two.run());
        one_ran.unwrap();
        two_ran.unwrap();
        one.run().await.unwrap();
        SqlOutbox::open_as(first.clone(), names.clone()).await.unwrap();
        let newer = format!("UPDATE {} SET value = '2' WHERE name = 'protocol_version'", $meta);
        $host.execute(AssertSqlSafe(newer)).await.unwrap();
        refused(SqlOutbox::open_as(first.clone(), names.clone()).await, "newer than this program");
        refused(one.run().await, "newer than this program");
    }};
}

async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("test.db").display());
    let (one, two) =
        (SqliteDatabase::connect(&url).await.unwrap(), SqliteDatabase::connect(&url).await.unwrap());
    let host = SqlitePool::connect(&url).await.unwrap();
    story!(one, two, Names::prefix("sendoff_").unwrap(), host, "sendoff_meta");
}

async fn mariadb() {
    let url = Server::Mariadb.url();
    let (one, two) =
        (MysqlDatabase::connect(&url).await.unwrap(), MysqlDatabase::connect(&url).await.unwrap());
    let host = MySqlPool::connect(&url).await.unwrap();
    let prefix = fresh();
    story!(one, two, Names::prefix(&prefix).unwrap(), host, format!("{prefix}meta"));
}

async fn postgres(server: Server) {
    let url = server.url();
    let (one, two) =
        (PostgresDatabase::connect(&url).await.unwrap(), PostgresDatabase::connect(&url).await.unwrap());
    let host = PgPool::connect(&url).await.unwrap();
    let schema = fresh();
    story!(one, two, Names::schema(&schema).unwrap(), host, format!("{schema}.meta"));
}

/// What a schema holds: columns, constraints, indexes, storage settings, functions.
async fn picture(host: &PgPool, schema: &str) -> Vec<String> {
    let sql = "
        SELECT 'column ' || table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable || ' '
            || coalesce(column_default, '') || ' ' || coalesce(generation_expression, '') FROM information_schema.columns
            WHERE table_schema = $1
        UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = $1
        UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
            WHERE connamespace = $1::regnamespace
        UNION ALL SELECT 'table ' || relname || ' ' || coalesce(reloptions::text, '') FROM pg_class
            WHERE relnamespace = $1::regnamespace AND relkind = 'r'
        UNION ALL SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace
        ORDER BY 1";
    let lines: Vec<String> = sqlx::query_scalar(sql).bind(schema).fetch_all(host).await.unwrap();
    lines.into_iter().map(|line| line.replace(schema, "SCHEMA")).collect()
}

async fn printed(server: Server) {
    let url = server.url();
    let database = PostgresDatabase::connect(&url).await.unwrap();
    let host = PgPool::connect(&url).await.unwrap();
    let (ran, by_hand) = (fresh(), fresh());
    Migration::named(database.clone(), Names::schema(&ran).unwrap()).run().await.unwrap();
    let script = Migration::named(database, Names::schema(&by_hand).unwrap()).script().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("outbox.sql");
    std::fs::write(&file, script).unwrap();
    // Twice: it may be run again.
    for _ in 0..2 {
        let psql = std::process::Command::new("psql")
            .args(["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", &url, "--file"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
    }
    let picture_of_ran = picture(&host, &ran).await;
    assert!(picture_of_ran.len() > 60, "the picture shows {} things", picture_of_ran.len());
    assert_eq!(picture_of_ran, picture(&host, &by_hand).await);
}
