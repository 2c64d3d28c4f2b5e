//! Rows that a host's plain INSERT can make and no worker can read: each becomes a dead letter, and the others are delivered.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::outbox::{
    Cause, EventState, Inspect, ListQuery, Listed, Outcome, Redrive, Selection, Worker, WorkerConfig,
};
use sendoff::testkit::StoreHarness;
use sendoff::{DEFAULT_TARGET, NewEvent};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::harness::outbox::{Path, mysql, postgres, sqlite};
use crate::servers::Server;
use crate::trial;

const GOOD: usize = 40;

/// What is wrong, and the statement that makes it; `{event}` is the table.
const SQLITE: [(&str, &str); 6] = [
    ("key", "INSERT INTO {event} (topic, key, payload) VALUES ('t', CAST(x'636166e9' AS TEXT), x'00')"),
    ("topic", "INSERT INTO {event} (topic, payload) VALUES (CAST(x'e9' AS TEXT), x'00')"),
    (
        "content_type",
        "INSERT INTO {event} (topic, payload, content_type) VALUES ('t', x'00', CAST(x'e9' AS TEXT))",
    ),
    ("headers", "INSERT INTO {event} (topic, payload, headers) VALUES ('t', x'00', '{\"n\": 1e400}')"),
    (
        "headers",
        "INSERT INTO {event} (topic, key, payload, headers) VALUES ('t', 'k', x'00', '{\"n\": {deep}}')",
    ),
    (
        "event_id",
        "INSERT INTO {event} (topic, payload, event_id) VALUES ('t', x'00', '--------------------a---------------')",
    ),
];

const POSTGRES: [(&str, &str); 2] = [
    ("headers", "INSERT INTO {event} (topic, key, payload, headers) VALUES ('t', 'k', '', '{\"n\": 1e400}')"),
    ("headers", "INSERT INTO {event} (topic, payload, headers) VALUES ('t', '', '{\"n\": {deep}}')"),
];

const MARIADB: [(&str, &str); 2] = [
    (
        "created_at",
        "INSERT INTO {event} (topic, payload, created_at) VALUES ('t', '', '0000-00-00 00:00:00')",
    ),
    (
        "headers",
        "INSERT INTO {event} (topic, `key`, payload, headers) VALUES ('t', 'k', '', '{\"n\": 1e400}')",
    ),
];

pub(crate) fn trials() -> Vec<Trial> {
    let name = |store: &str| format!("{store}::outbox::a_row_that_cannot_be_read_is_a_dead_letter");
    let mut trials = vec![
        trial(name("sqlite"), None, || async {
            for (column, statement) in SQLITE {
                let harness = sqlite(Path::Fast).await;
                let sql = filled(statement, &format!("{}event", harness.names));
                harness.host.execute(AssertSqlSafe(sql)).await.unwrap();
                dies_alone(&harness, column).await;
            }
        }),
        trial(name("mariadb"), Some(Server::Mariadb), || async {
            for (column, statement) in MARIADB {
                let harness = mysql(Server::Mariadb, Path::Fast).await;
                let sql = filled(statement, &format!("{}event", harness.names));
                harness.host.execute(AssertSqlSafe(sql)).await.unwrap();
                dies_alone(&harness, column).await;
            }
        }),
    ];
    for (word, path) in [("fast", Path::Fast), ("floor", Path::Floor)] {
        trials.push(trial(
            name(&format!("postgres15::{word}")),
            Some(Server::Postgres15),
            move || async move {
                for (column, statement) in POSTGRES {
                    let harness = postgres(Server::Postgres15, path).await;
                    let sql = filled(statement, &format!("{}.event", harness.names));
                    harness.host.execute(AssertSqlSafe(sql)).await.unwrap();
                    dies_alone(&harness, column).await;
                }
            },
        ));
    }
    trials
}

fn filled(statement: &str, table: &str) -> String {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    statement.replace("{event}", table).replace("{deep}", &deep)
}

/// All others are delivered; the unreadable one is listed with its cause, and redriven it dies again.
async fn dies_alone<H: StoreHarness>(harness: &H, column: &str) {
    use sendoff::testkit::HostTransaction as _;
    let mut transaction = harness.begin().await;
    let good: Vec<NewEvent> =
        (0..GOOD).map(|number| NewEvent::new("t").key(format!("key-{number}")).payload("good")).collect();
    transaction.enqueue(&good).await.unwrap();
    transaction.commit().await.unwrap();
    let worker = Worker::start(harness.store(), WorkerConfig::default()).await.unwrap();
    let inspect = harness.inspect();
    let mut delivered = 0;
    let dead = until_dead(&worker, &*inspect, &mut delivered, GOOD).await;
    let failure = dead.failure.clone().unwrap();
    assert_eq!(failure.cause, Cause::Corrupt, "{column}: {failure:?}");
    assert!(failure.error.contains(column), "{column}: {}", failure.error);
    if !dead.event.event_id.0.is_nil() {
        let shown = inspect.get(dead.event.event_id).await.unwrap();
        assert_eq!(shown.map(|shown| shown.state), Some(EventState::Dead), "{column}");
        inspect.explain(dead.event.event_id).await.unwrap();
    }
    inspect.counts().await.unwrap();
    let selection = Selection::Target(DEFAULT_TARGET.into());
    let redrive = Redrive { selection, limit: 10, dry_run: false, by: "test".into() };
    assert_eq!(inspect.redrive(&redrive).await.unwrap().dead, 1, "{column}");
    let again = until_dead(&worker, &*inspect, &mut delivered, GOOD).await;
    assert_eq!(again.failure.map(|failure| failure.cause), Some(Cause::Corrupt), "{column}");
    worker.stop(Duration::ZERO).await.unwrap();
}

/// Works until so many are delivered and one is dead.
async fn until_dead(worker: &Worker, inspect: &dyn Inspect, delivered: &mut usize, good: usize) -> Listed {
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(20), "{delivered} delivered, and none is dead");
        let claimed = worker.claim(500).await.unwrap();
        let outcomes: Vec<_> =
            claimed.iter().map(|claimed| (claimed.receipt(), Outcome::Published)).collect();
        *delivered += outcomes.len();
        worker.settle(&outcomes).await.unwrap();
        let query = ListQuery { target: DEFAULT_TARGET.into(), state: EventState::Dead, after: 0, limit: 10 };
        let mut dead = inspect.list(&query).await.unwrap();
        if *delivered == good
            && let Some(dead) = dead.pop()
        {
            return dead;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
