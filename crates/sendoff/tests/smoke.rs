#![allow(clippy::unwrap_used)]
use sendoff::outbox::*;
use sendoff::stores::*;
use sendoff::stores::{mysql::*, postgres::*, sqlite::*};
use sendoff::{NewEvent, Outbox};
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn drive(store: Arc<dyn Store>, name: &str) {
    let config = WorkerConfig { name: "w".into(), window: 5000, ..WorkerConfig::default() };
    let worker = Worker::start(store.clone(), config.clone()).await.unwrap();
    assert_eq!(worker.lanes().len(), 64);
    let started = Instant::now();
    let mut n = 0;
    let mut retried = false;
    let mut order = vec![];
    while n < 3000 {
        let claimed = worker.claim(500).await.unwrap();
        if claimed.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut outcomes = vec![];
        for c in &claimed {
            if !retried && c.event.key.as_deref() == Some("k3") {
                retried = true;
                outcomes.push((c.receipt(), Outcome::retry(Duration::from_millis(50), "no")));
            } else if retried
                && c.event.key.as_deref() == Some("k3")
                && order.is_empty()
                && c.event.attempts.failures == 0
            {
                outcomes.push((c.receipt(), Outcome::Release));
            } else {
                if c.event.key.as_deref() == Some("k3") {
                    order.push(c.event.position);
                }
                outcomes.push((c.receipt(), Outcome::Published));
                n += 1;
            }
        }
        if !outcomes.is_empty() {
            let s = worker.settle(&outcomes).await.unwrap();
            assert_eq!(s.applied, outcomes.len(), "{s:?}");
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{name} {n} {:?}", worker.stats());
    }
    assert!(order.is_sorted() && order.len() == 30, "{order:?}");
    println!("{name}: {:?} {:?}", started.elapsed(), worker.stats());
    let two = Worker::start(store.clone(), config.clone()).await.unwrap();
    let t = Instant::now();
    while two.lanes().len() != 32 || worker.lanes().len() != 32 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(t.elapsed() < Duration::from_secs(10), "{} {}", two.lanes().len(), worker.lanes().len());
    }
    println!("shared after {:?}", t.elapsed());
    drop(two);
    let t = Instant::now();
    if name.starts_with("pg") {
        while worker.lanes().len() != 64 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert!(t.elapsed() < Duration::from_secs(10));
        }
        println!("taken over after {:?}", t.elapsed());
    }
    worker.stop(Duration::from_secs(1)).await.unwrap();
}
fn events() -> Vec<NewEvent> {
    (0..3000)
        .map(|i| NewEvent::new("t").key(format!("k{}", i % 100)).payload(format!("{i}")).header("a", "b"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", dir.path().join("x.db").display());
    let db = SqliteDatabase::connect(&url).await.unwrap();
    Migration::new(db.clone()).unwrap().run().await.unwrap();
    Migration::new(db.clone()).unwrap().run().await.unwrap();
    let host = sqlx::SqlitePool::connect(&url).await.unwrap();
    let mut tx = host.begin().await.unwrap();
    Outbox::new().enqueue_all(&mut tx, events()).await.unwrap();
    tx.commit().await.unwrap();
    drive(Arc::new(SqliteOutbox::open(db).await.unwrap()), "sqlite").await;
}
#[tokio::test(flavor = "multi_thread")]
async fn mariadb() {
    let Ok(url) = std::env::var("SENDOFF_TEST_MARIADB") else { return };
    let names = Names::prefix(&format!("t{}_", fastrand::u32(..))).unwrap();
    let db = MysqlDatabase::connect(&url).await.unwrap();
    Migration::named(db.clone(), names.clone()).run().await.unwrap();
    let host = sqlx::MySqlPool::connect(&url).await.unwrap();
    let mut tx = host.begin().await.unwrap();
    Outbox::named(names.clone()).enqueue_all(&mut tx, events()).await.unwrap();
    tx.commit().await.unwrap();
    drive(Arc::new(MysqlOutbox::open_as(db, names).await.unwrap()), "mariadb").await;
}
async fn pg(var: &str) {
    let Ok(url) = std::env::var(var) else { return };
    let db = PostgresDatabase::connect(&url).await.unwrap();
    let host = sqlx::PgPool::connect(&url).await.unwrap();
    for floor in [true, false] {
        let names = Names::schema(&format!("t{}", fastrand::u32(..))).unwrap();
        Migration::named(db.clone(), names.clone()).run().await.unwrap();
        let mut tx = host.begin().await.unwrap();
        Outbox::named(names.clone()).enqueue_all(&mut tx, events()).await.unwrap();
        tx.commit().await.unwrap();
        if floor {
            drive(Arc::new(SqlOutbox::open_as(db.clone(), names.clone()).await.unwrap()), "floor").await;
        } else {
            drive(Arc::new(PostgresOutbox::open_as(db.clone(), names.clone()).await.unwrap()), "pg").await;
        }
    }
}
#[tokio::test(flavor = "multi_thread")]
async fn pg15() {
    pg("SENDOFF_TEST_POSTGRES15").await
}
#[tokio::test(flavor = "multi_thread")]
async fn pg18() {
    pg("SENDOFF_TEST_POSTGRES18").await
}
