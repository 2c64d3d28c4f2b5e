//! Many claimers at once: every row goes to one of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::{ClaimHarness, Shape};
use super::{ints, ready_jobs};
use crate::claim::{ClaimSpec, Claimable, Record, TableName, Value, col};

/// Longer than any store takes on a slow machine; only a store that lost rows gets here.
const STALLED: Duration = Duration::from_secs(60);

/// One claimer of a race: who it is and how much it takes at a time.
#[derive(Debug, Clone)]
pub struct Claimer {
    /// Written to the rows it takes.
    pub owner: String,
    /// How many rows a claim.
    pub batch: u32,
}

impl Claimer {
    /// Its claim on [`Shape::jobs`].
    fn spec(&self, table: &TableName) -> ClaimSpec {
        ClaimSpec::on_table(table.clone())
            .eligible(col("status").eq("ready"))
            .set("status", "taken")
            .set("owner", self.owner.as_str())
            .add("attempts", 1)
            .order_by("rank")
            .limit(self.batch)
            .build()
            .unwrap()
    }
}

/// Claims until `is_done` says so after an empty claim; returns the ids it got, in order. Panics if
/// a claim returns more than its limit, a row that is not the claimer's, or rows out of order.
pub async fn drain<T: Claimable<Row = Record>>(
    table: &T,
    name: &TableName,
    claimer: &Claimer,
    mut is_done: impl FnMut(usize) -> bool,
) -> Vec<i64> {
    let spec = claimer.spec(name);
    let mut ids = Vec::new();
    let mut last_progress = Instant::now();
    loop {
        let claimed = table.claim(&spec).await.unwrap_or_else(|error| panic!("{}: {error:?}", claimer.owner));
        assert!(claimed.len() <= claimer.batch as usize, "{} got {} rows", claimer.owner, claimed.len());
        let ranks: Vec<i64> = claimed.iter().map(|row| int(row, "rank")).collect();
        assert!(ranks.is_sorted(), "{}: {ranks:?}", claimer.owner);
        for row in &claimed {
            assert_eq!(row.get("owner"), Some(&Value::Text(claimer.owner.clone())), "not its own row");
            assert_eq!(row.get("attempts"), Some(&Value::Int(1)), "taken before");
            ids.push(int(row, "id"));
        }
        if is_done(claimed.len()) {
            return ids;
        }
        if claimed.is_empty() {
            assert!(last_progress.elapsed() < STALLED, "{} found nothing for {STALLED:?}", claimer.owner);
            tokio::time::sleep(Duration::from_millis(1)).await;
        } else {
            last_progress = Instant::now();
        }
    }
}

fn int(row: &Record, name: &str) -> i64 {
    match row.get(name) {
        Some(Value::Int(number)) => *number,
        other => panic!("{name} is {other:?}"),
    }
}

/// Checks what claimers say they got against the table: every row taken, by one, who has it in writing.
pub fn verify_claims(shape: &Shape, rows: &[Record], claims: &[(String, Vec<i64>)]) {
    let mut holder: HashMap<i64, &str> = HashMap::new();
    for (owner, ids) in claims {
        for id in ids {
            if let Some(other) = holder.insert(*id, owner) {
                let row = rows.iter().find(|row| row.get("id") == Some(&Value::Int(*id)));
                panic!("row {id} was handed to {other} and to {owner}; the table has {row:?}");
            }
        }
    }
    assert_eq!(holder.len(), rows.len(), "rows handed out, rows in the table");
    let ids = ints(shape, rows, "id");
    for (row, id) in rows.iter().zip(ids) {
        assert_eq!(row.get("status"), Some(&Value::from("taken")), "row {id} was left over");
        assert_eq!(row.get("attempts"), Some(&Value::Int(1)), "row {id} was marked more than one time");
        assert_eq!(row.get("owner"), Some(&Value::Text(holder[&id].to_owned())), "row {id}");
    }
}

async fn race<H: ClaimHarness>(harness: &H, rows: i64, claimers: usize, batch: u32) {
    let (shape, table) = ready_jobs(harness, "race", rows).await;
    let total = Arc::new(AtomicUsize::new(0));
    let goal = usize::try_from(rows).unwrap();
    let mut running = Vec::new();
    for number in 0..claimers {
        let (table, name, total) = (table.clone(), shape.table.clone(), Arc::clone(&total));
        running.push(tokio::spawn(async move {
            let claimer = Claimer { owner: format!("claimer-{number}"), batch };
            let ids =
                drain(&table, &name, &claimer, |got| total.fetch_add(got, Ordering::SeqCst) + got >= goal)
                    .await;
            (claimer.owner, ids)
        }));
    }
    let mut claims = Vec::new();
    for claimer in running {
        claims.push(claimer.await.unwrap());
    }
    verify_claims(&shape, &harness.rows(&shape).await, &claims);
}

pub(crate) async fn sixteen_claimers_take_batches_of_7<H: ClaimHarness>(harness: Arc<H>) {
    race(&*harness, harness.race_rows(), 16, 7).await;
}

pub(crate) async fn sixteen_claimers_take_batches_of_100<H: ClaimHarness>(harness: Arc<H>) {
    race(&*harness, harness.race_rows(), 16, 100).await;
}

pub(crate) async fn two_claimers_of_everything_share_nothing<H: ClaimHarness>(harness: Arc<H>) {
    for _ in 0..10 {
        race(&*harness, 50, 2, 1_000).await;
    }
}
