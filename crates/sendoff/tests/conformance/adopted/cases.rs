//! What every adopted table promises.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sendoff::adopted::{Answer, RowState};
use sendoff::outbox::{Claimed, Engine, Outcome, Receipt};

use super::host::{Host, Kind, Pool, start};

pub(super) const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(900);
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn text(claimed: &Claimed) -> String {
    String::from_utf8(claimed.event.payload.clone()).unwrap().trim_matches('"').to_owned()
}

/// Claims until something comes.
pub(super) async fn some(worker: &dyn Engine, limit: usize) -> Vec<Claimed> {
    let began = Instant::now();
    loop {
        let claimed = worker.claim(limit).await.unwrap();
        if !claimed.is_empty() {
            return claimed;
        }
        assert!(began.elapsed() < PATIENCE, "nothing was handed out");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(super) fn all(claimed: &[Claimed], outcome: &Outcome) -> Vec<(Receipt, Outcome)> {
    claimed.iter().map(|claimed| (claimed.receipt(), outcome.clone())).collect()
}

/// Settles them all so; how many were applied, stale, missing.
pub(super) async fn settle(
    worker: &dyn Engine,
    claimed: &[Claimed],
    outcome: &Outcome,
) -> (usize, usize, usize) {
    let summary = worker.settle(&all(claimed, outcome)).await.unwrap();
    (summary.applied, summary.stale, summary.missing)
}

pub(super) async fn every_row_is_delivered_and_marked(host: Host) {
    let ids = host.fill(300).await;
    let worker = host.worker(LONG).await;
    let mut seen = BTreeSet::new();
    while seen.len() < ids.len() {
        let claimed = some(&*worker, 70).await;
        assert!(claimed.len() <= 70);
        for claimed in &claimed {
            assert!(seen.insert(claimed.event.event_id.0), "handed out twice");
            assert_eq!((claimed.event.topic.as_str(), claimed.event.attempts.total()), ("orders", 0));
            assert_eq!(claimed.event.standing, sendoff::Standing::Unknown, "a time stamp is no position");
        }
        assert_eq!(settle(&*worker, &claimed, &Outcome::Published).await, (claimed.len(), 0, 0));
    }
    assert_eq!(seen, ids.iter().copied().collect());
    let [_, published, ..] = host.kind.words();
    for row in host.rows().await.into_values() {
        assert_eq!((row.status.as_str(), row.attempts, &row.owner), (published, 0, &None));
        if host.kind == Kind::Governance {
            assert_ne!(row.stamp.as_deref(), Some("x"), "the host's own programs notice every write");
        }
    }
    assert!(worker.claim(10).await.unwrap().is_empty());
}

pub(super) async fn an_active_lease_is_never_taken_and_an_expired_one_is(host: Host) {
    let ids = host.fill(20).await;
    let adopted = host.adopt().await;
    // Nobody renews what is claimed by hand.
    let lost = adopted.claim_batch("lost", 20, SHORT).await.unwrap();
    let began = Instant::now();
    assert_eq!(lost.rows.len(), 20);
    let worker = start(&adopted, LONG).await;
    let mut taken = Vec::new();
    while taken.len() < ids.len() {
        let claimed = worker.claim(20).await.unwrap();
        if !claimed.is_empty() {
            assert!(began.elapsed() >= SHORT - Duration::from_millis(50), "an active lease was taken");
        }
        assert!(began.elapsed() < PATIENCE, "an expired lease was not taken");
        taken.extend(claimed);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        taken.iter().all(|claimed| claimed.event.attempts.total() == 1),
        "to be lost with a worker is an attempt"
    );
    assert_eq!(settle(&*worker, &taken, &Outcome::Published).await, (20, 0, 0));
}

pub(super) async fn a_lease_is_kept_for_as_long_as_its_worker_lives(host: Host) {
    // Renewed at a third of it: on a busy machine that takes its time.
    let lease = Duration::from_secs(2);
    host.fill(5).await;
    let adopted = host.adopt().await;
    let (one, other) = (start(&adopted, lease).await, start(&adopted, lease).await);
    let claimed = some(&*one, 5).await;
    let until = Instant::now() + lease * 5 / 2;
    while Instant::now() < until {
        assert!(other.claim(5).await.unwrap().is_empty(), "an active lease was taken");
        let deadline = one.deadline(claimed[0].token).expect("it is still its own");
        assert!(deadline > tokio::time::Instant::now(), "the lease was renewed in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(settle(&*one, &claimed, &Outcome::Published).await, (5, 0, 0));
    assert_eq!(settle(&*one, &claimed, &Outcome::Published).await, (0, 5, 0), "its receipts are used up");
}

pub(super) async fn a_lost_lease_settles_nothing(host: Host) {
    host.fill(4).await;
    let adopted = host.adopt().await;
    let zombie = adopted.claim_batch("zombie", 4, Duration::from_millis(300)).await.unwrap();
    let keys: Vec<_> = zombie.rows.iter().map(|row| row.key.clone()).collect();
    let worker = start(&adopted, LONG).await;
    let mut claimed = Vec::new();
    while claimed.len() < 4 {
        claimed.extend(some(&*worker, 4).await);
    }
    let held = host.rows().await;
    for outcome in [
        Outcome::Published,
        Outcome::Release,
        Outcome::retry(Duration::ZERO, "the zombie says so"),
        Outcome::rejected("the zombie says so"),
    ] {
        let answers = adopted.settle_batch(&zombie, &keys, &outcome).await.unwrap();
        assert_eq!(answers, [Answer::Stale; 4], "{outcome:?}");
        assert_eq!(host.rows().await, held, "{outcome:?} of a zombie changes nothing");
    }
    assert_eq!(settle(&*worker, &claimed, &Outcome::Published).await, (4, 0, 0));
    let answers = adopted.settle_batch(&zombie, &keys, &Outcome::Release).await.unwrap();
    assert_eq!(answers, [Answer::Terminal; 4]);
    host.pool.run(&format!("DELETE FROM {}", host.table)).await;
    let answers = adopted.settle_batch(&zombie, &keys, &Outcome::Published).await.unwrap();
    assert_eq!(answers, [Answer::Missing; 4]);
}

pub(super) async fn each_outcome_is_written(host: Host) {
    let ids = host.fill(4).await;
    let worker = host.worker(LONG).await;
    let claimed = some(&*worker, 4).await;
    assert_eq!(
        claimed.iter().map(|one| one.event.event_id.0).collect::<Vec<_>>(),
        ids,
        "in the host's order"
    );
    let wait = Duration::from_millis(400);
    let began = Instant::now();
    let outcomes = vec![
        (claimed[0].receipt(), Outcome::Published),
        (claimed[1].receipt(), Outcome::retry(wait, "not \"now\"")),
        (claimed[2].receipt(), Outcome::rejected("never")),
        (claimed[3].receipt(), Outcome::Release),
    ];
    assert_eq!(worker.settle(&outcomes).await.unwrap().applied, 4);
    assert_eq!(worker.in_flight(), 0);
    let [pending, published, failed, dead] = host.kind.words();
    let rows = host.rows().await;
    let row = |index: usize| &rows[&ids[index]];
    assert_eq!((row(0).status.as_str(), row(0).attempts), (published, 0));
    assert_eq!((row(1).status.as_str(), row(1).attempts), (failed, 1));
    assert!(row(1).error.as_deref().unwrap().contains("now"));
    assert_eq!((row(2).status.as_str(), row(2).attempts), (dead, 1));
    assert!(row(2).error.as_deref().unwrap().contains("never"));
    assert_eq!(
        (row(3).status.as_str(), row(3).attempts),
        (pending, 0),
        "what was not tried spent no attempt"
    );
    assert!(rows.values().all(|row| row.owner.is_none()));

    let again = some(&*worker, 4).await;
    assert_eq!(again[0].event.event_id.0, ids[3], "what was given back comes at once");
    let retried = some(&*worker, 4).await;
    assert_eq!((retried[0].event.event_id.0, retried[0].event.attempts.total()), (ids[1], 1));
    assert!(began.elapsed() >= wait, "a retry waits");
}

pub(super) async fn attempts_run_out(host: Host) {
    let ids = host.fill(1).await;
    let adopted = host.adopt_as(host.mapping().attempts_max(3)).await;
    let worker = start(&adopted, LONG).await;
    for attempt in 0..3 {
        let claimed = some(&*worker, 1).await;
        assert_eq!(claimed[0].event.attempts.total(), attempt);
        settle(&*worker, &claimed, &Outcome::retry(Duration::ZERO, "no luck")).await;
    }
    let row = host.row(ids[0]).await;
    let [.., dead] = host.kind.words();
    assert_eq!((row.status.as_str(), row.attempts), (dead, 3));
    assert!(row.error.unwrap().contains("no luck"));
}

pub(super) async fn a_row_that_kills_its_workers_is_tried_alone_and_given_up(host: Host) {
    let ids = host.fill(3).await;
    let adopted = host.adopt_as(host.mapping().attempts_max(3)).await;
    let lease = Duration::from_millis(150);
    // Two workers are lost with all three in hand.
    for _ in 0..2 {
        let began = Instant::now();
        let mut lost = 0;
        while lost < 3 {
            lost += adopted.claim_batch("lost", 3, lease).await.unwrap().rows.len();
            assert!(began.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    tokio::time::sleep(lease).await;
    assert!(
        adopted.claim_batch("lost", 3, lease).await.unwrap().rows.is_empty(),
        "together they are not handed out any more"
    );
    let worker = start(&adopted, SHORT).await;
    let began = Instant::now();
    for _ in 0..2 {
        let claimed = some(&*worker, 10).await;
        assert_eq!(claimed.len(), 1, "one at a time");
        assert!(worker.claim(10).await.unwrap().is_empty(), "and nothing beside it");
        assert_eq!(claimed[0].event.attempts.total(), 2);
        settle(&*worker, &claimed, &Outcome::Published).await;
    }
    // The third one is the deadly one: its worker is lost for the third time.
    let claimed = some(&*worker, 10).await;
    let deadly = claimed[0].event.event_id.0;
    drop(worker);
    let worker = start(&adopted, SHORT).await;
    let [_, published, _, dead] = host.kind.words();
    while host.row(deadly).await.status != dead {
        assert!(worker.claim(10).await.unwrap().is_empty());
        assert!(began.elapsed() < PATIENCE, "it is given up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(host.row(deadly).await.error.unwrap().contains("handed out 3 times"));
    let others = ids.iter().filter(|id| **id != deadly);
    for id in others {
        assert_eq!(host.row(*id).await.status, published, "nothing else is accused with it");
    }
}

pub(super) async fn what_cannot_be_read_is_given_up(host: Host) {
    let ids = host.fill(2).await;
    let (table, columns) = (&host.table, host.kind);
    let topic = if columns == Kind::Framework { "type" } else { "EventType" };
    let id = if columns == Kind::Framework { "id" } else { "OutboxEntryId" };
    let (topic, id) = (host.pool.quote(topic), host.pool.quote(id));
    host.pool.run(&format!("UPDATE {table} SET {topic} = '' WHERE {id} = '{}'", ids[0])).await;
    let worker = host.worker(LONG).await;
    let claimed = some(&*worker, 10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].event.event_id.0, ids[1]);
    let row = host.row(ids[0]).await;
    let [.., dead] = host.kind.words();
    assert_eq!(row.status, dead);
    assert!(row.error.unwrap().contains("topic is empty"));
}

pub(super) async fn a_stop_gives_back_what_is_in_hand(host: Host) {
    host.fill(6).await;
    let adopted = host.adopt().await;
    let worker = start(&adopted, LONG).await;
    let claimed = some(&*worker, 6).await;
    settle(&*worker, &claimed[..2], &Outcome::Published).await;
    worker.stop(Duration::from_millis(50)).await.unwrap();
    assert!(worker.claim(6).await.unwrap().is_empty(), "who stopped hands out nothing");
    let next = start(&adopted, LONG).await;
    let rest = some(&*next, 6).await;
    assert_eq!(rest.len(), 4);
    assert!(rest.iter().all(|claimed| claimed.event.attempts.total() == 0));
    assert_eq!(settle(&*worker, &claimed[2..], &Outcome::Published).await, (0, 4, 0));
    assert_eq!(settle(&*next, &rest, &Outcome::Published).await, (4, 0, 0));
}

pub(super) async fn a_row_that_the_host_has_locked_is_waited_for(host: Host) {
    host.fill(3).await;
    let worker = host.worker(LONG).await;
    let claimed = some(&*worker, 3).await;
    let lock = format!("SELECT 1 FROM {} FOR UPDATE", host.table);
    let lock = sqlx::AssertSqlSafe(lock);
    let (held, release) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (locked, until) = (Arc::clone(&held), Arc::clone(&release));
    let holder = match host.pool.clone() {
        // Its writers wait for each other, and nobody steps over anything.
        Pool::Sqlite(_) => return,
        Pool::Postgres(pool) => tokio::spawn(async move {
            let mut transaction = pool.begin().await.unwrap();
            sqlx::query(lock).fetch_all(&mut *transaction).await.unwrap();
            locked.notify_one();
            until.notified().await;
            transaction.commit().await.unwrap();
        }),
        Pool::Mysql(pool) => tokio::spawn(async move {
            let mut transaction = pool.begin().await.unwrap();
            sqlx::query(lock).fetch_all(&mut *transaction).await.unwrap();
            locked.notify_one();
            until.notified().await;
            transaction.commit().await.unwrap();
        }),
    };
    held.notified().await;
    let settling = settle(&*worker, &claimed, &Outcome::Published);
    let released = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        release.notify_one();
        holder.await.unwrap();
    };
    let (settled, ()) = tokio::join!(settling, released);
    assert_eq!(settled, (3, 0, 0), "a locked row is neither lost nor stale");
}

pub(super) async fn two_workers_share_and_take_nothing_twice(host: Host) {
    let ids = host.fill(400).await;
    let adopted = host.adopt().await;
    let drain = |worker: Box<dyn Engine>| async move {
        let mut seen = Vec::new();
        let mut idle = 0;
        while idle < 5 {
            let claimed = worker.claim(17).await.unwrap();
            idle = if claimed.is_empty() { idle + 1 } else { 0 };
            settle(&*worker, &claimed, &Outcome::Published).await;
            seen.extend(claimed.iter().map(|claimed| claimed.event.event_id.0));
        }
        seen
    };
    let (one, other) = (start(&adopted, LONG).await, start(&adopted, LONG).await);
    let (one, other) = tokio::join!(tokio::spawn(drain(one)), tokio::spawn(drain(other)));
    let mut seen: Vec<_> = one.unwrap().into_iter().chain(other.unwrap()).collect();
    seen.sort_unstable();
    let mut expected = ids;
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

pub(super) async fn a_key_is_handed_out_in_order_where_that_is_wanted(host: Host) {
    let texts: Vec<(String, String)> =
        (0..120).map(|number| (format!("k{}", number % 7), format!("{number}"))).collect();
    host.insert(&texts.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect::<Vec<_>>()).await;
    let mut mapping = host.mapping().ordered_by_key();
    if host.kind == Kind::Framework {
        let error = host.try_adopt(mapping).await.unwrap_err().to_string();
        assert!(error.contains("largest first"), "a priority is no order of a key: {error}");
        mapping = sendoff::adopted::presets::framework_in_order(&host.table, "default").unwrap();
    }
    let adopted = host.adopt_as(mapping).await;
    let workers = [start(&adopted, LONG).await, start(&adopted, LONG).await, start(&adopted, LONG).await];
    let mut seen: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut in_flight: HashMap<String, usize> = HashMap::new();
    let mut hand: Vec<(usize, Vec<Claimed>)> = Vec::new();
    let mut random = fastrand::Rng::with_seed(7);
    let began = Instant::now();
    let mut failed = 0;
    while seen.values().map(Vec::len).sum::<usize>() < 120 {
        assert!(began.elapsed() < PATIENCE, "{seen:?}");
        let number = random.usize(..3);
        let claimed = workers[number].claim(9).await.unwrap();
        for one in &claimed {
            let owner = *in_flight.entry(one.event.key.clone().unwrap()).or_insert(number);
            assert_eq!(owner, number, "two workers have a key");
        }
        if !claimed.is_empty() {
            hand.push((number, claimed));
        }
        if hand.len() < 3 && random.bool() {
            continue;
        }
        let Some((number, claimed)) = hand.pop() else { continue };
        let mut outcomes = Vec::new();
        let mut stopped = BTreeSet::new();
        for one in &claimed {
            let key = one.event.key.clone().unwrap();
            let outcome = if stopped.contains(&key) {
                Outcome::Release
            } else if random.u8(..10) == 0 && failed < 2 * texts.len() {
                failed += 1;
                stopped.insert(key.clone());
                Outcome::Release
            } else {
                seen.entry(key.clone()).or_default().push(text(one).parse().unwrap());
                Outcome::Published
            };
            outcomes.push((one.receipt(), outcome));
        }
        for one in &claimed {
            in_flight.remove(one.event.key.as_ref().unwrap());
        }
        let summary = workers[number].settle(&outcomes).await.unwrap();
        assert_eq!(summary.applied, outcomes.len());
    }
    for (key, numbers) in &seen {
        assert!(numbers.is_sorted(), "{key}: {numbers:?}");
    }
}

pub(super) async fn every_state_is_listed(host: Host) {
    let ids = host.fill(6).await;
    let adopted = host.adopt().await;
    let expired = adopted.claim_batch("lost", 1, Duration::from_millis(1)).await.unwrap();
    assert_eq!(expired.rows.len(), 1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let batch = adopted.claim_batch("listed", 5, LONG).await.unwrap();
    // The expired one came first, or last: whichever it is, one is left to expire again.
    let keys: Vec<_> = batch.rows.iter().map(|row| row.key.clone()).collect();
    let settle = |index: usize, outcome: Outcome| {
        let (adopted, batch, key) = (&adopted, &batch, keys[index].clone());
        async move { assert_eq!(adopted.settle_batch(batch, &[key], &outcome).await.unwrap(), [Answer::Applied]) }
    };
    settle(0, Outcome::Published).await;
    settle(1, Outcome::retry(LONG, "later")).await;
    settle(2, Outcome::rejected("never")).await;
    settle(3, Outcome::Release).await;
    let listed = |state: RowState| {
        let adopted = &adopted;
        async move {
            let rows = adopted.list(state, 100).await.unwrap();
            rows.into_iter().map(|row| row.event.unwrap().event_id.0).collect::<BTreeSet<_>>()
        }
    };
    let of = |index: usize| batch.rows[index].event.as_ref().unwrap().event_id.0;
    assert_eq!(listed(RowState::Published).await, [of(0)].into());
    assert_eq!(listed(RowState::Failed).await, [of(1)].into());
    assert_eq!(listed(RowState::Dead).await, [of(2)].into());
    assert_eq!(listed(RowState::Processing).await, [of(4)].into());
    let claimed: BTreeSet<_> = (0..5).map(of).collect();
    let untouched: BTreeSet<_> = ids.iter().copied().filter(|id| !claimed.contains(id)).collect();
    let unprocessed: BTreeSet<_> = untouched.iter().copied().chain([of(3)]).collect();
    assert_eq!(listed(RowState::Unprocessed).await, unprocessed);
    assert_eq!(adopted.list(RowState::Unprocessed, 1).await.unwrap().len(), 1, "no more than wanted");
}
