//! A projection rebuilt by several workers, each claiming ranges of the event log.
//!
//! The log is cut into ranges, one row each. A worker claims a range with a lease, projects its events, and marks it
//! done in the transaction that writes the projection, if the range is still its own. One worker dies on
//! the way: its lease ends, and another rebuilds its range.
//!
//! Run it: `cargo run --example projection_rebuild`

use std::time::Duration;

use anyhow::Result;
use sendoff::claim::{ClaimSpec, Claimable, Table, col, now, now_plus};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteTable};
use sqlx::{Executor as _, SqlitePool};

const EVENTS: i64 = 5_000;
const RANGE: i64 = 100;
const WORKERS: usize = 4;
/// Short, so that the example does not keep its reader waiting for the dead worker's range.
const LEASE: Duration = Duration::from_millis(500);

/// A claimed range. `epoch` rises with every claim: who holds an older one has lost the range.
#[derive(sqlx::FromRow)]
struct Range {
    first: i64,
    last: i64,
    epoch: i64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("log.db").display());
    let host = SqlitePool::connect(&url).await?;
    prepare(&host).await?;

    let database = SqliteDatabase::connect(&url).await?;
    let ranges = database.table::<Range>(Table::new("ranges", ["first"])?).await?;
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let dies = number == 0;
        workers.push(tokio::spawn(worker(ranges.clone(), host.clone(), dies)));
    }
    for worker in workers {
        worker.await??;
    }
    let (projected, twice): (i64, i64) =
        sqlx::query_as("SELECT count(*), coalesce(sum(times > 1), 0) FROM projection")
            .fetch_one(&host)
            .await?;
    println!("projected {projected} of {EVENTS} events, {twice} twice");
    Ok(())
}

async fn prepare(host: &SqlitePool) -> Result<()> {
    host.execute(
        "CREATE TABLE ranges (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, epoch INTEGER NOT NULL DEFAULT 0, \
             lease_until INTEGER, done INTEGER NOT NULL DEFAULT 0); \
         CREATE TABLE projection (event INTEGER PRIMARY KEY, times INTEGER NOT NULL)",
    )
    .await?;
    for first in (1..=EVENTS).step_by(usize::try_from(RANGE)?) {
        sqlx::query("INSERT INTO ranges (first, last) VALUES (?, ?)")
            .bind(first)
            .bind(first + RANGE - 1)
            .execute(host)
            .await?;
    }
    Ok(())
}

async fn worker(ranges: SqliteTable<Range>, host: SqlitePool, dies: bool) -> Result<()> {
    let free = col("lease_until").is_null().or(col("lease_until").lt(now()));
    let spec = ClaimSpec::on("ranges")
        .eligible(col("done").eq(0).and(free))
        .set("lease_until", now_plus(LEASE))
        .add("epoch", 1)
        .order_by("first")
        .limit(1)
        .build()?;
    loop {
        let Some(range) = ranges.claim(&spec).await?.pop() else {
            let left: i64 =
                sqlx::query_scalar("SELECT count(*) FROM ranges WHERE done = 0").fetch_one(&host).await?;
            if left == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await; // somebody is at it, or has died at it
            continue;
        };
        if dies {
            return Ok(()); // with a range in hand
        }
        project(&host, &range).await?;
    }
}

/// Writes the projection and the mark together, fenced by the epoch: late is as good as never.
async fn project(host: &SqlitePool, range: &Range) -> Result<()> {
    let mut transaction = host.begin_with("BEGIN IMMEDIATE").await?;
    let marked = sqlx::query("UPDATE ranges SET done = 1 WHERE first = ? AND epoch = ? AND done = 0")
        .bind(range.first)
        .bind(range.epoch)
        .execute(&mut *transaction)
        .await?
        .rows_affected();
    if marked == 0 {
        return Ok(()); // the lease ran out, and somebody else has it now
    }
    for event in range.first..=range.last {
        sqlx::query(
            "INSERT INTO projection VALUES (?, 1) ON CONFLICT (event) DO UPDATE SET times = times + 1",
        )
        .bind(event)
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await?;
    Ok(())
}
