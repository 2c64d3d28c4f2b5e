//! Through a pooler in transaction mode.

use libtest_mimic::Trial;
use sendoff::StoreErrorKind;
use sendoff::claim::{ClaimSpec, Claimable as _, Record, Value, col};
use sendoff::stores::postgres::{Pooler, PostgresDatabase};
use sendoff::testkit::{ClaimHarness as _, Shape};

use crate::harness::postgres::open_pooled;
use crate::servers::Server;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let server = Some(Server::Pgbouncer);
    vec![
        trial(
            "pgbouncer::an_undeclared_pooler_is_refused".to_owned(),
            server,
            an_undeclared_pooler_is_refused,
        ),
        trial(
            "pgbouncer::a_direct_connection_is_not_refused".to_owned(),
            server,
            a_direct_connection_is_not_refused,
        ),
        trial("pgbouncer::statements_of_many_clients_stay_apart".to_owned(), server, statements_stay_apart),
    ]
}

/// Many at once, so that the pooler is busy: each of them must notice.
async fn an_undeclared_pooler_is_refused() {
    let mut attempts = Vec::new();
    for _ in 0..12 {
        attempts.push(tokio::spawn(async { PostgresDatabase::connect(&Server::Pgbouncer.url()).await }));
    }
    for attempt in attempts {
        let error = attempt.await.unwrap().expect_err("refused");
        assert_eq!(error.kind(), StoreErrorKind::Schema, "{error}");
        assert!(error.to_string().contains("Pooler::Transaction"), "{error}");
    }
}

async fn a_direct_connection_is_not_refused() {
    let direct = Server::Pgbouncer.url_of(1);
    assert!(PostgresDatabase::connect(&direct).await.is_ok());
    assert!(
        PostgresDatabase::connect_through(&direct, Pooler::Transaction).await.is_ok(),
        "slower, but right"
    );
}

/// Eight clients with statements of their own over three server sessions: with the driver's defaults most
/// answers are another client's.
async fn statements_stay_apart() {
    let mut clients = Vec::new();
    for client in 0..8_i64 {
        clients.push(tokio::spawn(async move {
            let store = open_pooled().await;
            let shape = Shape::jobs(&format!("client{client}"));
            let table = store.create(&shape).await;
            let rows: Vec<Vec<Value>> = (0..200).map(|n| Shape::job(client * 1_000 + n, n)).collect();
            store.insert(&shape, &rows).await;
            for n in 0..200 {
                let spec = ClaimSpec::on_table(shape.table.clone())
                    .eligible(col("status").eq("ready"))
                    .set("status", "running")
                    .set("owner", format!("client{client}"))
                    .order_by("rank")
                    .limit(1)
                    .build()
                    .unwrap();
                let claimed: Vec<Record> = table.claim(&spec).await.unwrap();
                assert_eq!(claimed.len(), 1);
                assert_eq!(claimed[0].get("id"), Some(&Value::Int(client * 1_000 + n)));
                assert_eq!(claimed[0].get("owner"), Some(&Value::Text(format!("client{client}"))));
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}
