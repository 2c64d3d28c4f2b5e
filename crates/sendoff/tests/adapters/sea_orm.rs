//! A SeaORM transaction, whatever the database.

use sea_orm::{ConnectOptions, Database, TransactionTrait as _};

use crate::outboxes::TestOutbox;
use crate::servers::Server;
use crate::{assert_holds, assert_rejected, hostile, many, paired};

async fn events_are_there_if_and_only_if_the_transaction_commits(outbox: Option<TestOutbox>) {
    let Some(outbox) = outbox else { return };
    outbox
        .with(async {
            let mut options = ConnectOptions::new(&outbox.url);
            options.sqlx_logging(false);
            let database = Database::connect(options).await.unwrap();
            let writer = outbox.outbox();

            let transaction = database.begin().await.unwrap();
            writer.enqueue(&transaction, hostile()).await.unwrap();
            writer.enqueue_all(&transaction, many()).await.unwrap();
            transaction.rollback().await.unwrap();
            assert_eq!(outbox.rows().await, 0);

            let transaction = database.begin().await.unwrap();
            let (one, all) = (hostile(), many());
            let mut sent = vec![(writer.enqueue(&transaction, one.clone()).await.unwrap(), one)];
            sent.extend(paired(writer.enqueue_all(&transaction, all.clone()).await.unwrap(), all));
            assert_eq!(outbox.rows().await, 0, "not before the commit");
            transaction.commit().await.unwrap();

            let transaction = database.begin().await.unwrap();
            assert_rejected(writer.enqueue(&transaction, sent[0].1.clone()).await);
            transaction.rollback().await.unwrap();
            assert_holds(&outbox, &sent).await;
            database.close().await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn postgres15() {
    let outbox = TestOutbox::postgres(Server::Postgres15).await;
    events_are_there_if_and_only_if_the_transaction_commits(outbox).await;
}

#[tokio::test]
async fn postgres18() {
    let outbox = TestOutbox::postgres(Server::Postgres18).await;
    events_are_there_if_and_only_if_the_transaction_commits(outbox).await;
}

#[tokio::test]
async fn mariadb() {
    let outbox = TestOutbox::mysql(Server::Mariadb).await;
    events_are_there_if_and_only_if_the_transaction_commits(outbox).await;
}

#[tokio::test]
async fn sqlite() {
    let outbox = TestOutbox::sqlite().await;
    events_are_there_if_and_only_if_the_transaction_commits(Some(outbox)).await;
}
