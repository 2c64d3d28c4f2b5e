//! A consumer that books each payment once, though its broker delivers some of them more than one time.
//!
//! Four payments arrive: one of them twice, one a second time because the consumer failed before its commit, and one that had been
//! set aside and comes after a later one of its key.
//!
//! Run it: `cargo run --example inbox`

use anyhow::{Result, bail};
use sendoff::inbox::{Arrival, Inbox, Once, Order, SqlInbox};
use sendoff::stores::sqlite::SqliteDatabase;
use sqlx::{Executor as _, SqlitePool};

/// What the broker hands over.
struct Delivery {
    headers: Vec<(&'static str, String)>,
    amount: i64,
    /// The consumer fails before its commit, the first time.
    fails: bool,
}

/// Books a payment, or finds that it is booked. The broker is told that the payment is handled if this is `Ok`, and not otherwise.
async fn handle(pool: &SqlitePool, delivery: &Delivery, fails: bool) -> Result<Once> {
    let arrival = Arrival::from_headers(delivery.headers.iter().map(|(name, value)| (*name, value)))?;
    let inbox = Inbox::new();
    let mut transaction = pool.begin().await?;
    let once = inbox.once(&mut transaction, "bookkeeping", arrival.event_id).await?;
    if once == Once::First {
        if let Order::Behind { last } = inbox.follow(&mut transaction, "bookkeeping", &arrival).await? {
            println!("{} comes after {last} of its key", arrival.position.unwrap_or_default());
        }
        sqlx::query("INSERT INTO bookings (amount) VALUES (?)")
            .bind(delivery.amount)
            .execute(&mut *transaction)
            .await?;
    }
    if fails {
        bail!("the machine is switched off");
    }
    transaction.commit().await?;
    Ok(once)
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("books.db").display());

    // At the start of the consumer: its tables.
    let database = SqliteDatabase::connect(&url).await?;
    SqlInbox::migration(database.clone())?.run().await?;
    let pool = SqlitePool::connect(&url).await?;
    pool.execute("CREATE TABLE bookings (amount INTEGER NOT NULL)").await?;

    let (mut deliveries, mut seen) = (0, 0);
    for delivery in deliveries_of_a_broker() {
        // Until it is acknowledged, it is delivered again.
        let mut fails = delivery.fails;
        loop {
            deliveries += 1;
            match handle(&pool, &delivery, fails).await {
                Ok(once) => {
                    seen += i32::from(once == Once::Seen);
                    break;
                }
                Err(_) => fails = false,
            }
        }
    }
    let (bookings, sum): (i64, i64) =
        sqlx::query_as("SELECT COUNT(*), SUM(amount) FROM bookings").fetch_one(&pool).await?;
    println!("{deliveries} deliveries, {seen} seen before, {bookings} bookings of {sum}");
    Ok(())
}

/// As a relay sends them over Kafka.
fn deliveries_of_a_broker() -> Vec<Delivery> {
    let payment = |number: i64, position: i64, epoch: i64, fails: bool| Delivery {
        headers: vec![
            ("ce_id", format!("0190163d-8694-739b-aea5-00000000000{number}")),
            ("ce_source", "/sendoff/default".to_owned()),
            ("ce_partitionkey", "account-7".to_owned()),
            ("ce_sendoffposition", position.to_string()),
            ("ce_sendoffepoch", epoch.to_string()),
        ],
        amount: number * 10,
        fails,
    };
    vec![
        payment(1, 1, 1, false),
        payment(3, 3, 1, true),
        payment(1, 1, 2, false),
        payment(4, 4, 2, false),
        // Redriven.
        payment(2, 2, 2, false),
    ]
}
