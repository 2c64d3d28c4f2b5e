//! What the host writes is what workers read.

use std::collections::HashSet;
use std::sync::Arc;

use super::{LONG, Owner, deliver, enqueue, event, events, loose, numbered, text, texts, worker};
use crate::error::StoreErrorKind;
use crate::event::{
    Attempts, EventId, HEADERS_BYTES_MAX, KEY_BYTES_MAX, NewEvent, PAYLOAD_BYTES_MAX, TARGET_BYTES_MAX,
    TOPIC_BYTES_MAX,
};
use crate::testkit::{HostTransaction as _, StoreHarness};

pub(crate) async fn committed_events_are_read_and_rolled_back_ones_never<H: StoreHarness>(harness: Arc<H>) {
    let owner = Owner::join(harness.store(), LONG).await;
    for (text, commits) in [("one", true), ("two", false), ("three", true), ("four", false)] {
        let mut transaction = harness.begin().await;
        transaction.enqueue(&[event("k", text), loose(text)]).await.unwrap();
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await;
        }
    }
    let mut forgotten = harness.begin().await;
    forgotten.enqueue(&[event("k", "five")]).await.unwrap();
    drop(forgotten);
    assert_eq!(texts(events(&owner.hot().await)), ["one", "one", "three", "three"]);
    owner.leave().await;
    let worker = worker(&*harness).await;
    assert_eq!(deliver(&worker, 4).await.len(), 4);
}

pub(crate) async fn an_open_transaction_shows_nothing<H: StoreHarness>(harness: Arc<H>) {
    let owner = Owner::join(harness.store(), LONG).await;
    let mut transaction = harness.begin().await;
    transaction.enqueue(&[event("k", "one")]).await.unwrap();
    assert!(owner.hot().await.is_empty(), "an event was read before it was committed");
    transaction.commit().await.unwrap();
    assert_eq!(texts(events(&owner.hot().await)), ["one"]);
}

pub(crate) async fn positions_rise_in_the_order_of_writing<H: StoreHarness>(harness: Arc<H>) {
    let mut written = Vec::new();
    let mut transaction = harness.begin().await;
    for call in 0..3 {
        let mixed: Vec<NewEvent> = (0..100)
            .map(|number| if number % 3 == 0 { loose("x") } else { event(&format!("k{}", number % 7), "x") })
            .collect();
        written.extend(transaction.enqueue(&mixed).await.unwrap());
        assert_eq!(written.len(), 100 * (call + 1), "an id for each event");
    }
    transaction.commit().await.unwrap();
    written.extend(enqueue(&*harness, &[event("k1", "last")]).await);
    let owner = Owner::join(harness.store(), LONG).await;
    let rows = owner.hot().await;
    let read: Vec<EventId> = rows.iter().map(|row| row.event.event_id).collect();
    assert_eq!(read, written, "read in the order of positions, against the order of writing");
    let positions: HashSet<i64> = rows.iter().map(|row| row.event.position).collect();
    assert_eq!(positions.len(), rows.len(), "two events have one position");
    assert!(positions.iter().all(|position| *position > 0), "a position is above the lowest floor, 0");
}

pub(crate) async fn events_of_a_key_share_a_lane<H: StoreHarness>(harness: Arc<H>) {
    let mut all = Vec::new();
    for key in 0..50 {
        all.extend(numbered(&format!("k{key}"), 3));
    }
    all.extend((0..200).map(|_| loose("x")));
    enqueue(&*harness, &all).await;
    let rows = Owner::join(harness.store(), LONG).await.hot().await;
    for key in 0..50 {
        let key = format!("k{key}");
        let of_key = rows.iter().filter(|row| row.event.key.as_ref() == Some(&key));
        let lanes: HashSet<u16> = of_key.map(|row| row.event.lane).collect();
        assert_eq!(lanes.len(), 1, "the events of a key are in one lane");
    }
    let loose: HashSet<u16> =
        rows.iter().filter(|row| row.event.key.is_none()).map(|row| row.event.lane).collect();
    assert!(loose.len() > 32, "200 events without a key use {} lanes only", loose.len());
    assert!(rows.iter().all(|row| row.event.lane < crate::outbox::LANES));
}

pub(crate) async fn targets_stay_apart<H: StoreHarness>(harness: Arc<H>) {
    enqueue(
        &*harness,
        &[event("k", "here"), event("k", "there").target("other"), loose("there").target("other")],
    )
    .await;
    let here = Owner::join(harness.store(), LONG).await;
    let there = Owner::join_target(harness.store(), LONG, "other").await;
    let nowhere = Owner::join_target(harness.store(), LONG, "nowhere").await;
    assert_eq!(texts(events(&here.hot().await)), ["here"]);
    assert_eq!(texts(events(&there.hot().await)), ["there", "there"]);
    assert!(there.hot().await.iter().all(|row| row.event.target == "other"));
    assert!(nowhere.hot().await.is_empty());
}

pub(crate) async fn an_event_id_is_kept_or_made<H: StoreHarness>(harness: Arc<H>) {
    let given = EventId::generate();
    let ids = enqueue(&*harness, &[loose("a").event_id(given), loose("b"), loose("c")]).await;
    assert_eq!(ids[0], given);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3, "made ids differ");
    let read: Vec<EventId> =
        events(&Owner::join(harness.store(), LONG).await.hot().await).map(|event| event.event_id).collect();
    assert_eq!(read, ids);
}

pub(crate) async fn a_duplicate_id_fails_the_host_and_leaves_nothing<H: StoreHarness>(harness: Arc<H>) {
    let id = EventId::generate();
    enqueue(&*harness, &[loose("first").event_id(id)]).await;
    let mut transaction = harness.begin().await;
    let written = transaction.enqueue(&[loose("new"), loose("second").event_id(id)]).await;
    let committed = match written {
        Ok(_) => transaction.commit().await,
        Err(error) => {
            transaction.rollback().await;
            Err(error)
        }
    };
    assert!(committed.is_err(), "two events have one id");
    let rows = Owner::join(harness.store(), LONG).await.hot().await;
    assert_eq!(texts(events(&rows)), ["first"], "of a transaction that failed nothing is left");
}

pub(crate) async fn every_field_survives<H: StoreHarness>(harness: Arc<H>) {
    let bytes: Vec<u8> = (0..=u8::MAX).chain((0..=u8::MAX).rev()).collect();
    let id = EventId::generate();
    let full = NewEvent::new("orders.placed")
        .key("order-4711")
        .payload(bytes.clone())
        .content_type("application/x-everything; q=\"1\"")
        .header("tenant", "acme")
        .header("Grüße", "snow ☃, clef 𝄞, שלום")
        .header("empty", "")
        .event_id(id);
    let bare = NewEvent::new("t");
    enqueue(&*harness, &[full.clone(), bare]).await;
    let rows = Owner::join(harness.store(), LONG).await.hot().await;
    let event = &rows[0].event;
    assert_eq!(event.event_id, id);
    assert_eq!(event.topic, full.topic);
    assert_eq!(event.key, full.key);
    assert_eq!(event.target, full.target);
    assert_eq!(event.payload, bytes, "all 256 values of a byte");
    assert_eq!(event.content_type, full.content_type);
    assert_eq!(event.headers, full.headers);
    assert_eq!(event.attempts, Attempts::default());
    assert!(rows[0].place.is_hot() && rows[0].later.is_none() && rows[0].corrupt.is_none());
    let bare = &rows[1].event;
    assert_eq!((bare.key.as_ref(), bare.content_type.as_ref()), (None, None));
    assert!(bare.payload.is_empty() && bare.headers.is_empty(), "nothing stays nothing");
}

pub(crate) async fn what_is_beyond_a_limit_is_refused_and_nothing_written<H: StoreHarness>(harness: Arc<H>) {
    let fine = || event("k", "fine");
    let refused = [
        NewEvent::new(""),
        NewEvent::new("x".repeat(TOPIC_BYTES_MAX + 1)),
        fine().key(""),
        fine().key("k".repeat(KEY_BYTES_MAX + 1)),
        fine().key("line\nbreak"),
        fine().target("t".repeat(TARGET_BYTES_MAX + 1)),
        fine().header("n", "v".repeat(HEADERS_BYTES_MAX)),
        fine().payload(vec![7; PAYLOAD_BYTES_MAX + 1]),
    ];
    let mut transaction = harness.begin().await;
    for bad in refused {
        let error = transaction.enqueue(&[fine(), bad]).await.expect_err("it is beyond a limit");
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    }
    // The transaction is the host's: what was refused has not broken it.
    transaction.enqueue(&[event("k", "after")]).await.unwrap();
    transaction.commit().await.unwrap();
    let rows = Owner::join(harness.store(), LONG).await.hot().await;
    assert_eq!(texts(events(&rows)), ["after"], "of a call that was refused nothing is written");
}

pub(crate) async fn what_is_just_within_the_limits_is_taken<H: StoreHarness>(harness: Arc<H>) {
    let target = "t".repeat(TARGET_BYTES_MAX);
    // Four bytes a character: limits count bytes, and columns must not count less.
    let wide = "𝄞".repeat(KEY_BYTES_MAX / 4);
    let largest = NewEvent::new("x".repeat(TOPIC_BYTES_MAX))
        .key("k".repeat(KEY_BYTES_MAX))
        .target(target.clone())
        .header("n", "v".repeat(HEADERS_BYTES_MAX - 1))
        .payload(vec![0xff; PAYLOAD_BYTES_MAX]);
    let widest = NewEvent::new(wide.clone()).key(wide.clone()).target(target.clone()).payload("wide");
    enqueue(&*harness, &[largest.clone(), widest]).await;
    let rows = Owner::join_target(harness.store(), LONG, &target).await.hot().await;
    assert_eq!(rows.len(), 2);
    let event = &rows[0].event;
    assert!(event.payload == largest.payload, "the largest payload survives");
    assert_eq!((&event.topic, &event.key, &event.headers), (&largest.topic, &largest.key, &largest.headers));
    assert_eq!((text(&rows[1].event).as_str(), &rows[1].event.topic), ("wide", &wide));
}
