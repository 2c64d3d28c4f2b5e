//! Claims and settlements that overlap, and answers that are lost on the way.

use std::sync::Arc;
use std::time::Duration;

use super::wrapped::Wrapped;
use super::{
    HOUR, claim, deliver, enqueue, event, loose, names, nothing_more, numbered, settle, start, texts,
};
use crate::event::NewEvent;
use crate::outbox::{Claimed, Member, Outcome, Summary, Worker};
use crate::testkit::StoreHarness;

/// Claims, and while the answer of the store is on its way does `meanwhile`; what was handed out then.
async fn claim_while<F>(store: &Wrapped, worker: &Arc<Worker>, meanwhile: F) -> Vec<Claimed>
where
    F: Future<Output = ()>,
{
    *store.holds_fetches.lock().unwrap() = true;
    let claiming = tokio::spawn({
        let worker = Arc::clone(worker);
        async move { worker.claim(10_000).await.unwrap() }
    });
    store.has_read.acquire().await.unwrap().forget();
    meanwhile.await;
    *store.holds_fetches.lock().unwrap() = false;
    store.answers.add_permits(1);
    claiming.await.unwrap()
}

async fn wrapped<H: StoreHarness>(harness: &H, run: u32) -> (Arc<Wrapped>, Arc<Worker>) {
    let store = Wrapped::new(harness.store());
    let worker = start(store.clone(), |config| config.run = run).await;
    (store, Arc::new(worker))
}

/// The fetch saw events that were settled before its answer came.
pub(crate) async fn what_is_settled_during_a_fetch_is_not_handed_out_again<H: StoreHarness>(harness: Arc<H>) {
    let mut all: Vec<NewEvent> = (0..20).map(|number| loose(&format!("loose{number}"))).collect();
    all.extend(numbered("a", 6));
    enqueue(&*harness, &all).await;
    let (store, worker) = wrapped(&*harness, 3).await;
    let first = claim(&worker, 23).await;
    let second = claim_while(&store, &worker, async {
        settle(&worker, &first, &Outcome::Published).await;
    })
    .await;
    let rest = texts(second.iter().map(|claimed| &claimed.event));
    assert_eq!(rest, names("a", 4..=6), "the rest of the key, and nothing again");
    settle(&worker, &second, &Outcome::Published).await;
    nothing_more(&worker).await;
}

/// Once it is known to be published, its key does not wait for that to be written down.
pub(crate) async fn a_key_goes_on_when_its_event_is_delivered<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    let (store, worker) = wrapped(&*harness, 1).await;
    let first = claim(&worker, 1).await;
    nothing_more(&worker).await;
    worker.delivered([&first[0].receipt()]);
    let second = claim(&worker, 1).await;
    assert_eq!(texts([&first[0].event, &second[0].event]), names("a", 1..=2));
    // The fetch sees the first two, of which one is settled and one fails before its answer comes.
    let third = claim_while(&store, &worker, async {
        settle(&worker, &first, &Outcome::Published).await;
        settle(&worker, &second, &Outcome::retry(Duration::from_millis(1), "no")).await;
    })
    .await;
    assert_eq!(
        texts(third.iter().map(|claimed| &claimed.event)),
        Vec::<String>::new(),
        "its key stopped there"
    );
    assert_eq!(texts(&deliver(&worker, 2).await), names("a", 2..=3));
}

/// What was delivered and not settled comes again, in its order.
pub(crate) async fn what_is_delivered_and_not_settled_comes_again<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    let worker = start(harness.store(), |config| config.run = 1).await;
    for number in 1..=3 {
        let claimed = claim(&worker, 1).await;
        assert_eq!(texts([&claimed[0].event]), names("a", [number]));
        worker.delivered([&claimed[0].receipt()]);
    }
    super::lose(&*harness, worker).await;
    let next = super::worker(&*harness).await;
    assert_eq!(texts(&deliver(&next, 3).await), names("a", 1..=3));
}

/// The fetch saw the next ones of a key as free, and its first failed before the answer came.
pub(crate) async fn a_key_that_fails_during_a_fetch_keeps_its_order<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 4)).await;
    let (store, worker) = wrapped(&*harness, 1).await;
    let first = claim(&worker, 1).await;
    let pause = Duration::from_millis(100);
    let second = claim_while(&store, &worker, async {
        settle(&worker, &first, &Outcome::retry(pause, "no")).await;
    })
    .await;
    assert!(second.is_empty(), "a later event overtook one that failed");
    assert_eq!(texts(&deliver(&worker, 4).await), names("a", 1..=4));
}

pub(crate) async fn what_is_given_back_during_a_fetch_comes_again<H: StoreHarness>(harness: Arc<H>) {
    let mut all = numbered("a", 4);
    all.push(loose("loose"));
    enqueue(&*harness, &all).await;
    let (store, worker) = wrapped(&*harness, 2).await;
    let first = claim(&worker, 3).await;
    let mut second = claim_while(&store, &worker, async {
        settle(&worker, &first, &Outcome::Release).await;
    })
    .await;
    settle(&worker, &second, &Outcome::Release).await;
    second.clear();
    let delivered = deliver(&worker, 5).await;
    assert_eq!(super::by_key(&delivered)["a"], names("a", 1..=4));
}

/// The lane went to another while the answer was on its way.
pub(crate) async fn a_lane_lost_during_a_fetch_hands_out_nothing_that_settles<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(&*harness, &[event("a", "a1")]).await;
    let (store, worker) = wrapped(&*harness, 2).await;
    let member = Member {
        worker: worker.id(),
        name: "worker".to_owned(),
        target: crate::DEFAULT_TARGET.to_owned(),
        lease: super::LONG,
        scope: Default::default(),
    };
    let mut successor = None;
    let claimed = claim_while(&store, &worker, async {
        harness.store().leave(&member).await.unwrap();
        successor = Some(super::Owner::of_all(&*harness, super::LONG).await);
    })
    .await;
    // It cannot know yet. The fence does.
    let summary = settle(&worker, &claimed, &Outcome::retry(HOUR, "no")).await;
    assert_eq!(summary, Summary { applied: 0, stale: claimed.len(), missing: 0 });
    let successor = successor.unwrap();
    assert_eq!(successor.hot().await.len(), 1, "a stale token parked an event");
    assert_eq!(worker.stats().stale, claimed.len() as u64, "it is counted");
}

pub(crate) async fn a_settlement_whose_answer_was_lost_can_be_repeated<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[event("a", "a1"), event("b", "b1"), event("a", "a2")]).await;
    let (store, worker) = wrapped(&*harness, 1).await;
    let claimed = claim(&worker, 2).await;
    let outcomes: Vec<_> = claimed.iter().map(|claimed| (claimed.receipt(), Outcome::Published)).collect();
    store.faults.lock().unwrap().settle_before = 1;
    worker.settle(&outcomes).await.expect_err("it was broken off");
    nothing_more(&worker).await;
    store.faults.lock().unwrap().settle_after = 1;
    worker.settle(&outcomes).await.expect_err("it was broken off");
    let summary = worker.settle(&outcomes).await.unwrap();
    assert_eq!(summary, Summary { applied: 0, stale: 0, missing: 2 }, "it was written the time before");
    assert_eq!(texts(&deliver(&worker, 1).await), ["a2"]);
}

pub(crate) async fn a_failed_fetch_loses_nothing<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    let (store, worker) = wrapped(&*harness, 10).await;
    store.faults.lock().unwrap().fetch = 2;
    for _ in 0..2 {
        worker.claim(10).await.expect_err("it was broken off");
    }
    assert_eq!(texts(&deliver(&worker, 3).await), names("a", 1..=3));
}

/// Events that could not be moved aside are moved with the next fetch.
pub(crate) async fn a_failed_move_is_made_up_for<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 1)).await;
    let (store, worker) = wrapped(&*harness, 10).await;
    let claimed = claim(&worker, 1).await;
    settle(&worker, &claimed, &Outcome::retry(HOUR, "no")).await;
    enqueue(&*harness, &[event("a", "a2"), event("a", "a3")]).await;
    store.faults.lock().unwrap().settle_before = 1;
    nothing_more(&worker).await;
    let parked = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    assert_eq!((parked.len(), parked[0].behind), (1, 2));
}
