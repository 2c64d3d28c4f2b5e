//! A diesel-async connection, inside `transaction`.

use diesel_async::{AsyncConnection, AsyncMysqlConnection, AsyncPgConnection};
use sendoff::StoreError;

use crate::outboxes::TestOutbox;
use crate::servers::Server;
use crate::{assert_holds, assert_rejected, hostile, many, paired};

#[derive(Debug)]
enum Failed {
    Enqueue(StoreError),
    Diesel,
    OnPurpose,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Enqueue(error)
    }
}

impl From<diesel::result::Error> for Failed {
    fn from(_: diesel::result::Error) -> Self {
        Self::Diesel
    }
}

/// The same for both databases; their connections have no trait of ours in common that a function could name.
macro_rules! events_are_there_if_and_only_if_the_transaction_commits {
    ($connection:ty, $outbox:expr) => {
        let Some(outbox) = $outbox else { return };
        outbox
            .with(async {
                let mut connection = <$connection>::establish(&outbox.url).await.unwrap();
                let writer = outbox.outbox();

                let rolled_back = connection
                    .transaction(async |connection| {
                        writer.enqueue(&mut *connection, hostile()).await?;
                        writer.enqueue_all(connection, many()).await?;
                        Err::<(), _>(Failed::OnPurpose)
                    })
                    .await;
                assert!(matches!(rolled_back, Err(Failed::OnPurpose)), "{rolled_back:?}");
                assert_eq!(outbox.rows().await, 0);

                let (one, all) = (hostile(), many());
                let sent = connection
                    .transaction(async |connection| {
                        let mut sent = vec![(writer.enqueue(&mut *connection, one.clone()).await?, one)];
                        sent.extend(paired(writer.enqueue_all(connection, all.clone()).await?, all));
                        assert_eq!(outbox.rows().await, 0, "not before the commit");
                        Ok::<_, Failed>(sent)
                    })
                    .await
                    .unwrap();

                let again = sent[0].1.clone();
                let twice = connection
                    .transaction(async |connection| Ok::<_, Failed>(writer.enqueue(connection, again).await?))
                    .await;
                let Err(Failed::Enqueue(error)) = twice else { panic!("{twice:?}") };
                assert_rejected(Err::<(), _>(error));
                // Outside `transaction` nothing is written.
                assert_rejected(writer.enqueue(&mut connection, hostile()).await);
                assert_holds(&outbox, &sent).await;
            })
            .await;
    };
}

#[tokio::test]
async fn postgres15() {
    events_are_there_if_and_only_if_the_transaction_commits!(
        AsyncPgConnection,
        TestOutbox::postgres(Server::Postgres15).await
    );
}

#[tokio::test]
async fn postgres18() {
    events_are_there_if_and_only_if_the_transaction_commits!(
        AsyncPgConnection,
        TestOutbox::postgres(Server::Postgres18).await
    );
}

#[tokio::test]
async fn mariadb() {
    events_are_there_if_and_only_if_the_transaction_commits!(
        AsyncMysqlConnection,
        TestOutbox::mysql(Server::Mariadb).await
    );
}
