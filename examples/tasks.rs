//! A shop that sends a mail for each order, and makes one report however often it is asked for.
//!
//! Three orders are committed, and one is rolled back. The mail server is away when a mail is first tried, and one address is wrong: two mails are sent, one is given up, and
//! the report is made once.
//!
//! Run it: `cargo run --example tasks`

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use sendoff::stores::SqlTasks;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::tasks::{
    Context, Created, Inspect as _, Listing, NewTask, RetryPolicy, Runner, RunnerConfig, TaskError,
    TaskStatus, Tasks,
};
use sqlx::{Executor as _, SqlitePool};

#[derive(serde::Serialize, serde::Deserialize)]
struct Mail {
    to: String,
}

/// The order, its mail and the report, or none of them.
async fn place(pool: &SqlitePool, order: &str, to: &str, is_paid: bool) -> Result<Option<Created>> {
    let mut transaction = pool.begin().await?;
    sqlx::query("INSERT INTO orders (id) VALUES (?)").bind(order).execute(&mut *transaction).await?;
    let mail = NewTask::new("mail.send").json(&Mail { to: to.to_owned() })?.attempts_max(5);
    Tasks::new().submit(&mut transaction, mail).await?;
    // Of all that ask, one gets it; the others are told which task it is.
    let report = NewTask::new("report.make").json(&())?.unique_key("report of today").priority(-1);
    let report = Tasks::new().submit(&mut transaction, report).await?;
    if !is_paid {
        transaction.rollback().await?;
        return Ok(None);
    }
    transaction.commit().await?;
    Ok(Some(report))
}

/// What does the work.
fn runner(store: Arc<SqlTasks<SqliteDatabase>>) -> Runner {
    let retry = RetryPolicy { first: Duration::from_millis(50), ..RetryPolicy::default() };
    Runner::new(store)
        .config(RunnerConfig { name: "shop".to_owned(), concurrency: 4, retry, ..RunnerConfig::default() })
        .handle("mail.send", |context: Context, mail: Mail| async move {
            if context.attempt() == 1 {
                return Err(TaskError::retry("the mail server is away"));
            }
            if !mail.to.contains('@') {
                return Err(TaskError::fatal(format!("{} is no address", mail.to)));
            }
            println!("mail to {}, attempt {}", mail.to, context.attempt());
            Ok(())
        })
        .handle("report.make", |context: Context, (): ()| async move {
            context.progress("half of it").await?;
            Ok(())
        })
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("shop.db").display());

    // At the start of the service: its tables.
    let database = SqliteDatabase::connect(&url).await?;
    SqlTasks::migration(database.clone())?.run().await?;
    let pool = SqlitePool::connect(&url).await?;
    pool.execute("CREATE TABLE orders (id TEXT PRIMARY KEY)").await?;

    let first = place(&pool, "order-1", "a@example.org", true).await?;
    let second = place(&pool, "order-2", "nobody", true).await?;
    anyhow::ensure!(first.map(Created::id) == second.map(Created::id), "one report for both");
    place(&pool, "order-3", "b@example.org", false).await?;
    place(&pool, "order-4", "c@example.org", true).await?;

    // Any number of services may run tasks, on any number of machines.
    let store = Arc::new(SqlTasks::open(database).await?);
    let runner = runner(Arc::clone(&store));
    let (stop, told_to_stop) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(runner.run(async {
        let _ = told_to_stop.await;
    }));

    while store.stats().await?.tasks.iter().any(|count| count.status.is_live()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let _ = stop.send(());
    running.await??;

    for task in store.list(&Listing::of(TaskStatus::Failed)).await? {
        println!("given up: {}", task.error.unwrap_or_default());
    }
    let stats = store.stats().await?;
    let count = |kind, status| stats.count(kind, status);
    println!(
        "{} mails sent, {} given up, {} report",
        count("mail.send", TaskStatus::Completed),
        count("mail.send", TaskStatus::Failed),
        count("report.make", TaskStatus::Completed)
    );
    Ok(())
}
