//! A service that writes its orders and their events in one transaction, and relays the events itself.
//!
//! Three orders are committed and one is rolled back; three events are delivered.
//!
//! Run it: `cargo run -p sendoff-cli --example orders`

use std::sync::Arc;

use anyhow::Result;
use sendoff::stores::Migration;
use sendoff::stores::sqlite::{SqliteDatabase, SqliteOutbox};
use sendoff::{Delivery, Event, NewEvent, Outbox};
use sendoff_relay::{Relay, TargetConfig};
use sendoff_sinks::Handler;
use sqlx::{Executor as _, SqlitePool};
use tokio::sync::mpsc;

#[derive(serde::Serialize)]
struct Order {
    id: String,
    total: u32,
}

/// The order and its event, or neither.
async fn place(pool: &SqlitePool, order: &Order) -> Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query("INSERT INTO orders (id, total) VALUES (?, ?)")
        .bind(&order.id)
        .bind(order.total)
        .execute(&mut *transaction)
        .await?;
    let event = NewEvent::new("orders.placed").key(&order.id).json(order)?;
    Outbox::new().enqueue(&mut transaction, event).await?;
    transaction.commit().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("shop.db").display());

    // At the start of the service: its tables.
    let database = SqliteDatabase::connect(&url).await?;
    Migration::new(database.clone())?.run().await?;
    let pool = SqlitePool::connect(&url).await?;
    pool.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER NOT NULL CHECK (total > 0))")
        .await?;

    // The relay: any number of services may have one, on any number of machines.
    let (delivered, mut arrived) = mpsc::channel(16);
    let sink = Handler::new(move |event: Event| {
        let delivered = delivered.clone();
        async move {
            match delivered.send(event).await {
                Ok(()) => Delivery::Delivered,
                Err(error) => Delivery::retry(error.to_string()),
            }
        }
    });
    let store = Arc::new(SqliteOutbox::open(database).await?);
    let relay = Relay::new(store).target(TargetConfig::new("default"), Arc::new(sink));
    let handle = relay.handle();
    let (stop, told_to_stop) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(relay.run(async {
        let _ = told_to_stop.await;
    }));

    for (id, total) in [("order-1", 10), ("order-2", 20), ("order-3", 0), ("order-4", 40)] {
        let order = Order { id: id.to_owned(), total };
        match place(&pool, &order).await {
            // It would be found within a quarter of a second; so it is at once.
            Ok(()) => handle.bell().ring(),
            Err(error) => println!("{id} is rolled back: {error}"),
        }
    }
    for _ in 0..3 {
        if let Some(event) = arrived.recv().await {
            println!("{} {}", event.topic, String::from_utf8_lossy(&event.payload));
        }
    }

    // What is in flight is finished and settled, and the lanes are given back.
    let _ = stop.send(());
    running.await??;
    println!("{} published", handle.figures()["default"].published);
    Ok(())
}
