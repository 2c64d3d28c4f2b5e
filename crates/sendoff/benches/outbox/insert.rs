//! Writing events in a host's transaction, beside a bare INSERT into a table of the same columns with one index.

use std::time::Instant;

use sendoff::NewEvent;
use sqlx::AssertSqlSafe;

use super::{Bench, median, rates};

const ROUNDS: usize = 7;
const SINGLES: usize = 1_000;
const BULK: usize = 1_000;

pub(crate) async fn run(bench: &Bench) {
    bench.execute(include_str!("bare.sql")).await;
    let (mut enqueue, mut bare, mut bulk) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cost, mut gain) = (Vec::new(), Vec::new());
    singles(bench).await;
    bare_singles(bench).await;
    for _ in 0..ROUNDS {
        let (ours, theirs) = (singles(bench).await, bare_singles(bench).await);
        let many = bulks(bench).await;
        cost.push(theirs / ours);
        gain.push(many / ours);
        enqueue.push(ours);
        bare.push(theirs);
        bulk.push(many);
    }
    let sync = bench.synchronous;
    println!("\ninsert, one connection, synchronous_commit={sync}, median [least-most] of {ROUNDS}");
    println!("  enqueue one, in a transaction {:>22} events/s", rates(&enqueue));
    println!("  bare INSERT, in a transaction {:>22} rows/s", rates(&bare));
    println!("  enqueue {BULK} in one statement {:>20} events/s", rates(&bulk));
    println!("  cost of one: {:.2} x a bare INSERT; bulk is {:.1} x one by one", median(cost), median(gain));
    bench.execute("TRUNCATE {schema}.event, {schema}.bare").await;
}

fn event() -> NewEvent {
    NewEvent::new("bench").key(format!("key-{}", fastrand::u16(..))).payload("x".repeat(272))
}

#[allow(clippy::cast_precision_loss)]
async fn singles(bench: &Bench) -> f64 {
    let mut connection = bench.host.acquire().await.unwrap();
    let started = Instant::now();
    for _ in 0..SINGLES {
        let mut transaction = sqlx::Connection::begin(&mut *connection).await.unwrap();
        bench.enqueue.enqueue(&mut transaction, event()).await.unwrap();
        transaction.commit().await.unwrap();
    }
    SINGLES as f64 / started.elapsed().as_secs_f64()
}

/// The same values, the event's id among them: what a host would write by hand.
#[allow(clippy::cast_precision_loss)]
async fn bare_singles(bench: &Bench) -> f64 {
    let sql = format!(
        "INSERT INTO {}.bare (target, topic, key, payload, content_type, headers, event_id, deliver_at) \
         VALUES ($1, $2, $3, $4, NULL, NULL, $5, NULL)",
        bench.schema
    );
    let mut connection = bench.host.acquire().await.unwrap();
    let started = Instant::now();
    for _ in 0..SINGLES {
        let event = event();
        let mut transaction = sqlx::Connection::begin(&mut *connection).await.unwrap();
        sqlx::query(AssertSqlSafe(sql.clone()))
            .bind(&event.target)
            .bind(&event.topic)
            .bind(&event.key)
            .bind(&event.payload)
            .bind(uuid::Uuid::now_v7())
            .execute(&mut *transaction)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
    }
    SINGLES as f64 / started.elapsed().as_secs_f64()
}

#[allow(clippy::cast_precision_loss)]
async fn bulks(bench: &Bench) -> f64 {
    let events: Vec<NewEvent> = (0..BULK).map(|_| event()).collect();
    let mut connection = bench.host.acquire().await.unwrap();
    let started = Instant::now();
    for _ in 0..5 {
        let mut transaction = sqlx::Connection::begin(&mut *connection).await.unwrap();
        bench.enqueue.enqueue_all(&mut transaction, events.clone()).await.unwrap();
        transaction.commit().await.unwrap();
    }
    (5 * BULK) as f64 / started.elapsed().as_secs_f64()
}
