//! Many claimers at once that remove what they get, alone and beside others that mark: every row goes to one of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::{ClaimHarness, Shape};
use super::races::{Claimer, drain, verify_claims};
use super::{ints, ready_jobs, remove_ready};
use crate::claim::Claimable as _;

/// Longer than any store takes on a slow machine; only a store that lost rows gets here.
const STALLED: Duration = Duration::from_secs(60);

/// What is left for the claimers of a race to get, all together.
type Left = Arc<AtomicUsize>;

/// So many have been got now; whether nothing is left.
fn got(left: &Left, rows: usize) -> bool {
    left.fetch_sub(rows, Ordering::SeqCst) == rows
}

/// Removes until nothing is left; the ids it got, in order.
async fn remove_all<H: ClaimHarness>(table: &H::Table, shape: &Shape, batch: u32, left: &Left) -> Vec<i64> {
    let spec = remove_ready(shape).limit(batch).build().unwrap();
    let (mut ids, mut seen, mut since) = (Vec::new(), usize::MAX, Instant::now());
    loop {
        match left.load(Ordering::SeqCst) {
            0 => return ids,
            // Others may get all there is for long: only where nobody gets anything rows were lost.
            still if still == seen => {
                assert!(since.elapsed() < STALLED, "nobody got anything for {STALLED:?}; {still} are left");
            }
            less => (seen, since) = (less, Instant::now()),
        }
        let removed = table.claim(&spec).await.unwrap_or_else(|error| panic!("{error:?}"));
        assert!(removed.len() <= batch as usize, "{} rows for {batch}", removed.len());
        let ranks = ints(shape, &removed, "rank");
        assert!(ranks.is_sorted(), "{ranks:?}");
        assert_eq!(ints(shape, &removed, "attempts"), vec![0; removed.len()], "as nobody has touched it");
        ids.extend(ints(shape, &removed, "id"));
        got(left, removed.len());
        if removed.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Races `removing` claimers that remove and `marking` ones that mark.
async fn race<H: ClaimHarness>(harness: &H, rows: i64, removing: usize, marking: usize, batch: u32) {
    let (shape, table) = ready_jobs(harness, "removal_race", rows).await;
    let left: Left = Arc::new(AtomicUsize::new(usize::try_from(rows).unwrap()));
    let mut removers = Vec::new();
    for _ in 0..removing {
        let (table, shape, left) = (table.clone(), shape.clone(), Arc::clone(&left));
        removers.push(tokio::spawn(async move { remove_all::<H>(&table, &shape, batch, &left).await }));
    }
    let mut markers = Vec::new();
    for number in 0..marking {
        let (table, name, left) = (table.clone(), shape.table.clone(), Arc::clone(&left));
        markers.push(tokio::spawn(async move {
            let claimer = Claimer { owner: format!("claimer-{number}"), batch };
            // Done when nothing is left, whoever got the last of it.
            let is_done = |rows| got(&left, rows) || left.load(Ordering::SeqCst) == 0;
            let ids = drain(&table, &name, &claimer, is_done).await;
            (claimer.owner, ids)
        }));
    }
    let (mut removed, mut handed_out) = (BTreeSet::new(), 0);
    for remover in removers {
        for id in remover.await.unwrap() {
            assert!(removed.insert(id), "row {id} was removed twice");
            handed_out += 1;
        }
    }
    let mut marked = Vec::new();
    for marker in markers {
        marked.push(marker.await.unwrap());
    }
    let stored = harness.rows(&shape).await;
    // What is left is what was marked, each by whoever says so; and of that nothing was removed.
    verify_claims(&shape, &stored, &marked);
    assert!(ints(&shape, &stored, "id").iter().all(|id| !removed.contains(id)));
    assert_eq!(handed_out + stored.len(), usize::try_from(rows).unwrap(), "rows handed out, rows there were");
}

pub(crate) async fn sixteen_claimers_remove_batches_of_7<H: ClaimHarness>(harness: Arc<H>) {
    race(&*harness, harness.race_rows(), 16, 0, 7).await;
}

pub(crate) async fn sixteen_claimers_remove_batches_of_100<H: ClaimHarness>(harness: Arc<H>) {
    race(&*harness, harness.race_rows(), 16, 0, 100).await;
}

pub(crate) async fn two_removals_of_everything_share_nothing<H: ClaimHarness>(harness: Arc<H>) {
    for _ in 0..10 {
        race(&*harness, 50, 2, 0, 1_000).await;
    }
}

/// The one kind must not hand out what the other has.
pub(crate) async fn removals_beside_marks_share_nothing<H: ClaimHarness>(harness: Arc<H>) {
    race(&*harness, harness.race_rows(), 6, 6, 7).await;
    for _ in 0..10 {
        race(&*harness, 50, 1, 1, 1_000).await;
    }
}
