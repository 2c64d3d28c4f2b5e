//! What is asked of every database.

use std::time::Duration;

use sendoff::inbox::{Arrival, Once, Order};
use sendoff::stores::Names;
use sendoff::{EventId, StoreErrorKind};

use super::Case;
use super::host::{Pool, TestInbox};

/// Who has not been answered by then waits.
const STILL: Duration = Duration::from_millis(300);

pub(super) fn all() -> [(&'static str, Case); 13] {
    [
        ("once_is_first_then_seen", |inbox| Box::pin(first_then_seen(inbox))),
        ("a_rollback_forgets", |inbox| Box::pin(rollback_forgets(inbox))),
        ("consumers_are_apart", |inbox| Box::pin(consumers_apart(inbox))),
        ("a_batch_is_answered_in_order", |inbox| Box::pin(batch_in_order(inbox))),
        ("the_second_waits_and_is_seen_after_a_commit", |inbox| Box::pin(second_after_commit(inbox))),
        ("the_second_waits_and_is_first_after_a_rollback", |inbox| Box::pin(second_after_rollback(inbox))),
        ("at_a_stricter_isolation_nothing_is_handled_twice", |inbox| Box::pin(stricter(inbox))),
        ("batches_in_any_order_do_not_deadlock", |inbox| Box::pin(no_deadlock(inbox))),
        ("bad_input_is_refused_and_changes_nothing", |inbox| Box::pin(bad_input(inbox))),
        ("a_missing_table_is_said", |inbox| Box::pin(missing_table(inbox))),
        ("purge_takes_what_is_old_in_batches", |inbox| Box::pin(purge(inbox))),
        ("stats_are_by_consumer", |inbox| Box::pin(stats(inbox))),
        ("a_key_is_followed_in_the_consumers_transaction", |inbox| Box::pin(follow(inbox))),
    ]
}

fn ids(count: usize) -> Vec<EventId> {
    (0..count).map(|_| EventId::generate()).collect()
}

async fn commit_once(inbox: &TestInbox, consumer: &str, ids: &[EventId]) -> Vec<Once> {
    let mut transaction = inbox.pool.begin().await;
    let answers = transaction.once_many(&inbox.inbox, consumer, ids).await.unwrap();
    transaction.commit().await.unwrap();
    answers
}

async fn first_then_seen(inbox: TestInbox) {
    let id = EventId::generate();
    let mut transaction = inbox.pool.begin().await;
    assert_eq!(transaction.once(&inbox.inbox, "billing", id).await.unwrap(), Once::First);
    assert_eq!(transaction.once(&inbox.inbox, "billing", id).await.unwrap(), Once::Seen, "in itself too");
    transaction.commit().await.unwrap();
    let mut transaction = inbox.pool.begin().await;
    assert_eq!(transaction.once(&inbox.inbox, "billing", id).await.unwrap(), Once::Seen);
    // A duplicate is no error: the transaction goes on.
    let other = EventId::generate();
    assert_eq!(transaction.once(&inbox.inbox, "billing", other).await.unwrap(), Once::First);
    transaction.commit().await.unwrap();
    assert_eq!(inbox.rows("inbox_seen").await, 2);
}

async fn rollback_forgets(inbox: TestInbox) {
    let id = EventId::generate();
    for _ in 0..2 {
        let mut transaction = inbox.pool.begin().await;
        assert_eq!(transaction.once(&inbox.inbox, "billing", id).await.unwrap(), Once::First);
        transaction.rollback().await;
    }
    assert_eq!(inbox.rows("inbox_seen").await, 0);
    assert_eq!(commit_once(&inbox, "billing", &[id]).await, [Once::First]);
}

/// Names that look alike are different ones, and text that breaks out of what is not bound breaks out of nothing.
async fn consumers_apart(inbox: TestInbox) {
    let id = EventId::generate();
    let long = "x".repeat(255);
    let names = ["billing", "Billing", "billing ", r#"it's; "q" \ `x` -- $1 ? %s {event} 😀"#, &long];
    for name in names {
        assert_eq!(commit_once(&inbox, name, &[id]).await, [Once::First], "{name}");
    }
    for name in names {
        assert_eq!(commit_once(&inbox, name, &[id]).await, [Once::Seen], "{name}");
    }
    let stats = inbox.inspect.stats().await.unwrap();
    let mut expected: Vec<&str> = names.to_vec();
    expected.sort_unstable();
    assert_eq!(stats.consumers.iter().map(|one| one.consumer.as_str()).collect::<Vec<_>>(), expected);
}

async fn batch_in_order(inbox: TestInbox) {
    assert_eq!(commit_once(&inbox, "billing", &[]).await, []);
    // More than one statement's worth.
    let all = ids(2_500);
    let known: Vec<EventId> = all.iter().step_by(3).copied().collect();
    assert!(commit_once(&inbox, "billing", &known).await.iter().all(|one| one.is_first()));
    let mut batch = all.clone();
    fastrand::shuffle(&mut batch);
    batch.extend_from_slice(&all[..100]);
    let answers = commit_once(&inbox, "billing", &batch).await;
    assert_eq!(answers.len(), batch.len());
    for (place, (id, answer)) in batch.iter().zip(&answers).enumerate() {
        let is_new = !known.contains(id) && !batch[..place].contains(id);
        assert_eq!(answer.is_first(), is_new, "{place}");
    }
    assert_eq!(inbox.rows("inbox_seen").await, 2_500);
}

async fn second_after_commit(inbox: TestInbox) {
    assert_eq!(second(&inbox, true).await, Once::Seen);
    assert_eq!(inbox.rows("inbox_seen").await, 1);
}

async fn second_after_rollback(inbox: TestInbox) {
    assert_eq!(second(&inbox, false).await, Once::First);
    assert_eq!(inbox.rows("inbox_seen").await, 1);
}

/// What the second of two is told, which asks while the first has not ended.
async fn second(inbox: &TestInbox, commits: bool) -> Once {
    let id = EventId::generate();
    let mut first = inbox.pool.begin().await;
    assert_eq!(first.once(&inbox.inbox, "billing", id).await.unwrap(), Once::First);
    let mut second = inbox.pool.begin().await;
    let writer = inbox.inbox.clone();
    let mut asked = tokio::spawn(async move {
        let answer = second.once(&writer, "billing", id).await.unwrap();
        second.commit().await.unwrap();
        answer
    });
    assert!(tokio::time::timeout(STILL, &mut asked).await.is_err(), "it waits for the first one's end");
    if commits {
        first.commit().await.unwrap();
    } else {
        first.rollback().await;
    }
    asked.await.unwrap()
}

/// A snapshot from before the other's commit must not make an event new.
async fn stricter(inbox: TestInbox) {
    let id = EventId::generate();
    let begin = match &inbox.pool {
        Pool::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        Pool::Mysql(_) => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        Pool::Sqlite(_) => "BEGIN",
    };
    let mut late = inbox.pool.begin_with(Some(begin)).await;
    // Its snapshot is taken by its first read.
    late.execute(format!("SELECT COUNT(*) FROM {}inbox_seen", inbox.prefix)).await.unwrap();
    assert_eq!(commit_once(&inbox, "billing", &[id]).await, [Once::First]);
    let answer = late.once(&inbox.inbox, "billing", id).await;
    match &inbox.pool {
        // Its own write waits for nobody's snapshot.
        Pool::Mysql(_) => assert_eq!(answer.unwrap(), Once::Seen),
        _ => assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Contended),
    }
    late.rollback().await;
    assert_eq!(commit_once(&inbox, "billing", &[id]).await, [Once::Seen]);
}

async fn no_deadlock(inbox: TestInbox) {
    let all = ids(200);
    let mut workers = Vec::new();
    for _ in 0..4 {
        let (pool, writer, all) = (inbox.pool.clone(), inbox.inbox.clone(), all.clone());
        workers.push(tokio::spawn(async move {
            let mut first = 0;
            for _ in 0..10 {
                let mut batch = all.clone();
                fastrand::shuffle(&mut batch);
                batch.truncate(150);
                let mut transaction = pool.begin().await;
                let answers = transaction.once_many(&writer, "billing", &batch).await.unwrap();
                transaction.commit().await.unwrap();
                first += answers.iter().filter(|one| one.is_first()).count();
            }
            first
        }));
    }
    let mut first = 0;
    for worker in workers {
        first += worker.await.unwrap();
    }
    assert_eq!(first as i64, inbox.rows("inbox_seen").await, "each was the first of one");
}

async fn bad_input(inbox: TestInbox) {
    let mut transaction = inbox.pool.begin().await;
    for name in ["", "a\0b", "a\nb", &"x".repeat(256)] {
        let error = transaction.once(&inbox.inbox, name, EventId::generate()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("consumer"), "{error}");
    }
    let keyed = |key: String, source: String| Arrival {
        key: Some(key),
        source: Some(source),
        position: Some(1),
        ..Arrival::new(EventId::generate())
    };
    for (arrival, part) in [
        (keyed("k".repeat(256), String::new()), "key"),
        (keyed(String::new(), String::new()), "key"),
        (keyed("k".to_owned(), "s".repeat(256)), "source"),
    ] {
        let error = transaction.follow(&inbox.inbox, "billing", &arrival).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    // Nothing of it has reached the database: the transaction is as good as new.
    assert_eq!(transaction.once(&inbox.inbox, "billing", EventId::generate()).await.unwrap(), Once::First);
    transaction.commit().await.unwrap();
    assert_eq!((inbox.rows("inbox_seen").await, inbox.rows("inbox_order").await), (1, 0));
}

async fn missing_table(inbox: TestInbox) {
    let names = match &inbox.pool {
        Pool::Postgres(_) => Names::schema("no such schema").unwrap(),
        _ => Names::prefix("no_such_").unwrap(),
    };
    let nowhere = sendoff::inbox::Inbox::named(names);
    let mut transaction = inbox.pool.begin().await;
    let error = transaction.once(&nowhere, "billing", EventId::generate()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema, "{error:?}");
    assert!(error.to_string().contains("SqlInbox::migration"), "{error}");
    transaction.rollback().await;
}

async fn purge(inbox: TestInbox) {
    const HOUR: Duration = Duration::from_secs(3_600);
    let (old, new) = (ids(1_200), ids(50));
    for consumer in ["billing", "shipping"] {
        assert!(commit_once(&inbox, consumer, &old).await.iter().all(|one| one.is_first()));
        let mut transaction = inbox.pool.begin().await;
        for key in ["a", "b"] {
            let arrival =
                Arrival { key: Some(key.to_owned()), position: Some(1), ..Arrival::new(EventId::generate()) };
            assert_eq!(transaction.follow(&inbox.inbox, consumer, &arrival).await.unwrap(), Order::InOrder);
        }
        transaction.commit().await.unwrap();
    }
    inbox.age("inbox_seen", "seen_at", "", 2 * 3_600).await;
    let key = if matches!(inbox.pool, Pool::Mysql(_)) { "`key`" } else { "\"key\"" };
    inbox.age("inbox_order", "moved_at", &format!("WHERE {key} = 'a'"), 2 * 3_600).await;
    assert!(commit_once(&inbox, "billing", &new).await.iter().all(|one| one.is_first()));

    assert_eq!(inbox.inspect.purge(HOUR * 3, 10_000).await.unwrap(), 0, "nothing is that old");
    assert_eq!(inbox.inspect.purge(HOUR, 0).await.unwrap(), 0);
    assert_eq!(inbox.inspect.purge(HOUR, 700).await.unwrap(), 700);
    assert_eq!(inbox.rows("inbox_seen").await, 2_450 - 700);
    let mut purged = 700;
    loop {
        let gone = inbox.inspect.purge(HOUR, 700).await.unwrap();
        assert!(gone <= 700);
        purged += gone;
        if gone == 0 {
            break;
        }
    }
    assert_eq!(purged, 2_402, "events and keys");
    assert_eq!((inbox.rows("inbox_seen").await, inbox.rows("inbox_order").await), (50, 2));
    // What is forgotten is new again; what is kept is not.
    assert_eq!(commit_once(&inbox, "billing", &[old[0], new[0]]).await, [Once::First, Once::Seen]);
}

async fn stats(inbox: TestInbox) {
    assert_eq!(inbox.inspect.stats().await.unwrap().consumers, []);
    let all = ids(30);
    assert_eq!(commit_once(&inbox, "billing", &all).await.len(), 30);
    inbox.age("inbox_seen", "seen_at", "", 100).await;
    assert_eq!(commit_once(&inbox, "billing", &ids(1)).await, [Once::First]);
    assert_eq!(commit_once(&inbox, "shipping", &all[..10]).await.len(), 10);
    let mut transaction = inbox.pool.begin().await;
    let arrival = Arrival { key: Some("k".into()), position: Some(1), ..Arrival::new(EventId::generate()) };
    assert_eq!(transaction.follow(&inbox.inbox, "audit", &arrival).await.unwrap(), Order::InOrder);
    transaction.commit().await.unwrap();
    let stats = inbox.inspect.stats().await.unwrap();
    let picture: Vec<(&str, u64, u64)> =
        stats.consumers.iter().map(|one| (one.consumer.as_str(), one.seen, one.keys)).collect();
    assert_eq!(picture, [("audit", 0, 1), ("billing", 31, 0), ("shipping", 10, 0)]);
    let billing = &stats.consumers[1];
    let (oldest, newest) = (billing.oldest.unwrap().as_secs(), billing.newest.unwrap().as_secs());
    assert!((100..160).contains(&oldest) && newest < 60, "{oldest} {newest}");
    assert!(!stats.has_more);
    assert_eq!(stats.bytes.is_none(), matches!(inbox.pool, Pool::Sqlite(_)));
    assert!(stats.bytes.is_none_or(|bytes| bytes > 0), "{stats:?}");
}

async fn follow(inbox: TestInbox) {
    let at = |position, epoch| Arrival {
        key: Some("order-7".to_owned()),
        source: Some("/sendoff/default".to_owned()),
        position: Some(position),
        epoch,
        ..Arrival::new(EventId::generate())
    };
    let ask = async |arrival: &Arrival, commits: bool| {
        let mut transaction = inbox.pool.begin().await;
        let order = transaction.follow(&inbox.inbox, "billing", arrival).await.unwrap();
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await;
        }
        order
    };
    let first = at(1, Some(5));
    assert_eq!(ask(&first, false).await, Order::InOrder);
    assert_eq!(ask(&first, true).await, Order::InOrder, "a rollback takes it back");
    assert_eq!(ask(&first, true).await, Order::Duplicate);
    assert_eq!(ask(&at(3, Some(6)), true).await, Order::InOrder);
    let late = at(9, Some(5));
    assert_eq!(ask(&late, true).await, Order::StaleEpoch { newest: 6 });
    assert_eq!(ask(&at(2, Some(7)), true).await, Order::Behind { last: 3 }, "redriven");
    assert_eq!(ask(&at(4, Some(6)), true).await, Order::StaleEpoch { newest: 7 });
    assert_eq!(ask(&at(4, Some(7)), true).await, Order::InOrder);
    assert_eq!(ask(&Arrival { epoch: Some(7), ..late }, true).await, Order::InOrder, "the owner's own copy");
    assert_eq!(ask(&at(8, None), true).await, Order::Behind { last: 9 }, "without an epoch positions decide");
    assert_eq!(ask(&at(10, None), true).await, Order::InOrder);
    assert_eq!(ask(&at(11, Some(6)), true).await, Order::StaleEpoch { newest: 7 }, "which is not forgotten");
    let elsewhere = Arrival { source: None, ..at(1, Some(1)) };
    assert_eq!(ask(&elsewhere, true).await, Order::InOrder, "another source");
    let unordered = Arrival { key: None, ..at(1, Some(1)) };
    assert_eq!(ask(&unordered, true).await, Order::Unordered);
    assert_eq!(inbox.rows("inbox_order").await, 2);
}
