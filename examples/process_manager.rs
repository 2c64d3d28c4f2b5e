//! A process manager that claims the row its reply is waiting for.
//!
//! An order process asks for a payment and waits; the reply names it by a correlation id. Several
//! managers run, and a broker delivers a reply more than one time, to any of them. Whoever claims the waiting row
//! takes the process's next step, and nobody else does: the look-up and the claim are one.
//!
//! Run it: `cargo run --example process_manager`

use anyhow::Result;
use sendoff::claim::{ClaimSpec, Claimable, Table, col, now};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteTable};
use sqlx::{Executor as _, SqlitePool};

const PROCESSES: i64 = 200;
const MANAGERS: usize = 3;

/// A process as its manager wants to see it.
#[derive(sqlx::FromRow)]
struct Waiting {
    process: i64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("orders.db").display());
    let host = SqlitePool::connect(&url).await?;
    prepare(&host).await?;

    let database = SqliteDatabase::connect(&url).await?;
    let table = database.table::<Waiting>(Table::new("waiting", ["process"])?).await?;
    let mut managers = Vec::new();
    for number in 0..MANAGERS {
        let table = table.clone();
        managers.push(tokio::spawn(manager(format!("manager-{number}"), table)));
    }
    let mut steps = Vec::new();
    for manager in managers {
        steps.extend(manager.await??);
    }
    let taken = steps.len();
    steps.sort_unstable();
    steps.dedup();
    println!("{PROCESSES} replies, {} steps taken, {} taken twice", steps.len(), taken - steps.len());
    Ok(())
}

async fn prepare(host: &SqlitePool) -> Result<()> {
    host.execute(
        "CREATE TABLE waiting (process INTEGER PRIMARY KEY, correlation TEXT NOT NULL, state TEXT NOT NULL, \
         taken_by TEXT, taken_at INTEGER)",
    )
    .await?;
    host.execute("CREATE INDEX waiting_for ON waiting (correlation)").await?;
    for process in 0..PROCESSES {
        sqlx::query("INSERT INTO waiting (process, correlation, state) VALUES (?, ?, 'awaiting payment')")
            .bind(process)
            .bind(format!("payment-{process}"))
            .execute(host)
            .await?;
    }
    Ok(())
}

/// Every manager sees every reply: the worst that a broker can do.
async fn manager(name: String, table: SqliteTable<Waiting>) -> Result<Vec<i64>> {
    let mut steps = Vec::new();
    for reply in 0..PROCESSES {
        let spec = ClaimSpec::on("waiting")
            .eligible(
                col("correlation").eq(format!("payment-{reply}")).and(col("state").eq("awaiting payment")),
            )
            .set("state", "paid")
            .set("taken_by", name.as_str())
            .set("taken_at", now())
            .limit(1)
            .build()?;
        if let Some(waiting) = table.claim(&spec).await?.pop() {
            steps.push(waiting.process); // ship the order, here, and nowhere else
        }
    }
    Ok(steps)
}
