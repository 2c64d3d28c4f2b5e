//! How an application's own tests use the memory store: no server and no file, and the same worker as in production.
//!
//! Run it: `cargo run -p sendoff-cli --example memory_store`

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use sendoff::NewEvent;
use sendoff::outbox::{Cause, Failure, Inspect as _, Outcome, Worker, WorkerConfig};
use sendoff::stores::memory::MemoryOutbox;

#[tokio::main]
async fn main() -> Result<()> {
    let outbox = MemoryOutbox::new()?;

    // What is committed is there; what is dropped never was.
    let mut transaction = outbox.begin();
    transaction.enqueue(&[
        NewEvent::new("orders.placed").key("order-7").payload("1"),
        NewEvent::new("orders.paid").key("order-7").payload("2"),
    ])?;
    transaction.commit()?;
    let mut transaction = outbox.begin();
    transaction.enqueue(&[NewEvent::new("orders.placed").key("order-8")])?;
    drop(transaction);

    // A worker hands events out, as in production.
    let worker = Worker::start(Arc::new(outbox.clone()), WorkerConfig::default()).await?;
    let claimed = worker.claim(10).await?;
    let topics: Vec<&str> = claimed.iter().map(|claimed| claimed.event.topic.as_str()).collect();
    ensure!(topics == ["orders.placed", "orders.paid"], "{topics:?}");

    // The first fails: the second waits behind it, and both come again in their order.
    let failure = Failure::new(Cause::Transient, "the mail server is busy");
    let retry = Outcome::Retry { after: Duration::from_millis(20), failure };
    worker.settle(&[(claimed[0].receipt(), retry), (claimed[1].receipt(), Outcome::Release)]).await?;
    let again = loop {
        let again = worker.claim(10).await?;
        if !again.is_empty() {
            break again;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let payloads: Vec<&[u8]> = again.iter().map(|claimed| claimed.event.payload.as_slice()).collect();
    ensure!(payloads == [b"1", b"2"], "{payloads:?}");

    let published: Vec<_> = again.iter().map(|claimed| (claimed.receipt(), Outcome::Published)).collect();
    ensure!(worker.settle(&published).await?.applied == 2);
    worker.stop(Duration::ZERO).await?;
    ensure!(outbox.counts().await?.targets.iter().all(|target| target.unprocessed == 0));
    println!("delivered in order, after a retry");
    Ok(())
}
