//! Events that failed, and the later ones of their keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    HOUR, LONG, Owner, by_key, claim, deliver, enqueue, event, events, fail_first, failure, lane_mates,
    loose, names, nothing_more, numbered, settle, start, stop, texts, worker,
};
use crate::event::Attempts;
use crate::outbox::{Change, Due, Hold, Outcome, Reason, Settled, Summary, Worker};
use crate::testkit::StoreHarness;

/// Long enough to be seen, short enough to wait for.
const PAUSE: Duration = Duration::from_secs(1);

/// Nothing more is handed out before the pause is over that began after `since`. What comes then, where a machine is too slow to look before, is given back.
async fn nothing_within_the_pause(worker: &Worker, since: Instant) {
    for _ in 0..3 {
        let more = worker.claim(10_000).await.unwrap();
        let is_over = since.elapsed() >= PAUSE;
        let texts = texts(more.iter().map(|claimed| &claimed.event));
        assert!(is_over || texts.is_empty(), "these should have waited: {texts:?}");
        settle(worker, &more, &Outcome::Release).await;
    }
}

fn retry(after: Duration) -> Change {
    let attempts = Attempts { failures: 1, crashes: 0 };
    Change::Park { reason: Reason::Retry, due: Due::In(after), attempts, failure: Some(failure()) }
}

fn behind() -> Change {
    Change::Park { reason: Reason::Behind, due: Due::Never, attempts: Attempts::default(), failure: None }
}

pub(crate) async fn a_retry_comes_after_its_pause_and_not_before<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[event("a", "a1"), loose("b")]).await;
    let worker = worker(&*harness).await;
    for failures in 1..=3 {
        let claimed = claim(&worker, 2).await;
        let began = Instant::now();
        settle(&worker, &claimed, &Outcome::retry(PAUSE, "no")).await;
        nothing_within_the_pause(&worker, began).await;
        let again = claim(&worker, 2).await;
        // SQLite's clock has milliseconds.
        assert!(began.elapsed() >= PAUSE - Duration::from_millis(2), "after {:?}", began.elapsed());
        let counted: Vec<Attempts> = again.iter().map(|claimed| claimed.event.attempts).collect();
        assert_eq!(counted, vec![Attempts { failures, crashes: 0 }; 2]);
        settle(&worker, &again, &Outcome::Release).await;
    }
    deliver(&worker, 2).await;
}

pub(crate) async fn later_events_of_the_key_wait_and_other_keys_go_on<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 2).await;
    enqueue(&*harness, &[numbered(&mates[0], 4), numbered(&mates[1], 2)].concat()).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 6).await;
    let (failed, others): (Vec<_>, Vec<_>) =
        claimed.into_iter().partition(|claimed| claimed.event.key.as_ref() == Some(&mates[0]));
    fail_first(&worker, &failed, Outcome::retry(2 * PAUSE, "no")).await;
    settle(&worker, &others, &Outcome::Published).await;
    enqueue(&*harness, &[event(&mates[0], "late"), event(&mates[1], "on time")]).await;
    let delivered = deliver(&worker, 6).await;
    assert_eq!(texts(&delivered)[0], "on time", "another key of the lane does not wait");
    let mut expected = names(&mates[0], 1..=4);
    expected.push("late".to_owned());
    assert_eq!(by_key(&delivered)[&mates[0]], expected);
}

pub(crate) async fn hot_events_of_a_parked_key_are_moved_behind_it<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 3).await;
    fail_first(&worker, &claimed, Outcome::retry(HOUR, "no")).await;
    let owner = Owner::watching(harness.store());
    assert!(owner.hot().await.is_empty(), "what was given back behind a failure is parked with it");
    enqueue(&*harness, &[event("a", "a4"), event("a", "a5")]).await;
    assert!(owner.hot().await.iter().all(|row| row.hold == Hold::Held));
    nothing_more(&worker).await;
    assert!(owner.hot().await.is_empty(), "the event table stays short while a key waits");
    let parked = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    assert_eq!((parked.len(), parked[0].behind, parked[0].reason), (1, 4, Reason::Retry));
    assert!(owner.due().await.is_empty());
}

/// Given back in a call of its own, too.
pub(crate) async fn the_rest_of_a_run_may_be_given_back_apart<H: StoreHarness>(harness: Arc<H>) {
    for failure_first in [true, false] {
        enqueue(&*harness, &numbered("a", 3)).await;
        let worker = worker(&*harness).await;
        let claimed = claim(&worker, 3).await;
        let fail = Outcome::retry(PAUSE, "no");
        let (first, second) = if failure_first {
            ((&claimed[..1], &fail), (&claimed[1..], &Outcome::Release))
        } else {
            ((&claimed[1..], &Outcome::Release), (&claimed[..1], &fail))
        };
        let began = Instant::now();
        settle(&worker, first.0, first.1).await;
        // The key is in flight, whatever is due.
        nothing_more(&worker).await;
        settle(&worker, second.0, second.1).await;
        nothing_within_the_pause(&worker, began).await;
        assert_eq!(texts(&deliver(&worker, 3).await), names("a", 1..=3));
        stop(worker).await;
    }
}

pub(crate) async fn a_long_tail_follows_its_head_in_order<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 301)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 100).await;
    let began = Instant::now();
    fail_first(&worker, &claimed, Outcome::retry(PAUSE, "no")).await;
    nothing_within_the_pause(&worker, began).await;
    let mut delivered = Vec::new();
    let mut written = 301;
    let patience = super::Patience::new("the tail of a key follows its head");
    while delivered.len() < written {
        let claimed = worker.claim(10_000).await.unwrap();
        settle(&worker, &claimed, &Outcome::Published).await;
        delivered.extend(texts(claimed.iter().map(|claimed| &claimed.event)));
        if !claimed.is_empty() && written < 306 {
            // These come while the tail is on its way.
            written += 1;
            enqueue(&*harness, &[event("a", &format!("a{written}"))]).await;
        }
        patience.wait().await;
    }
    assert_eq!(delivered, names("a", 1..=written));
}

/// A run from the parked events stops at a failure like any other.
pub(crate) async fn a_parked_run_that_fails_half_way_keeps_its_order<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 6)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 6).await;
    fail_first(&worker, &claimed, Outcome::retry(PAUSE, "no")).await;
    let again = claim(&worker, 6).await;
    assert_eq!(texts(again.iter().map(|claimed| &claimed.event)), names("a", 1..=6));
    let mut outcomes: Vec<_> = again.iter().map(|claimed| (claimed.receipt(), Outcome::Release)).collect();
    outcomes[0].1 = Outcome::Published;
    outcomes[1].1 = Outcome::Published;
    outcomes[2].1 = Outcome::retry(PAUSE, "no");
    let began = Instant::now();
    let summary = worker.settle(&outcomes).await.unwrap();
    assert_eq!(summary, Summary { applied: 6, stale: 0, missing: 0 });
    nothing_within_the_pause(&worker, began).await;
    let rest = deliver(&worker, 4).await;
    assert_eq!(texts(&rest), names("a", 3..=6));
    assert_eq!(rest[0].attempts.failures, 1);
    assert_eq!(rest[1].attempts, Attempts::default(), "who waited has not failed");
}

pub(crate) async fn a_fetch_of_parked_events_gives_heads_that_are_due_and_what_is_behind<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(
        &*harness,
        &[numbered("a", 3), numbered("b", 2), numbered("c", 2), vec![loose("loose")]].concat(),
    )
    .await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let kinds = [
        retry(Duration::ZERO),
        behind(),
        behind(),
        retry(HOUR),
        behind(),
        retry(2 * HOUR),
        behind(),
        retry(Duration::ZERO),
    ];
    let changes: Vec<_> = rows.iter().zip(kinds).collect();
    assert_eq!(owner.settle(&changes).await, Settled::default());
    let parked = owner.store.fetch_parked(&owner.want(100)).await.unwrap();
    let keys = by_key(events(&parked.events));
    assert_eq!(keys["a"], names("a", 1..=3));
    assert_eq!(keys[""], ["loose"]);
    assert_eq!(keys.len(), 2, "keys that are not due wait: {keys:?}");
    assert!(parked.events.iter().all(|row| !row.place.is_hot() && row.hold == Hold::Free));
    let next = parked.next_due.expect("b is due in an hour");
    assert!(next <= HOUR && next > HOUR / 2, "{next:?}");
    // A limit ends it anywhere, but never out of order.
    let few = owner.store.fetch_parked(&owner.want(2)).await.unwrap().events;
    assert!(few.len() <= 2 && !few.is_empty());
    let first = by_key(events(&few));
    assert!(first.get("a").is_none_or(|order| names("a", 1..=3).starts_with(order)), "{first:?}");
}

/// What it should wait behind was gone before it was moved there.
pub(crate) async fn an_event_behind_nothing_is_due<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 2)).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    owner.settle(&[(&rows[0], behind()), (&rows[1], behind())]).await;
    assert_eq!(texts(events(&owner.due().await)), names("a", 1..=2), "or it would wait for ever");
}

/// Whoever becomes the first of its key is due, however the one before it went.
pub(crate) async fn the_next_of_a_key_is_due_when_its_head_goes<H: StoreHarness>(harness: Arc<H>) {
    let ways =
        [Change::Publish, Change::Bury { attempts: Attempts::default(), failure: failure(), diverts: false }];
    for (number, way) in ways.into_iter().enumerate() {
        let key = format!("k{number}-");
        enqueue(&*harness, &numbered(&key, 3)).await;
        let owner = Owner::of_all(&*harness, LONG).await;
        let rows = owner.hot().await;
        owner.settle(&[(&rows[0], retry(Duration::ZERO)), (&rows[1], behind()), (&rows[2], behind())]).await;
        let due = owner.due().await;
        assert_eq!(texts(events(&due)), names(&key, 1..=3));
        owner.settle(&[(&due[0], way)]).await;
        let due = owner.due().await;
        assert_eq!(texts(events(&due)), names(&key, 2..=3));
        assert_eq!(owner.publish(&due).await, Settled::default());
        owner.leave().await;
    }
}

pub(crate) async fn how_a_key_stands_is_told_with_its_events<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &["a", "b", "c", "d"].map(|key| event(key, key))).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let bury = Change::Bury { attempts: Attempts::default(), failure: failure(), diverts: true };
    owner
        .settle(&[
            (&rows[0], retry(HOUR)),
            (&rows[1], retry(Duration::ZERO)),
            (&rows[2], bury),
            (&rows[3], Change::Publish),
        ])
        .await;
    enqueue(&*harness, &["a", "b", "c", "d", "e"].map(|key| event(key, key))).await;
    enqueue(&*harness, &[event("a", "elsewhere").target("other"), loose("loose")]).await;
    let holds: Vec<Hold> = owner.hot().await.iter().map(|row| row.hold).collect();
    assert_eq!(holds, [Hold::Held, Hold::Draining, Hold::Diverted, Hold::Free, Hold::Free, Hold::Free]);
    let other = Owner::join_target(harness.store(), LONG, "other").await;
    assert_eq!(other.hot().await[0].hold, Hold::Free, "a key of another target is another key");
}

/// More failing keys than fit into one fetch.
pub(crate) async fn many_parked_keys_all_come_back<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<_> = (0..120).flat_map(|key| numbered(&format!("k{key}-"), 2)).collect();
    enqueue(&*harness, &all).await;
    let worker = start(harness.store(), |config| {
        config.window = 40;
        config.run = 1;
    })
    .await;
    let mut failed = 0;
    let mut delivered = Vec::new();
    let patience = super::Patience::new("every parked event comes back");
    while delivered.len() < all.len() {
        let claimed = worker.claim(40).await.unwrap();
        for one in &claimed {
            let is_first_try = one.event.attempts.failures == 0;
            failed += usize::from(is_first_try);
            let outcome = if is_first_try {
                Outcome::retry(Duration::from_millis(20), "no")
            } else {
                Outcome::Published
            };
            settle(&worker, std::slice::from_ref(one), &outcome).await;
            delivered.extend((!is_first_try).then(|| one.event.clone()));
        }
        patience.wait().await;
    }
    assert_eq!(failed, all.len(), "each failed one time");
    for (key, order) in by_key(&delivered) {
        assert_eq!(order, names(&key, 1..=2));
    }
}
