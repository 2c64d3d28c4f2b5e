//! Making the tables: twice, by two at once, beside the outbox's own, by hand from the printed script; and meeting those of another version.

use sendoff::inbox::SqlInbox;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, SchemaState, SqlOutbox};
use sendoff::{StoreError, StoreErrorKind};

use super::host::{Pool, names};
use crate::servers::Server;

/// Refused with what to do about it.
fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, part: &str) {
    let error = answer.expect_err("it is refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

macro_rules! story {
    ($database:ty, $server:expr, $url:expr, $dot:expr) => {{
        let (one, two) =
            (<$database>::connect($url).await.unwrap(), <$database>::connect($url).await.unwrap());
        let host = Pool::connect($url).await;
        let fresh = || format!("m{:012x}", fastrand::u64(..1 << 48));
        let name = fresh();
        let names_of = names($server, &name);
        refused(
            SqlInbox::open_as(one.clone(), names_of.clone()).await,
            "the tables of the inbox are not there",
        );
        let first = SqlInbox::migration_as(one.clone(), names_of.clone());
        let second = SqlInbox::migration_as(two.clone(), names_of.clone());
        assert_eq!(first.state().await.unwrap(), SchemaState::Missing);
        let outbox = Migration::named(two, names_of.clone());
        let (first_ran, second_ran, outbox_ran) = tokio::join!(first.run(), second.run(), outbox.run());
        first_ran.unwrap();
        second_ran.unwrap();
        outbox_ran.unwrap();
        first.run().await.unwrap();
        SqlInbox::open_as(one.clone(), names_of.clone()).await.unwrap();
        SqlOutbox::open_as(one.clone(), names_of.clone()).await.unwrap();

        let meta = format!("{name}{}meta", $dot);
        host.execute(format!("UPDATE {meta} SET value = '2' WHERE name = 'inbox_protocol_version'")).await;
        refused(SqlInbox::open_as(one.clone(), names_of.clone()).await, "newer than this program");
        refused(first.run().await, "newer than this program");
        SqlOutbox::open_as(one.clone(), names_of).await.unwrap();

        // By hand, twice, where there is no outbox.
        let name = fresh();
        let by_hand = SqlInbox::migration_as(one.clone(), names($server, &name));
        for _ in 0..2 {
            host.script(by_hand.script().unwrap()).await;
        }
        assert_eq!(by_hand.state().await.unwrap(), SchemaState::Current);
        refused(
            SqlOutbox::open_as(one, names($server, &name)).await,
            "the tables of the outbox are not there",
        );
    }};
}

pub(super) async fn run(server: Option<Server>) {
    match server {
        None => {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("sqlite://{}", directory.path().join("test.db").display());
            story!(SqliteDatabase, server, &url, "_");
        }
        Some(Server::Mariadb) => story!(MysqlDatabase, server, &Server::Mariadb.url(), "_"),
        Some(postgres) => story!(PostgresDatabase, server, &postgres.url(), "."),
    }
}
