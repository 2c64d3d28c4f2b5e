//! What happens to tasks, published: each event is in the outbox if its transaction committed, and never if not.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::outbox::{Outcome, Store as OutboxStore, Worker, WorkerConfig};
use sendoff::stores::memory::{MemoryOutbox, MemoryTasks};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Names, SqlOutbox, SqlTasks};
use sendoff::tasks::{
    Claim, Inspect, Member, NewTask, Publish, Store, TaskEvent, TaskId, Tasks, When, WorkerId,
};

use crate::harness::outbox::Path;
use crate::harness::tasks::{mysql, postgres, sqlite};
use crate::servers::Server;
use crate::trial;

pub(super) fn trials() -> Vec<Trial> {
    let name = |store: &str| format!("{store}::tasks::what_happens_is_published_in_its_order");
    let mut trials = vec![trial(name("memory"), None, in_memory)];
    macro_rules! on {
        ($store:expr, $server:expr, $open:expr, $database:ident, $names:ident) => {
            trials.push(trial(name($store), $server, move || async move {
                let harness = $open.await;
                let database = $database::connect(&harness.url).await.unwrap();
                let names = Names::$names(&harness.names).unwrap();
                Migration::named(database.clone(), names.clone()).run().await.unwrap();
                let publish = || Publish::to("tasks.happened").target("events");
                let outbox = Arc::new(SqlOutbox::open_as(database.clone(), names.clone()).await.unwrap());
                let store =
                    SqlTasks::open_as(database, names.clone()).await.unwrap().publish_events(publish());
                let tasks = Tasks::named(names).publish_events(publish());
                let mut aborted = harness.host.begin().await.unwrap();
                tasks.submit(&mut aborted, NewTask::new("a")).await.unwrap();
                aborted.rollback().await.unwrap();
                let mut transaction = harness.host.begin().await.unwrap();
                let id = tasks.submit(&mut transaction, NewTask::new("a")).await.unwrap().id();
                transaction.commit().await.unwrap();
                story(&store, &store, outbox, id).await;
            }));
        };
    }
    on!("sqlite", None, sqlite(), SqliteDatabase, prefix);
    on!("mariadb", Some(Server::Mariadb), mysql(Server::Mariadb), MysqlDatabase, prefix);
    for server in [Server::Postgres15, Server::Postgres18] {
        on!(server.name(), Some(server), postgres(server, Path::Fast), PostgresDatabase, schema);
    }
    trials
}

async fn in_memory() {
    let outbox = MemoryOutbox::new().unwrap();
    let publish = Publish::to("tasks.happened").target("events");
    let store = MemoryTasks::new().publish_events(publish, outbox.clone());
    let mut aborted = store.begin();
    aborted.submit(&NewTask::new("a")).unwrap();
    drop(aborted);
    let mut transaction = store.begin();
    let id = transaction.submit(&NewTask::new("a")).unwrap().id();
    transaction.commit().unwrap();
    story(&store, &store, Arc::new(outbox), id).await;
}

/// Fails once and is completed then; what the outbox has is its history, in order, and nothing else.
async fn story(store: &dyn Store, inspect: &dyn Inspect, outbox: Arc<dyn OutboxStore>, id: TaskId) {
    let member = Member {
        worker: WorkerId::generate(),
        name: "w".to_owned(),
        kinds: vec!["a".to_owned()],
        lease: Duration::from_secs(600),
    };
    store.join(&member).await.unwrap();
    let claim = Claim { worker: member.worker, kinds: member.kinds.clone(), limit: 1 };
    let first = store.claim(&claim).await.unwrap()[0].token().unwrap();
    store.schedule_retry(&first, When::In(Duration::ZERO), "not \"now\"").await.unwrap();
    let second = store.claim(&claim).await.unwrap()[0].token().unwrap();
    store.extend(&second, Duration::from_secs(60)).await.unwrap();
    // Refused, and so not told.
    store.complete(&[first]).await.unwrap();
    store.complete(&[second]).await.unwrap();

    let (_, history) = inspect.get(id).await.unwrap().unwrap();
    assert_eq!(history.len(), 7, "{history:?}");
    let config = WorkerConfig { target: "events".to_owned(), ..WorkerConfig::default() };
    let worker = Worker::start(outbox, config).await.unwrap();
    let mut published = Vec::new();
    loop {
        let claimed = worker.claim(100).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        let outcomes: Vec<_> = claimed.iter().map(|one| (one.receipt(), Outcome::Published)).collect();
        worker.settle(&outcomes).await.unwrap();
        published.extend(claimed.into_iter().map(|one| one.event));
    }
    worker.stop(Duration::ZERO).await.unwrap();
    assert_eq!(published.len(), history.len(), "one event for each thing that happened");
    for (event, told) in published.iter().zip(&history) {
        assert_eq!((event.topic.as_str(), event.key.as_deref()), ("tasks.happened", Some(&*id.to_string())));
        check(&serde_json::from_slice(&event.payload).unwrap(), told);
    }
}

fn check(published: &serde_json::Value, told: &TaskEvent) {
    assert_eq!(published["task"], told.task.to_string());
    assert_eq!(published["event"], told.kind.word());
    assert_eq!(published["attempt"], told.attempt);
    assert_eq!(published["owner"], serde_json::json!(told.owner));
    assert_eq!(published["at_micros"], told.at.as_micros(), "{:?}", told.kind);
    assert_eq!(published["detail"], serde_json::json!(told.detail));
}
