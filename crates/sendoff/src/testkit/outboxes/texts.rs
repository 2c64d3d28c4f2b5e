//! Texts that somebody might have made on purpose.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    HOUR, LONG, Owner, by_key, claim, deliver, enqueue, event, events, key_of, names, numbered, worker,
};
use crate::event::NewEvent;
use crate::outbox::{Change, Due, Explanation, Outcome, Reason, Redrive, Redriven};
use crate::testkit::StoreHarness;

const HOSTILE: [&str; 16] = [
    "'; DROP TABLE event; --",
    "\"quoted\"",
    "`ticks`",
    "100%",
    "%s %d {} {{}} $1 ?1 :name @var",
    "back\\slash",
    "\\'; --",
    "under_score",
    "<script>alert(1)</script>",
    "🦀 crab 👩‍👩‍👧‍👦",
    "שלום עולם",
    "\u{202e}right to left\u{202c}",
    "null",
    " leading and trailing ",
    "a/b?c=d&e=f#g",
    "\u{feff}mark",
];

pub(crate) async fn hostile_texts_survive<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<NewEvent> = HOSTILE
        .iter()
        .map(|text| {
            NewEvent::new(*text)
                .key(*text)
                .payload(*text)
                .content_type(*text)
                .header(*text, *text)
                .header("n", *text)
        })
        .collect();
    enqueue(&*harness, &all).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, HOSTILE.len()).await;
    // Through the parked events and back, under the same texts as errors.
    for claimed in &claimed {
        let error = claimed.event.topic.clone();
        super::settle(&worker, std::slice::from_ref(claimed), &Outcome::retry(HOUR, error)).await;
    }
    let inspect = harness.inspect();
    for claimed in &claimed {
        match inspect.explain(claimed.event.event_id).await.unwrap() {
            Explanation::Parked { failure: Some(failure), .. } => {
                assert_eq!(failure.error, claimed.event.topic)
            }
            other => panic!("a parked event is explained by {other:?}"),
        }
        let key = claimed.event.key.as_deref().unwrap();
        let redrive = Redrive { selection: key_of(key), limit: 10, dry_run: false, by: key.to_owned() };
        assert_eq!(inspect.redrive(&redrive).await.unwrap(), Redriven { dead: 0, parked: 1 }, "key {key:?}");
    }
    super::stop(worker).await;
    let worker = super::worker(&*harness).await;
    let mut delivered = deliver(&worker, HOSTILE.len()).await;
    delivered.sort_by_key(|event| event.position);
    for (event, text) in delivered.iter().zip(HOSTILE) {
        assert_eq!((event.topic.as_str(), event.key.as_deref()), (text, Some(text)));
        assert_eq!((event.payload.as_slice(), event.content_type.as_deref()), (text.as_bytes(), Some(text)));
        assert_eq!(event.headers.get(text).map(String::as_str), Some(text));
        assert_eq!(event.headers.get("n").map(String::as_str), Some(text));
    }
}

pub(crate) async fn targets_with_hostile_names_work<H: StoreHarness>(harness: Arc<H>) {
    for target in ["it's", "a\\b", "100%_", "🦀"] {
        enqueue(&*harness, &[event("k", target).target(target)]).await;
        harness.inspect().set_paused(target, false, "o'brien").await.unwrap();
        let worker = super::start(harness.store(), |config| target.clone_into(&mut config.target)).await;
        assert_eq!(super::texts(&deliver(&worker, 1).await), [target]);
        super::stop(worker).await;
    }
}

/// Databases like to call these equal.
pub(crate) async fn keys_that_look_alike_stay_apart<H: StoreHarness>(harness: Arc<H>) {
    let keys = ["a", "A", "a ", "ä", "a\u{308}"];
    let all: Vec<NewEvent> = (0..2).flat_map(|_| keys.map(|key| event(key, "before"))).collect();
    enqueue(&*harness, &all).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let retry = |_: &str| Change::Park {
        reason: Reason::Retry,
        due: Due::In(HOUR),
        attempts: Default::default(),
        failure: None,
    };
    // The first event of `a` fails; that is no business of the others.
    let changes: Vec<_> = rows
        .iter()
        .enumerate()
        .filter(|(index, row)| *index == 0 || row.event.key.as_deref() != Some("a"))
        .map(|(index, row)| (row, if index == 0 { retry("a") } else { Change::Publish }))
        .collect();
    assert_eq!(owner.settle(&changes).await, Default::default());
    owner.leave().await;
    let after: Vec<NewEvent> = keys.iter().flat_map(|key| numbered(key, 3)).collect();
    enqueue(&*harness, &after).await;
    let worker = worker(&*harness).await;
    let delivered = deliver(&worker, 12).await;
    let expected: BTreeMap<String, Vec<String>> =
        keys[1..].iter().map(|key| ((*key).to_owned(), names(key, 1..=3))).collect();
    assert_eq!(by_key(&delivered), expected, "each key in its own order, and `a` alone waits");
    let parked = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    assert_eq!(parked.len(), 1);
    assert_eq!((parked[0].key.as_deref(), parked[0].behind), (Some("a"), 4));
    let owner = Owner::watching(harness.store());
    assert_eq!(events(&owner.hot().await).count(), 0, "what waits behind a parked event is parked too");
}
