//! Leases by the database's clock.

use std::sync::Arc;
use std::time::Duration;

use super::super::{ClaimHarness, Shape};
use super::{ints, ready_jobs};
use crate::claim::{ClaimSpec, Claimable as _, Predicate, Value, col, now, now_minus, now_plus};

const HOUR: Duration = Duration::from_secs(3_600);

fn free() -> Predicate {
    col("lease_until").is_null().or(col("lease_until").lt(now()))
}

fn lease(shape: &Shape, eligible: Predicate, until: Value, owner: &str) -> ClaimSpec {
    ClaimSpec::on_table(shape.table.clone())
        .eligible(eligible)
        .set("lease_until", until)
        .set("owner", owner)
        .add("attempts", 1)
        .order_by("id")
        .build()
        .unwrap()
}

pub(crate) async fn an_active_lease_is_never_taken<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "active", 3).await;
    let first = lease(&shape, free(), now_plus(HOUR), "first");
    assert_eq!(table.claim(&first).await.unwrap().len(), 3);
    let second = lease(&shape, free(), now_plus(HOUR), "second");
    for _ in 0..5 {
        assert!(table.claim(&second).await.unwrap().is_empty());
    }
    let owners = super::column(&shape, &harness.rows(&shape).await, "owner");
    assert_eq!(owners, vec![Value::from("first"); 3]);
}

pub(crate) async fn an_expired_lease_is_taken<H: ClaimHarness>(harness: Arc<H>) {
    let (shape, table) = ready_jobs(&*harness, "expired", 4).await;
    // A lease that was over before it began stands for one whose worker died long ago.
    let dead = lease(&shape, col("id").le(2), now_minus(HOUR), "dead");
    let alive = lease(&shape, col("id").gt(2), now_plus(HOUR), "alive");
    assert_eq!(table.claim(&dead).await.unwrap().len(), 2);
    assert_eq!(table.claim(&alive).await.unwrap().len(), 2);
    let heir = lease(&shape, free(), now_plus(HOUR), "heir");
    let taken = table.claim(&heir).await.unwrap();
    assert_eq!(ints(&shape, &taken, "id"), [1, 2]);
    assert_eq!(ints(&shape, &taken, "attempts"), [2, 2], "the dead worker's attempt still counts");
}

/// Taken, refused while it lasts, taken again when it is over: as the database counts time.
pub(crate) async fn a_lease_set_by_the_database_clock_lasts_as_long_as_it_says<H: ClaimHarness>(
    harness: Arc<H>,
) {
    let (shape, table) = ready_jobs(&*harness, "lasts", 1).await;
    let length = Duration::from_millis(400);
    let spec = lease(&shape, free(), now_plus(length), "w");
    let started = std::time::Instant::now();
    assert_eq!(table.claim(&spec).await.unwrap().len(), 1);
    let again = loop {
        if !table.claim(&spec).await.unwrap().is_empty() {
            break started.elapsed();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "an expired lease was never taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // SQLite's clock has milliseconds: a lease may seem that much shorter.
    assert!(again >= length - Duration::from_millis(2), "the lease was taken after {again:?}");
}
