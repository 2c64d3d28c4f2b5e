//! Making the tables of tasks: apart from the outbox's, twice, by two at once, by hand from the printed script.

use libtest_mimic::Trial;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Names, SchemaSet, SchemaState, SqlOutbox, SqlTasks};
use sendoff::{StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool, PgPool, SqlitePool};

use crate::servers::Server;
use crate::trial;

pub(super) fn trials() -> Vec<Trial> {
    let name =
        |store: &str| format!("{store}::tasks::migrations_run_twice_and_at_once_and_apart_from_the_outbox");
    let mut trials =
        vec![trial(name("sqlite"), None, sqlite), trial(name("mariadb"), Some(Server::Mariadb), mariadb)];
    for server in [Server::Postgres15, Server::Postgres18] {
        trials.push(trial(name(server.name()), Some(server), move || postgres(server)));
    }
    trials
}

fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, part: &str) {
    let error = answer.expect_err("it is refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

macro_rules! story {
    ($first:expr, $second:expr, $names:expr, $host:expr, $meta:expr) => {{
        let (first, second, names) = ($first, $second, $names);
        refused(
            SqlTasks::open_as(first.clone(), names.clone()).await,
            "the tables of the tasks are not there",
        );
        let one = Migration::of(SchemaSet::TASKS, first.clone(), names.clone());
        let two = Migration::of(SchemaSet::TASKS, second, names.clone());
        assert_eq!(one.state().await.unwrap(), SchemaState::Missing);
        let (one_ran, two_ran) = tokio::join!(one.run(), two.run());
        one_ran.unwrap();
        two_ran.unwrap();
        one.run().await.unwrap();
        SqlTasks::open_as(first.clone(), names.clone()).await.unwrap();
        // A host with tasks alone has no outbox, and may get one later.
        refused(
            SqlOutbox::open_as(first.clone(), names.clone()).await,
            "the tables of the outbox are not there",
        );
        Migration::named(first.clone(), names.clone()).run().await.unwrap();
        SqlOutbox::open_as(first.clone(), names.clone()).await.unwrap();
        // The printed script may be run over what is there.
        let script = one.script().unwrap();
        $host.execute(sqlx::raw_sql(AssertSqlSafe(script))).await.unwrap();
        SqlTasks::open_as(first.clone(), names.clone()).await.unwrap();
        let newer = format!("UPDATE {} SET value = '2' WHERE name = 'tasks_protocol_version'", $meta);
        $host.execute(AssertSqlSafe(newer)).await.unwrap();
        refused(SqlTasks::open_as(first.clone(), names.clone()).await, "newer than this program");
        refused(one.run().await, "newer than this program");
        SqlOutbox::open_as(first.clone(), names.clone()).await.unwrap();
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
    let prefix = format!("m{:012x}_", fastrand::u64(..1 << 48));
    story!(one, two, Names::prefix(&prefix).unwrap(), host, format!("{prefix}meta"));
}

async fn postgres(server: Server) {
    let url = server.url();
    let (one, two) =
        (PostgresDatabase::connect(&url).await.unwrap(), PostgresDatabase::connect(&url).await.unwrap());
    let host = PgPool::connect(&url).await.unwrap();
    let schema = format!("m{:012x}", fastrand::u64(..1 << 48));
    story!(one, two, Names::schema(&schema).unwrap(), host, format!("\"{schema}\".meta"));
}
