//! Purges where there is much: what is old is found by an index, in its order, and nothing else is touched.

use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::inbox::{Inspect as _, SqlInbox};
use sendoff::outbox::{Inspect as _, Purge};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Plan, SqlOutbox};

use crate::inbox::host::{Pool, names};
use crate::servers::Server;
use crate::trial;

/// Every second one is of `a`, the others of `b`; each is a second older than the one before.
const ROWS: i64 = 40_000;
const BATCH: u32 = 1_000;
/// Half of them are older.
const AGE: Duration = Duration::from_secs(20_000);

pub(crate) fn trials() -> Vec<Trial> {
    let name = |store: &str| format!("{store}::retention::a_purge_finds_what_is_old_by_an_index");
    let mut trials = vec![trial(name("sqlite"), None, || async {
        let directory = tempfile::tempdir().unwrap();
        purges(None, &format!("sqlite://{}", directory.path().join("test.db").display())).await;
    })];
    for server in [Server::Postgres15, Server::Postgres18, Server::Mariadb] {
        let run = move || async move { purges(Some(server), &server.url()).await };
        trials.push(trial(name(server.name()), Some(server), run));
    }
    trials
}

async fn purges(server: Option<Server>, url: &str) {
    let name = format!("r{:012x}", fastrand::u64(..1 << 48));
    let names = names(server, &name);
    macro_rules! on {
        ($database:ty) => {{
            let database = <$database>::connect(url).await.unwrap();
            Migration::named(database.clone(), names.clone()).run().await.unwrap();
            SqlInbox::migration_as(database.clone(), names.clone()).run().await.unwrap();
            let pool = Pool::connect(url).await;
            let prefix = if matches!(pool, Pool::Postgres(_)) { format!("{name}.") } else { format!("{name}_") };
            pool.script(fill(&pool, &prefix)).await;
            let outbox = SqlOutbox::open_as(database.clone(), names.clone()).await.unwrap();
            check(&outbox.explain_purge("a", AGE, BATCH).await.unwrap(), &[]);
            let purge = Purge::Published { target: "a".to_owned(), older_than: AGE };
            assert_eq!(outbox.purge(&purge, BATCH).await.unwrap(), u64::from(BATCH));
            left(&pool, &format!("{prefix}published"), "target", "id").await;
            let inbox = SqlInbox::open_as(database, names.clone()).await.unwrap();
            let [seen, order] = inbox.explain_purge("a", AGE, BATCH).await.unwrap();
            check(&seen, &[]);
            // Where two columns of a key are open PostgreSQL joins them, and may rather read so small a table.
            check(&order, &["Seq Scan on inbox_order t"]);
            assert_eq!(inbox.purge(AGE, BATCH).await.unwrap(), u64::from(BATCH));
            left(&pool, &format!("{prefix}inbox_seen"), "consumer", "n").await;
        }};
    }
    match server {
        None => on!(SqliteDatabase),
        Some(Server::Mariadb) => on!(MysqlDatabase),
        Some(_) => on!(PostgresDatabase),
    }
}

/// The oldest are found by the index of their times, and not sorted. Of the table nothing else is read, but for what may be.
fn check(plan: &Plan, may_be: &[&str]) {
    println!("{}\n", plan.text);
    assert!(plan.text.contains("by_time"), "{}", plan.text);
    assert!(!plan.sorts, "{}", plan.text);
    let excused = may_be.iter().any(|part| plan.text.contains(part));
    assert!(
        excused || plan.index.as_deref().is_some_and(|index| index.ends_with("by_time")),
        "{}",
        plan.text
    );
}

/// The oldest thousand of `a` are gone, and nothing of `b`.
async fn left(pool: &Pool, table: &str, whose: &str, number: &str) {
    let count = |filter: String| pool.number(format!("SELECT COUNT(*) FROM {table} WHERE {filter}"));
    assert_eq!(count(format!("{whose} = 'b'")).await, ROWS / 2, "{table}");
    assert_eq!(count(format!("{whose} = 'a'")).await, ROWS / 2 - i64::from(BATCH), "{table}");
    if number == "id" {
        let youngest_gone = ROWS - 2 * i64::from(BATCH);
        assert_eq!(count(format!("{whose} = 'a' AND {number} > {youngest_gone}")).await, 0, "{table}");
    }
}

fn fill(pool: &Pool, prefix: &str) -> String {
    let (from, whose, id, at, bytes) = match pool {
        Pool::Postgres(_) => (
            format!("generate_series(1, {ROWS}) AS s(i)"),
            "CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END",
            "gen_random_uuid()",
            "now() - i * interval '1 second'",
            "'\\x01'::bytea",
        ),
        Pool::Mysql(_) => (
            format!("(SELECT seq AS i FROM seq_1_to_{ROWS}) AS s"),
            "IF(i % 2 = 0, 'a', 'b')",
            "UNHEX(MD5(i))",
            "UTC_TIMESTAMP(6) - INTERVAL i SECOND",
            "'1'",
        ),
        Pool::Sqlite(_) => (
            format!(
                "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i FROM n)"
            ),
            "CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END",
            "printf('%08x-0000-7000-8000-000000000000', i)",
            "(unixepoch() - i) * 1000000",
            "x'01'",
        ),
    };
    let (key, receipt) = match pool {
        Pool::Mysql(_) => ("`key`", ", receipt"),
        _ => ("\"key\"", ""),
    };
    let nothing = if receipt.is_empty() { "" } else { ", 0" };
    let text = if matches!(pool, Pool::Postgres(_)) { "i::text" } else { "i" };
    let mut script = format!(
        "INSERT INTO {prefix}published (target, lane, id, topic, payload, event_id, created_at, published_at) \
         SELECT {whose}, i % 64, i, 'topic', {bytes}, {id}, {at}, {at} FROM {from};\n\
         INSERT INTO {prefix}inbox_seen (consumer, event_id, seen_at{receipt}) \
         SELECT {whose}, {id}, {at}{nothing} FROM {from};\n\
         INSERT INTO {prefix}inbox_order (consumer, source, {key}, event_id, position, moved_at) \
         SELECT {whose}, 'source', {text}, {id}, i, {at} FROM {from};\n"
    );
    if matches!(pool, Pool::Postgres(_)) {
        script.push_str(&format!("ANALYZE {prefix}published, {prefix}inbox_seen, {prefix}inbox_order;"));
    }
    script
}
