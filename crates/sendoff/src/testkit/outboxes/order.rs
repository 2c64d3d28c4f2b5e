//! The order of a key, and what does not wait for it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{
    LONG, Owner, by_key, claim, deliver, enqueue, event, lane_mates, loose, names, nothing_more, numbered,
    settle, start, text, texts, worker,
};
use crate::event::NewEvent;
use crate::outbox::{Fetch, LANES, LaneFetch, Outcome};
use crate::testkit::{HostTransaction as _, StoreHarness};

pub(crate) async fn a_key_is_handed_out_in_order_and_no_more_of_it_while_it_is_in_flight<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(&*harness, &numbered("a", 5)).await;
    let worker = start(harness.store(), |config| config.run = 2).await;
    let mut seen = Vec::new();
    for count in [2, 2, 1] {
        let claimed = claim(&worker, count).await;
        nothing_more(&worker).await;
        seen.extend(texts(claimed.iter().map(|claimed| &claimed.event)));
        // Half a run settled is not a run settled.
        if count == 2 {
            settle(&worker, &claimed[..1], &Outcome::Published).await;
            nothing_more(&worker).await;
            settle(&worker, &claimed[1..], &Outcome::Published).await;
        }
    }
    assert_eq!(seen, names("a", 1..=5));
}

pub(crate) async fn keys_do_not_wait_for_each_other<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 3).await;
    let all: Vec<NewEvent> = mates.iter().flat_map(|key| numbered(key, 2)).collect();
    enqueue(&*harness, &all).await;
    let worker = start(harness.store(), |config| config.run = 1).await;
    let slow = claim(&worker, 3).await;
    let first = slow.iter().find(|claimed| claimed.event.key.as_ref() == Some(&mates[0])).unwrap();
    let others: Vec<_> = slow.iter().filter(|claimed| *claimed != first).cloned().collect();
    settle(&worker, &others, &Outcome::Published).await;
    let more = claim(&worker, 2).await;
    assert!(
        more.iter().all(|claimed| claimed.event.key.as_ref() != Some(&mates[0])),
        "its first is in flight"
    );
}

/// A lane is not held up by one key's backlog, however long.
pub(crate) async fn a_long_backlog_of_one_key_does_not_hold_up_its_lane<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 2).await;
    enqueue(&*harness, &numbered(&mates[0], 600)).await;
    enqueue(&*harness, &numbered(&mates[1], 1)).await;
    let worker = start(harness.store(), |config| {
        config.run = 5;
        config.window = 50;
    })
    .await;
    let patience = super::Patience::new("a key is handed out while another of its lane is in flight");
    let mut claimed = Vec::new();
    while !claimed.iter().any(|one: &crate::outbox::Claimed| one.event.key.as_ref() == Some(&mates[1])) {
        claimed.extend(worker.claim(10).await.unwrap());
        patience.wait().await;
    }
    assert_eq!(claimed.len(), 6, "a run of the long one, and the short one");
}

pub(crate) async fn events_without_a_key_are_handed_out_in_bulk<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<NewEvent> = (0..500).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &all).await;
    let worker = worker(&*harness).await;
    let claimed = worker.claim(1_000).await.unwrap();
    assert_eq!(claimed.len(), 500, "they wait for nothing");
    assert_eq!(worker.in_flight(), 500);
    settle(&worker, &claimed, &Outcome::Published).await;
    assert_eq!(worker.in_flight(), 0);
    nothing_more(&worker).await;
}

pub(crate) async fn no_more_than_the_window_is_in_flight<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<NewEvent> = (0..100).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &all).await;
    let worker = start(harness.store(), |config| config.window = 30).await;
    let first = worker.claim(20).await.unwrap();
    assert_eq!(first.len(), 20, "as many as were asked for");
    let second = claim(&worker, 10).await;
    nothing_more(&worker).await;
    settle(&worker, &second, &Outcome::Published).await;
    assert_eq!(claim(&worker, 10).await.len(), 10, "room for ten");
}

/// To claim again before all is settled is to prefetch: nothing comes twice, nothing is left out.
pub(crate) async fn prefetching_hands_nothing_out_twice<H: StoreHarness>(harness: Arc<H>) {
    let mut all: Vec<NewEvent> = (0..12).flat_map(|key| numbered(&format!("k{key}-"), 20)).collect();
    all.extend((0..60).map(|number| loose(&format!("loose{number}"))));
    enqueue(&*harness, &all).await;
    let worker = start(harness.store(), |config| config.run = 3).await;
    let mut seen = HashSet::new();
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unsettled = Vec::new();
    let patience = super::Patience::new("every event is handed out");
    while seen.len() < all.len() {
        let claimed = worker.claim(25).await.unwrap();
        for one in &claimed {
            assert!(seen.insert(one.event.position), "{} was handed out twice", text(&one.event));
            keys.entry(one.event.key.clone().unwrap_or_default()).or_default().push(text(&one.event));
        }
        // Always one claim behind.
        let settled = std::mem::replace(&mut unsettled, claimed);
        settle(&worker, &settled, &Outcome::Published).await;
        patience.wait().await;
    }
    settle(&worker, &unsettled, &Outcome::Published).await;
    for (key, order) in keys.iter().filter(|(key, _)| !key.is_empty()) {
        assert_eq!(*order, names(key, 1..=20), "key {key}");
    }
    let stats = worker.stats();
    assert_eq!((stats.claimed, stats.applied, stats.missing), (300, 300, 0));
}

/// Row existence is the state: who commits late is found late, and lost never.
pub(crate) async fn an_event_that_commits_late_is_delivered<H: StoreHarness>(harness: Arc<H>) {
    if !harness.writes_side_by_side() {
        return;
    }
    let mates = lane_mates(&*harness, 2).await;
    let worker = worker(&*harness).await;
    let mut late = harness.begin().await;
    late.enqueue(&numbered(&mates[0], 2)).await.unwrap();
    enqueue(&*harness, &numbered(&mates[1], 300)).await;
    let early = deliver(&worker, 300).await;
    nothing_more(&worker).await;
    late.commit().await.unwrap();
    let found = deliver(&worker, 2).await;
    assert_eq!(texts(&found), names(&mates[0], 1..=2));
    assert!(found.iter().all(|late| early.iter().all(|early| late.position < early.position)));
}

pub(crate) async fn transactions_one_after_the_other_keep_their_order<H: StoreHarness>(harness: Arc<H>) {
    let worker = worker(&*harness).await;
    let mut delivered = Vec::new();
    for number in 1..=20 {
        enqueue(&*harness, &[event("a", &format!("a{number}")), event("b", &format!("b{number}"))]).await;
        if number % 7 == 0 {
            delivered.extend(deliver(&worker, 14).await);
        }
    }
    delivered.extend(deliver(&worker, 12).await);
    let keys = by_key(&delivered);
    assert_eq!(keys["a"], names("a", 1..=20));
    assert_eq!(keys["b"], names("b", 1..=20));
}

pub(crate) async fn a_fetch_reads_what_it_was_asked_for<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<NewEvent> = (0..640).map(|number| loose(&format!("{number:05}"))).collect();
    enqueue(&*harness, &all).await;
    let owner = Owner::join(harness.store(), LONG).await;
    let rows = owner.hot().await;
    let mut lanes: BTreeMap<u16, Vec<i64>> = BTreeMap::new();
    for row in &rows {
        lanes.entry(row.event.lane).or_default().push(row.event.position);
    }
    let (lane, of_lane) = lanes.into_iter().max_by_key(|(_, positions)| positions.len()).unwrap();
    let ask = |lanes: Vec<LaneFetch>, limit, bytes_per_lane| {
        let want = Fetch { target: crate::DEFAULT_TARGET.to_owned(), lanes, limit, bytes_per_lane };
        let store = owner.store.clone();
        async move {
            let rows = store.fetch(&want).await.unwrap().events;
            rows.iter().map(|row| (row.event.lane, row.event.position)).collect::<Vec<_>>()
        }
    };
    let positions = |rows: &[(u16, i64)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
    let one = |above, limit| vec![LaneFetch { lane, above, limit }];
    assert_eq!(positions(&ask(one(0, 100), 100, 1_000_000).await), of_lane, "one lane, lowest first");
    assert_eq!(positions(&ask(one(0, 3), 100, 1_000_000).await), of_lane[..3], "the lane's limit");
    assert_eq!(positions(&ask(one(of_lane[1], 3), 100, 1_000_000).await), of_lane[2..5], "above a position");
    assert_eq!(
        positions(&ask(one(0, 100), 100, 11).await),
        of_lane[..3],
        "five bytes each, stopped past eleven"
    );
    let every = |limit| (0..LANES).rev().map(|lane| LaneFetch { lane, above: 0, limit }).collect::<Vec<_>>();
    let some = ask(every(2), 10, 1_000_000).await;
    assert_eq!(some.len(), 10, "at most so many in all");
    let lanes: Vec<u16> = some.iter().map(|row| row.0).collect();
    assert!(lanes.is_sorted_by(|a, b| a >= b), "lanes named first are served first: {lanes:?}");
    assert!(some.chunk_by(|a, b| a.0 == b.0).all(|rows| rows.is_sorted()), "lowest first in each lane");
}
