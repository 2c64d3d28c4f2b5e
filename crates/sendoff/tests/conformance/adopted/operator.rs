//! What an operator sees of a host's rows, and that looking changes nothing.

use std::time::{Duration, Instant};

use sendoff::StoreError;
use sendoff::adopted::{Adopted, Misfit, Shadow, Targets};
use sendoff::outbox::{Cause, EventState, Failure, Inspect as _, Outcome};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;

use super::cases::PATIENCE;
use super::host::{Host, Kind};

const LEASE: Duration = Duration::from_secs(30);

fn failure() -> Failure {
    Failure::new(Cause::Rejected, "no such customer")
}

/// The counts, once they are those of now: what waits is not counted at every look. Never is a row counted twice, of so many.
async fn counts(adopted: &Adopted, rows: u64) -> [u64; 6] {
    let mut counts = [0; 6];
    for (count, state) in counts.iter_mut().zip(EventState::ALL) {
        let began = Instant::now();
        let listed = adopted.standing(state, 1_000).await.unwrap().len() as u64;
        loop {
            *count = adopted.counted(state, 1_000).await.unwrap();
            if *count == listed {
                break;
            }
            assert!(*count <= rows && began.elapsed() < PATIENCE, "{state}: {count} of {listed}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    counts
}

pub(super) async fn each_row_stands_in_one_state(host: Host) {
    let adopted = host.adopt().await;
    host.fill(7).await;
    assert_eq!(counts(&adopted, 7).await, [7, 0, 0, 0, 0, 0], "what nobody has taken in waits too");
    let batch = adopted.claim_batch("w", 4, LEASE).await.unwrap();
    let rows: Vec<_> = batch.rows.iter().map(|row| row.key.clone()).collect();
    let retry = Outcome::Retry { after: Duration::from_secs(3_600), failure: failure() };
    for (row, outcome) in rows.iter().zip([Outcome::Published, retry, Outcome::GiveUp { failure: failure() }])
    {
        adopted.settle_batch(&batch, std::slice::from_ref(row), &outcome).await.unwrap();
    }
    adopted.claim_batch("lost", 1, Duration::from_millis(1)).await.unwrap();
    while adopted.counted(EventState::Abandoned, 1).await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(counts(&adopted, 7).await, [2, 1, 1, 1, 1, 1]);

    let processing = adopted.standing(EventState::Processing, 9).await.unwrap().remove(0);
    assert_eq!((processing.key, processing.attempts), (rows[3].clone(), 1));
    assert!(processing.owner.unwrap().starts_with("w#") && processing.due.is_some());
    let failed = adopted.standing(EventState::Failed, 9).await.unwrap().remove(0);
    assert!(failed.owner.is_none() && failed.due.is_some());
    assert!(failed.error.unwrap().contains("no such customer"));
    // ADR-003's table has no column for it, and what is beside it is gone then.
    if host.kind != Kind::Adr003 {
        let dead = adopted.standing(EventState::Dead, 9).await.unwrap().remove(0);
        assert!(dead.error.unwrap().contains("no such customer"));
    }
    let targets = Targets::new(&host.table, [("default".to_owned(), adopted.clone())]);
    // Counted no further than one, it is not taken for all.
    adopted.counted(EventState::Unprocessed, 1).await.unwrap();
    let counts = targets.counts().await.unwrap().targets.remove(0);
    assert_eq!((counts.unprocessed, counts.abandoned, counts.published), (2, 1, 1));
    assert_eq!(counts.oldest.is_some(), host.kind != Kind::Debezium, "only a column says it");
    assert!(targets.workers().await.unwrap().is_empty() && !targets.has_lanes());
    assert!(
        targets.set_paused("default", true, "x").await.unwrap_err().to_string().contains("stop the relay")
    );
}

pub(super) async fn a_shadow_claims_nothing(host: Host) {
    host.fill(1_203).await;
    if host.kind.beside("x").is_some() {
        let misfits = misfits(&host).await.unwrap();
        assert!(misfits[0].run.as_ref().unwrap().starts_with("CREATE TABLE"), "{misfits:?}");
        assert_eq!(shadow(&host, 10_000).await.examined, 1_203, "without the table beside it");
    }
    let adopted = host.adopt().await;
    assert_eq!(misfits(&host).await.unwrap(), []);
    let looked = shadow(&host, 10_000).await;
    assert_eq!((looked.examined, looked.is_whole, looked.first.len()), (1_203, true, 3));
    assert_eq!(looked.topics.values().sum::<u64>(), 1_203);
    assert!(looked.refusals.is_empty() && looked.bytes_max > 0);
    let looked = shadow(&host, 1_000).await;
    assert_eq!((looked.examined, looked.is_whole), (1_000, false), "no more is read than is asked for");
    assert_eq!(adopted.counted(EventState::Unprocessed, 9_999).await.unwrap(), 1_203);
    let batch = adopted.claim_batch("w", 3, LEASE).await.unwrap();
    let rows: Vec<_> = batch.rows.iter().map(|row| row.key.clone()).collect();
    adopted.settle_batch(&batch, &rows[..1], &Outcome::Published).await.unwrap();
    assert_eq!(shadow(&host, 10_000).await.examined, 1_200, "what is claimed or delivered does not wait");
}

macro_rules! at {
    ($host:expr, $database:ident => $do:expr) => {
        match $host.url.split(':').next() {
            Some("mysql") => {
                let $database = MysqlDatabase::connect(&$host.url).await.unwrap();
                $do
            }
            Some("sqlite") => {
                let $database = SqliteDatabase::connect(&$host.url).await.unwrap();
                $do
            }
            _ => {
                let $database = PostgresDatabase::connect(&$host.url).await.unwrap();
                $do
            }
        }
    };
}

async fn misfits(host: &Host) -> Result<Vec<Misfit>, StoreError> {
    let beside = host.kind.beside(&host.table);
    at!(host, database => Adopted::misfits(&database, &host.mapping(), beside.as_ref()).await)
}

async fn shadow(host: &Host, most: u64) -> Shadow {
    let beside = host.kind.beside(&host.table);
    at!(host, database => Adopted::shadow(&database, &host.mapping(), beside.as_ref(), 3, most).await.unwrap())
}
