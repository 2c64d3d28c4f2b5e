//! A tokio-postgres transaction.

use sendoff::{NewEvent, Outbox, StoreErrorKind};
use tokio_postgres::{Client, Config, NoTls};

use crate::outboxes::TestOutbox;
use crate::servers::Server;
use crate::{assert_holds, assert_rejected, hostile, many, paired};

pub(crate) async fn connect(url: &str) -> Client {
    let config: Config = url.parse().unwrap();
    let port = config.get_ports()[0];
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// `through` is where the host's own connection goes.
async fn events_are_there_if_and_only_if_the_transaction_commits(server: Server, through: Option<Server>) {
    if through.is_some_and(|pooler| pooler.is_missing() && !pooler.is_required()) {
        eprintln!("skipped, no pooler");
        return;
    }
    let Some(outbox) = TestOutbox::postgres(server).await else { return };
    let url = through.map_or_else(|| outbox.url.clone(), Server::url);
    outbox
        .with(async {
            let mut client = connect(&url).await;
            let writer = outbox.outbox();

            let transaction = client.transaction().await.unwrap();
            writer.enqueue(&transaction, hostile()).await.unwrap();
            writer.enqueue_all(&transaction, many()).await.unwrap();
            transaction.rollback().await.unwrap();
            assert_eq!(outbox.rows().await, 0);

            let transaction = client.transaction().await.unwrap();
            let (one, all) = (hostile(), many());
            let mut sent = vec![(writer.enqueue(&transaction, one.clone()).await.unwrap(), one)];
            sent.extend(paired(writer.enqueue_all(&transaction, all.clone()).await.unwrap(), all));
            assert_eq!(outbox.rows().await, 0, "not before the commit");
            transaction.commit().await.unwrap();

            let transaction = client.transaction().await.unwrap();
            assert_rejected(writer.enqueue(&transaction, sent[0].1.clone()).await);
            drop(transaction);
            assert_holds(&outbox, &sent).await;
        })
        .await;
}

#[tokio::test]
async fn postgres15() {
    events_are_there_if_and_only_if_the_transaction_commits(Server::Postgres15, None).await;
}

#[tokio::test]
async fn postgres18() {
    events_are_there_if_and_only_if_the_transaction_commits(Server::Postgres18, None).await;
}

#[tokio::test]
async fn through_a_pooler() {
    let through = Some(Server::Pgbouncer);
    events_are_there_if_and_only_if_the_transaction_commits(Server::Postgres15, through).await;
}

#[tokio::test]
async fn an_outbox_that_is_not_there_is_a_schema_error() {
    let Some(outbox) = TestOutbox::postgres(Server::Postgres15).await else { return };
    outbox
        .with(async {
            let mut client = connect(&outbox.url).await;
            let transaction = client.transaction().await.unwrap();
            let nowhere = Outbox::named(sendoff::stores::Names::schema("no such schema").unwrap());
            let error = nowhere.enqueue(&transaction, NewEvent::new("t")).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Schema, "{error:?}");
        })
        .await;
}
