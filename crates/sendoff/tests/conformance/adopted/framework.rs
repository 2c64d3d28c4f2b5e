//! The framework's repository by its own names.

use std::collections::BTreeSet;
use std::time::Duration;

use sendoff::StoreError;
use sendoff::adopted::{Answer, Batch, Framework, Listing};
use sendoff::outbox::Outcome;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use uuid::Uuid;

use super::host::{Host, Pool};

async fn try_open(host: &Host) -> Result<Framework, StoreError> {
    let (url, table) = (&host.url, &host.table);
    match host.pool {
        Pool::Postgres(_) => Framework::open(&PostgresDatabase::connect(url).await?, table).await,
        Pool::Mysql(_) => Framework::open(&MysqlDatabase::connect(url).await?, table).await,
        Pool::Sqlite(_) => Framework::open(&SqliteDatabase::connect(url).await?, table).await,
    }
}

/// The framework's own table lacks an index for claims: it is made as the error says.
async fn open(host: &Host) -> Framework {
    if let Err(error) = try_open(host).await {
        host.mend(&error).await;
    }
    try_open(host).await.unwrap()
}

fn claimed(batch: &Batch) -> Vec<Uuid> {
    batch.rows.iter().map(|row| row.event.as_ref().unwrap().event_id.0).collect()
}

fn found(listed: Vec<Listing>) -> BTreeSet<Uuid> {
    listed.into_iter().map(|row| row.event.unwrap().event_id.0).collect()
}

pub(super) async fn claim_batch_takes_what_is_eligible_for_its_broker(host: Host) {
    let ids = host.fill(9).await;
    let (broker, table) = (host.pool.quote("target_broker"), &host.table);
    let others = ids[..4].iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(", ");
    host.pool
        .run(&format!("UPDATE {table} SET {broker} = 'other' WHERE {} IN ({others})", host.pool.quote("id")))
        .await;
    let framework = open(&host).await;
    let mine = framework.claim_batch("worker-1", 3, Some("default")).await.unwrap();
    assert_eq!(claimed(&mine), ids[4..7], "in order, no more than wanted, of one broker");
    let rest = framework.claim_batch("worker-2", 100, None).await.unwrap();
    let expected: BTreeSet<Uuid> = ids[..4].iter().chain(&ids[7..]).copied().collect();
    assert_eq!(claimed(&rest).into_iter().collect::<BTreeSet<_>>(), expected, "of every broker");
    assert!(framework.claim_batch("worker-3", 100, None).await.unwrap().rows.is_empty());
    for id in ids {
        let row = host.row(id).await;
        assert_eq!(row.status, "processing");
        assert!(row.owner.is_some_and(|owner| owner.starts_with("worker-")));
    }
}

pub(super) async fn each_find_reads_its_rows_and_changes_none(host: Host) {
    let ids = host.fill(6).await;
    let framework = open(&host).await;
    let batch = framework.claim_batch("worker-1", 4, None).await.unwrap();
    let keys: Vec<_> = batch.rows.iter().map(|row| row.key.clone()).collect();
    let later = Outcome::retry(Duration::from_secs(600), "later");
    let settled = [Outcome::Published, later, Outcome::rejected("never")];
    for (key, outcome) in keys.iter().zip(&settled) {
        let answers =
            framework.rows().settle_batch(&batch, std::slice::from_ref(key), outcome).await.unwrap();
        assert_eq!(answers, [Answer::Applied]);
    }
    let before = host.rows().await;
    let of = |places: &[usize]| places.iter().map(|place| ids[*place]).collect::<BTreeSet<_>>();
    assert_eq!(found(framework.find_published(10).await.unwrap()), of(&[0]));
    assert_eq!(found(framework.find_failed(10).await.unwrap()), of(&[1]));
    assert_eq!(found(framework.find_abandoned(10).await.unwrap()), of(&[2]));
    assert_eq!(found(framework.find_processing(10).await.unwrap()), of(&[3]));
    assert_eq!(found(framework.find_unprocessed(10).await.unwrap()), of(&[4, 5]));
    assert_eq!(framework.find_unprocessed(1).await.unwrap().len(), 1, "no more than wanted");
    assert_eq!(host.rows().await, before, "they read only");
}
