//! The inbox through every library that has an adapter: what a transaction that commits has seen, and one that rolls back has not.

use sendoff::inbox::{Arrival, Inbox, Once, Order, SqlInbox};
use sendoff::stores::Names;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::{EventId, StoreErrorKind};

use crate::outboxes::{Host, TestOutbox};
use crate::servers::Server;

/// More than one statement's worth.
const MANY: usize = 1_100;

/// The outbox's tables, and the inbox's beside them.
async fn with_inbox(outbox: Option<TestOutbox>) -> Option<TestOutbox> {
    let outbox = outbox?;
    let (url, names) = (&outbox.url, outbox.names.clone());
    match &outbox.host {
        Host::Postgres(_) => {
            SqlInbox::migration_as(PostgresDatabase::connect(url).await.unwrap(), names).run().await.unwrap();
        }
        Host::Mysql(_) => {
            SqlInbox::migration_as(MysqlDatabase::connect(url).await.unwrap(), names).run().await.unwrap();
        }
        Host::Sqlite(..) => {
            SqlInbox::migration_as(SqliteDatabase::connect(url).await.unwrap(), names).run().await.unwrap();
        }
    }
    Some(outbox)
}

/// How many events were seen, by transactions that committed.
async fn seen(outbox: &TestOutbox) -> i64 {
    let table = outbox.table.strip_suffix("event").unwrap();
    outbox.number(format!("SELECT COUNT(*) FROM {table}inbox_seen")).await
}

/// There is no inbox under this name.
fn nowhere(host: &Host) -> Names {
    match host {
        Host::Postgres(_) => Names::schema("no such schema").unwrap(),
        Host::Mysql(_) | Host::Sqlite(..) => Names::prefix("no_such_").unwrap(),
    }
}

fn ids() -> Vec<EventId> {
    (0..MANY).map(|_| EventId::generate()).collect()
}

fn arrival(event_id: EventId) -> Arrival {
    Arrival {
        key: Some("it's a key".to_owned()),
        position: Some(42),
        epoch: Some(7),
        ..Arrival::new(event_id)
    }
}

/// The story, once for every library; `$begin` begins a transaction, `$on` is what the inbox is given of it, and it ends by `commit` or `rollback`.
macro_rules! story {
    ($outbox:expr, $begin:expr, $transaction:ident => $on:expr) => {{
        let outbox: &TestOutbox = $outbox;
        let inbox = Inbox::named(outbox.names.clone());
        let ids = ids();

        #[allow(unused_mut)]
        let mut $transaction = $begin;
        assert_eq!(inbox.once($on, "billing", ids[0]).await.unwrap(), Once::First);
        assert!(inbox.once_many($on, "billing", &ids[1..]).await.unwrap().iter().all(|one| one.is_first()));
        assert_eq!(inbox.follow($on, "billing", &arrival(ids[0])).await.unwrap(), Order::InOrder);
        $transaction.rollback().await.unwrap();
        assert_eq!(seen(outbox).await, 0);

        #[allow(unused_mut)]
        let mut $transaction = $begin;
        assert_eq!(inbox.once($on, "billing", ids[0]).await.unwrap(), Once::First);
        assert_eq!(inbox.once($on, "billing", ids[0]).await.unwrap(), Once::Seen);
        let answers = inbox.once_many($on, "billing", &ids).await.unwrap();
        assert_eq!(answers.iter().filter(|one| one.is_first()).count(), MANY - 1);
        assert_eq!(answers[0], Once::Seen);
        assert_eq!(inbox.follow($on, "billing", &arrival(ids[0])).await.unwrap(), Order::InOrder);
        assert_eq!(inbox.follow($on, "billing", &arrival(ids[0])).await.unwrap(), Order::Duplicate);
        assert_eq!(inbox.follow($on, "billing", &arrival(ids[1])).await.unwrap(), Order::Behind { last: 42 });
        $transaction.commit().await.unwrap();
        assert_eq!(seen(outbox).await, MANY as i64);

        #[allow(unused_mut)]
        let mut $transaction = $begin;
        let error = inbox.once($on, "", ids[0]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert_eq!(inbox.once($on, "billing", ids[0]).await.unwrap(), Once::Seen);
        let nowhere = Inbox::named(nowhere(&outbox.host));
        let error = nowhere.once($on, "billing", ids[0]).await.unwrap_err();
        assert!(error.to_string().contains("once on inbox_seen: "), "{error}");
        $transaction.rollback().await.unwrap();
    }};
}

#[cfg(feature = "tokio-postgres")]
mod through_tokio_postgres {
    use super::*;

    async fn story(server: Server) {
        let Some(outbox) = with_inbox(TestOutbox::postgres(server).await).await else { return };
        outbox
            .with(async {
                let mut client = crate::tokio_postgres::connect(&outbox.url).await;
                story!(&outbox, client.transaction().await.unwrap(), transaction => &transaction);
            })
            .await;
    }

    #[tokio::test]
    async fn postgres15() {
        story(Server::Postgres15).await;
    }

    #[tokio::test]
    async fn postgres18() {
        story(Server::Postgres18).await;
    }
}

#[cfg(feature = "sea-orm")]
mod through_sea_orm {
    use sea_orm::{ConnectOptions, Database, TransactionTrait as _};

    use super::*;

    async fn story(outbox: Option<TestOutbox>) {
        let Some(outbox) = with_inbox(outbox).await else { return };
        outbox
            .with(async {
                let mut options = ConnectOptions::new(&outbox.url);
                options.sqlx_logging(false);
                let database = Database::connect(options).await.unwrap();
                story!(&outbox, database.begin().await.unwrap(), transaction => &transaction);
                database.close().await.unwrap();
            })
            .await;
    }

    #[tokio::test]
    async fn postgres15() {
        story(TestOutbox::postgres(Server::Postgres15).await).await;
    }

    #[tokio::test]
    async fn postgres18() {
        story(TestOutbox::postgres(Server::Postgres18).await).await;
    }

    #[tokio::test]
    async fn mariadb() {
        story(TestOutbox::mysql(Server::Mariadb).await).await;
    }

    #[tokio::test]
    async fn sqlite() {
        story(Some(TestOutbox::sqlite().await)).await;
    }
}

#[cfg(feature = "diesel-async")]
mod through_diesel_async {
    use diesel_async::{AnsiTransactionManager, AsyncConnection, AsyncMysqlConnection, AsyncPgConnection};

    use super::*;

    /// A transaction that a test can end where it likes; diesel's own ends with a closure.
    struct Begun<C>(C);

    /// The two have no trait in common that a function could name.
    macro_rules! begun {
        ($connection:ty) => {
            impl Begun<$connection> {
                async fn begin(url: &str) -> Self {
                    use diesel_async::TransactionManager as _;
                    let mut connection = <$connection>::establish(url).await.unwrap();
                    AnsiTransactionManager::begin_transaction(&mut connection).await.unwrap();
                    Self(connection)
                }

                async fn commit(mut self) -> diesel::QueryResult<()> {
                    use diesel_async::TransactionManager as _;
                    AnsiTransactionManager::commit_transaction(&mut self.0).await
                }

                async fn rollback(mut self) -> diesel::QueryResult<()> {
                    use diesel_async::TransactionManager as _;
                    AnsiTransactionManager::rollback_transaction(&mut self.0).await
                }
            }
        };
    }

    begun!(AsyncPgConnection);
    begun!(AsyncMysqlConnection);

    macro_rules! through {
        ($connection:ty, $outbox:expr) => {
            let Some(outbox) = with_inbox($outbox).await else { return };
            outbox
                .with(async {
                    let url = outbox.url.as_str();
                    story!(&outbox, Begun::<$connection>::begin(url).await, transaction => &mut transaction.0);
                    // Outside a transaction nothing is written.
                    let mut bare = <$connection>::establish(url).await.unwrap();
                    let inbox = Inbox::named(outbox.names.clone());
                    let error = inbox.once(&mut bare, "billing", EventId::generate()).await.unwrap_err();
                    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
                    assert!(error.to_string().contains("no transaction is open"), "{error}");
                })
                .await;
        };
    }

    #[tokio::test]
    async fn postgres15() {
        through!(AsyncPgConnection, TestOutbox::postgres(Server::Postgres15).await);
    }

    #[tokio::test]
    async fn postgres18() {
        through!(AsyncPgConnection, TestOutbox::postgres(Server::Postgres18).await);
    }

    #[tokio::test]
    async fn mariadb() {
        through!(AsyncMysqlConnection, TestOutbox::mysql(Server::Mariadb).await);
    }
}
