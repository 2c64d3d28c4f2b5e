//! Leases of lanes: one owner, a higher epoch each time, nothing under an old one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{LONG, Owner, enqueue, event, loose};
use crate::outbox::{Census, Change, Due, Flush, LANES, Lane, Reason, Token};
use crate::testkit::StoreHarness;

pub(crate) async fn lanes_are_taken_up_to_the_number_asked_for<H: StoreHarness>(harness: Arc<H>) {
    let mut first = Owner::join(harness.store(), LONG).await;
    assert!(first.take(0).await.is_empty());
    assert_eq!(first.take(10).await.len(), 10);
    assert_eq!(first.take(10).await.len(), 10, "ten more");
    let mut second = Owner::join(harness.store(), LONG).await;
    assert_eq!(second.take(LANES).await.len(), usize::from(LANES) - 20, "what is left");
    let lanes = |owner: &Owner| owner.tokens().iter().map(|token| token.lane).collect::<HashSet<Lane>>();
    assert!(lanes(&first).is_disjoint(&lanes(&second)), "a lane has two owners");
    assert!(lanes(&first).union(&lanes(&second)).all(|lane| *lane < LANES));
}

pub(crate) async fn a_live_lease_is_not_taken<H: StoreHarness>(harness: Arc<H>) {
    let _owner = Owner::of_all(&*harness, LONG).await;
    let mut other = Owner::join(harness.store(), LONG).await;
    for _ in 0..3 {
        assert!(other.take(LANES).await.is_empty(), "a lane was taken from a live owner");
    }
}

pub(crate) async fn an_expired_lease_is_taken_and_counts_a_crash<H: StoreHarness>(harness: Arc<H>) {
    let mut owner = Owner::of_all(&*harness, LONG).await;
    assert!(owner.leased.iter().all(|leased| leased.crashes == 0 && leased.named.is_none()));
    for crashes in 1..=3 {
        owner.lapse(&*harness).await;
        owner = Owner::of_all(&*harness, LONG).await;
        let counted: HashSet<u32> = owner.leased.iter().map(|leased| leased.crashes).collect();
        assert_eq!(counted, HashSet::from([crashes]), "each lost owner in a row is counted");
    }
}

pub(crate) async fn a_released_lane_is_taken_at_once_and_counts_no_crash<H: StoreHarness>(harness: Arc<H>) {
    let first = Owner::of_all(&*harness, LONG).await;
    let given = first.tokens()[..20].to_vec();
    first.store.give(&first.member, &given).await.unwrap();
    let mut second = Owner::join(harness.store(), LONG).await;
    let got = second.take(LANES).await;
    let lanes = |tokens: &[Token]| tokens.iter().map(|token| token.lane).collect::<HashSet<Lane>>();
    assert_eq!(lanes(&second.tokens()), lanes(&given), "the lanes that were given, and no other");
    assert!(got.iter().all(|leased| leased.crashes == 0), "a lane that was released counts no crash");
    first.leave().await;
    let got = second.take(LANES).await;
    assert_eq!(got.len(), usize::from(LANES) - 20, "who leaves gives back all that is left");
    assert!(got.iter().all(|leased| leased.crashes == 0 && leased.named.is_none()));
}

/// Or a killer of workers could hide behind the hand-overs that its own crashes cause.
pub(crate) async fn a_hand_over_does_not_forget_crashes<H: StoreHarness>(harness: Arc<H>) {
    Owner::of_all(&*harness, LONG).await.lapse(&*harness).await;
    let second = Owner::of_all(&*harness, LONG).await;
    let half = second.tokens()[..32].to_vec();
    second.store.give(&second.member, &half).await.unwrap();
    second.leave().await;
    let third = Owner::of_all(&*harness, LONG).await;
    assert!(third.leased.iter().all(|leased| leased.crashes == 1), "only progress makes a lane calm");
}

pub(crate) async fn every_lease_has_a_higher_epoch<H: StoreHarness>(harness: Arc<H>) {
    let mut epochs = vec![0; usize::from(LANES)];
    for turn in 0..6 {
        let owner = Owner::of_all(&*harness, LONG).await;
        for token in owner.tokens() {
            let last = &mut epochs[usize::from(token.lane)];
            assert!(token.epoch > *last, "lane {} was leased under an epoch it had before", token.lane);
            *last = token.epoch;
        }
        match turn % 3 {
            0 => owner.leave().await,
            1 => owner.store.give(&owner.member, &owner.tokens()).await.unwrap(),
            _ => owner.lapse(&*harness).await,
        }
    }
}

pub(crate) async fn renewing_keeps_what_is_still_ones_own<H: StoreHarness>(harness: Arc<H>) {
    // Three renewals, each long before the one before would end, and together longer than it.
    let lease = Duration::from_secs(3);
    let first = Owner::of_all(&*harness, lease).await;
    for _ in 0..3 {
        harness.pass(lease * 2 / 5).await;
        let kept = first.store.renew(&first.member, &first.tokens()).await.unwrap();
        assert_eq!(kept.len(), usize::from(LANES));
    }
    let mut second = Owner::join(harness.store(), LONG).await;
    assert!(second.take(LANES).await.is_empty(), "a lease that was renewed was taken");
    let lost = first.tokens()[..10].to_vec();
    first.store.give(&first.member, &lost).await.unwrap();
    assert_eq!(second.take(LANES).await.len(), 10);
    let kept = first.store.renew(&first.member, &first.tokens()).await.unwrap();
    let others: HashSet<Lane> = first.tokens()[10..].iter().map(|token| token.lane).collect();
    assert_eq!(kept, others, "the lanes that are still its own, and no other");
    let owners = harness.inspect().lanes(crate::DEFAULT_TARGET).await.unwrap();
    let seconds = owners.iter().filter(|lane| lane.owner == Some(second.member.worker)).count();
    assert_eq!(seconds, 10, "a renewal under an old token took lanes back");
}

pub(crate) async fn an_old_token_renews_gives_and_names_nothing<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[event("k", "one")]).await;
    let first = Owner::of_all(&*harness, LONG).await;
    first.store.give(&first.member, &first.tokens()).await.unwrap();
    let second = Owner::of_all(&*harness, LONG).await;
    let position = second.hot().await[0].event.position;
    let before = harness.inspect().lanes(crate::DEFAULT_TARGET).await.unwrap();
    let store = &first.store;
    assert!(store.renew(&first.member, &first.tokens()).await.unwrap().is_empty());
    store.give(&first.member, &first.tokens()).await.unwrap();
    for token in first.tokens() {
        assert!(!store.name(&first.member, token, position).await.unwrap(), "an old token named an event");
    }
    let flush = Flush {
        target: crate::DEFAULT_TARGET.to_owned(),
        tokens: first.tokens(),
        settlements: Vec::new(),
        calm: first.tokens().iter().map(|token| token.lane).collect(),
    };
    store.settle(&flush).await.unwrap();
    store.leave(&first.member).await.unwrap();
    assert_eq!(harness.inspect().lanes(crate::DEFAULT_TARGET).await.unwrap(), before);
    let kept = store.renew(&second.member, &second.tokens()).await.unwrap();
    assert_eq!(kept.len(), usize::from(LANES), "the successor has all it had");
}

/// The same worker, again: its old leases are as old as anybody's.
pub(crate) async fn a_worker_that_takes_its_lane_again_has_a_new_token<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[event("k", "one")]).await;
    let mut owner = Owner::of_all(&*harness, LONG).await;
    let old =
        Owner { store: owner.store.clone(), member: owner.member.clone(), leased: owner.leased.clone() };
    owner.store.give(&owner.member, &owner.tokens()).await.unwrap();
    assert_eq!(owner.take(LANES).await.len(), usize::from(LANES));
    let rows = owner.hot().await;
    let lane = rows[0].event.lane;
    assert_eq!(
        old.publish(&rows).await.stale,
        HashSet::from([lane]),
        "the lane is its own, the token is old"
    );
    assert_eq!(owner.publish(&rows).await, Default::default());
}

pub(crate) async fn lanes_of_different_targets_are_independent<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[loose("here"), loose("there").target("other")]).await;
    let here = Owner::of_all(&*harness, LONG).await;
    let mut there = Owner::join_target(harness.store(), LONG, "other").await;
    assert_eq!(there.take(LANES).await.len(), usize::from(LANES));
    let rows = there.hot().await;
    assert_eq!(there.publish(&rows).await, Default::default());
    assert_eq!(here.hot().await.len(), 1, "a settlement touched another target");
    let census = here.store.census(&here.member).await.unwrap();
    let workers: Vec<_> = census.workers.iter().map(|peer| peer.worker).collect();
    assert_eq!(workers, [here.member.worker], "a target's workers are its own");
    there.leave().await;
    assert_eq!(here.store.renew(&here.member, &here.tokens()).await.unwrap().len(), usize::from(LANES));
}

pub(crate) async fn the_census_knows_the_living_in_the_order_of_their_ids<H: StoreHarness>(harness: Arc<H>) {
    let mut owners = Vec::new();
    for _ in 0..4 {
        owners.push(Owner::join(harness.store(), LONG).await);
    }
    let lost = Owner::join(harness.store(), LONG).await;
    let census = owners[0].store.census(&owners[0].member).await.unwrap();
    assert_eq!((census.workers.len(), census.paused), (5, false));
    assert!(census.workers.is_sorted_by_key(|peer| peer.worker), "every worker sees the same order");
    lost.lapse(&*harness).await;
    let census = owners[0].store.census(&owners[0].member).await.unwrap();
    let is_there = |census: &Census, worker| census.workers.iter().any(|peer| peer.worker == worker);
    assert!(!is_there(&census, lost.member.worker), "a lost worker is counted among the living");
    let gone = owners.pop().unwrap();
    let worker = gone.member.worker;
    gone.leave().await;
    let census = owners[0].store.census(&owners[0].member).await.unwrap();
    assert_eq!(census.workers.len(), 3);
    assert!(!is_there(&census, worker));
    harness.inspect().set_paused(crate::DEFAULT_TARGET, true, "suite").await.unwrap();
    assert!(owners[0].store.census(&owners[0].member).await.unwrap().paused);
}

/// What an owner that works carefully had in hand is known to the next one.
pub(crate) async fn a_named_event_is_handed_to_the_next_owner<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[event("k", "one"), event("k", "two")]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let (lane, position) = (rows[0].event.lane, rows[0].event.position);
    assert!(owner.store.name(&owner.member, owner.leased(lane).token, position).await.unwrap());
    owner.lapse(&*harness).await;
    let next = Owner::of_all(&*harness, LONG).await;
    assert_eq!((next.leased(lane).named, next.leased(lane).crashes), (Some(position), 1));
    let found = next.store.find(&next.member, lane, position).await.unwrap().expect("it is there");
    assert_eq!((super::text(&found.event).as_str(), found.place.is_hot()), ("one", true));
    let park = Change::Park {
        reason: Reason::Retry,
        due: Due::Never,
        attempts: found.event.attempts,
        failure: None,
    };
    let flush = Flush {
        target: crate::DEFAULT_TARGET.to_owned(),
        tokens: next.tokens(),
        settlements: vec![super::settlement(&found, &park)],
        calm: vec![lane],
    };
    next.store.settle(&flush).await.unwrap();
    let found = next.store.find(&next.member, lane, position).await.unwrap().expect("it is parked");
    assert!(!found.place.is_hot());
    assert!(next.store.find(&next.member, lane, position + 1_000).await.unwrap().is_none());
    next.leave().await;
    let last = Owner::of_all(&*harness, LONG).await;
    assert_eq!((last.leased(lane).named, last.leased(lane).crashes), (None, 0), "a calm lane has no record");
}
