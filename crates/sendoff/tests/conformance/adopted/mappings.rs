//! A mapping that does not fit is refused, and what the error says mends it.

use std::time::Duration;

use sendoff::StoreErrorKind;
use sendoff::adopted::Stamp;
use sendoff::outbox::{LaneSet, OnExhausted, Source as _, WorkerConfig};

use super::host::{Host, Kind, Pool};

fn owner(kind: Kind) -> &'static str {
    if kind == Kind::Framework { "locked_by" } else { "ClaimedBy" }
}

pub(super) async fn a_missing_column_is_named_with_the_statement_that_adds_it(host: Host) {
    drop(host.adopt().await);
    let mapping = || host.mapping().token("claim_token");
    let error = host.try_adopt(mapping()).await.unwrap_err();
    assert!(error.to_string().contains("no column `claim_token`; run: ALTER TABLE"), "{error}");
    host.mend(&error).await;
    host.fill(3).await;
    let adopted = host.try_adopt(mapping()).await.expect("what the error says mends it");
    let batch = adopted.claim_batch("w", 3, Duration::from_secs(30)).await.unwrap();
    assert_eq!(batch.rows.len(), 3);
    let column = host.pool.quote("claim_token");
    let held = host.pool.texts(&format!("SELECT 'x' FROM {} WHERE {column} IS NOT NULL", host.table)).await;
    assert_eq!(held.len(), 3, "the token is in a column of its own");

    let error = host.try_adopt(host.mapping().payload("paylod")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("no column `paylod`"), "{error}");
}

pub(super) async fn a_column_of_the_wrong_type_is_named_with_the_statement_that_changes_it(host: Host) {
    drop(host.adopt().await);
    // A number where a text is wanted.
    let table = &host.table;
    let wrong = host.pool.quote("wrong");
    host.pool.run(&format!("ALTER TABLE {table} ADD COLUMN {wrong} INTEGER")).await;
    let mapping = host.mapping().error("wrong");
    let error = host.try_adopt(mapping.clone()).await.unwrap_err();
    assert!(error.to_string().contains("column `wrong` is an integer"), "{error}");
    host.mend(&error).await;
    match host.pool {
        // Another column was made, and is to be mapped.
        Pool::Sqlite(_) => drop(host.try_adopt(mapping.error("sendoff_wrong")).await.unwrap()),
        _ => drop(host.try_adopt(mapping).await.expect("what the error says mends it")),
    }
    let error =
        host.try_adopt(host.mapping().stamp(Stamp::Counter(owner(host.kind).to_owned()))).await.unwrap_err();
    assert!(error.to_string().contains("cannot take"), "{error}");
}

pub(super) async fn an_id_that_is_not_unique_is_refused_with_the_index_that_makes_it_so(host: Host) {
    drop(host.adopt().await);
    let table = &host.table;
    let column = host.pool.quote("number");
    host.pool.run(&format!("ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")).await;
    let mut mapping = host.mapping();
    mapping = mapping.id("number");
    let error = host.try_adopt(mapping.clone()).await.unwrap_err();
    assert!(error.to_string().contains("run: CREATE UNIQUE INDEX"), "{error}");
    host.mend(&error).await;
    host.try_adopt(mapping).await.expect("what the error says mends it");
}

pub(super) async fn a_missing_index_is_named_with_the_statement_that_makes_it(host: Host) {
    let own = format!("{}_status", host.table);
    match (&host.pool, host.kind) {
        (_, Kind::Framework) => {}
        (Pool::Mysql(_), _) => host.pool.run(&format!("DROP INDEX {own} ON {}", host.table)).await,
        _ => host.pool.run(&format!("DROP INDEX \"{own}\"")).await,
    }
    let refused = host.try_adopt(host.mapping()).await.unwrap_err();
    assert!(refused.to_string().contains("run: CREATE INDEX"), "{refused}");
    host.mend(&refused).await;
    host.try_adopt(host.mapping()).await.expect("what the error says mends it");
}

pub(super) async fn what_cannot_work_is_refused(host: Host) {
    let adopted = host.adopt().await;
    for (config, part) in [
        (WorkerConfig { exclusive: true, ..WorkerConfig::default() }, "no lanes"),
        (WorkerConfig { lanes: LaneSet::NONE, ..WorkerConfig::default() }, "no lane"),
        (WorkerConfig { on_exhausted: OnExhausted::Block, ..WorkerConfig::default() }, "skipped"),
        (WorkerConfig { lease: Duration::from_millis(1), ..WorkerConfig::default() }, "100 ms"),
    ] {
        let error = adopted.start(config).await.unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let nowhere = sendoff::adopted::presets::governance("no_such_table").unwrap();
    let error = host.try_adopt(nowhere).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("no such table"), "{error}");
}
