//! What only PostgreSQL can be asked.

use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::claim::{
    ClaimSpec, Claimable as _, EpochUnit, Record, Table, Timestamp, Value, claim_portable, col, now,
    now_minus, now_plus,
};
use sendoff::stores::postgres::{Pooler, PostgresDatabase};
use sendoff::testkit::{ClaimHarness as _, Shape};
use sendoff::{StoreError, StoreErrorKind};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::harness::postgres::open;
use crate::jobs::{ids, jobs, take, take_by};
use crate::servers::Server;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for server in [Server::Postgres15, Server::Postgres18] {
        macro_rules! cases {
            ($($name:ident,)*) => {$(
                let name = format!("{}::{}", server.name(), stringify!($name));
                trials.push(trial(name, Some(server), move || $name(server)));
            )*};
        }
        cases![
            the_limit_holds_under_hostile_plans,
            a_locked_row_is_stepped_over,
            a_row_that_a_foreign_key_points_at_is_not_stepped_over,
            the_claim_is_served_by_an_index,
            a_claim_whose_commit_fails_returns_no_rows,
            a_table_altered_meanwhile_disturbs_nobody,
            serialization_failures_never_surface,
            types_of_the_hosts_own,
            rows_of_a_type,
            tables_that_cannot_be_claimed_from_are_refused,
            a_wrong_url_keeps_its_secret,
        ];
    }
    trials
}

/// Only nested loops, and statistics from when the table was empty. The form that most
/// libraries use, `IN (SELECT … LIMIT 10 …)`, is run as a control: the plan is hostile indeed.
async fn the_limit_holds_under_hostile_plans(server: Server) {
    let hostile = [
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_material", "off"),
        ("enable_memoize", "off"),
        ("enable_hashagg", "off"),
        ("enable_sort", "off"),
    ];
    let options: PgConnectOptions = server.url().parse().unwrap();
    let pool = PgPoolOptions::new().connect_with(options.options(hostile)).await.unwrap();
    let make = |name: String| {
        let pool = pool.clone();
        async move {
            let ddl = format!(
                "CREATE TABLE {name} (id bigint PRIMARY KEY, status text) WITH (autovacuum_enabled = false); \
                 ANALYZE {name}; \
                 INSERT INTO {name} SELECT n, 'ready' FROM generate_series(1, 1000) AS n"
            );
            pool.execute(sqlx::raw_sql(AssertSqlSafe(ddl))).await.unwrap();
        }
    };
    let name = Shape::new("hostile").table.to_string();
    make(name.clone()).await;
    let database = PostgresDatabase::from_pool(pool.clone(), Pooler::None).await.unwrap();
    let table = database.table::<Record>(Table::new(&name, ["id"]).unwrap()).await.unwrap();
    let spec = ClaimSpec::on(&name)
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .order_by("id")
        .limit(10)
        .build()
        .unwrap();
    assert_eq!(ids(&table.claim(&spec).await.unwrap()), (1..=10).collect::<Vec<i64>>());

    let control = Shape::new("control").table.to_string();
    make(control.clone()).await;
    let naive = format!(
        "UPDATE {control} SET status = 'running' WHERE id IN (SELECT id FROM {control} \
         WHERE status = 'ready' ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED)"
    );
    let over = pool.execute(AssertSqlSafe(naive)).await.unwrap().rows_affected();
    println!("{}: LIMIT 10 claimed 10; the IN (SELECT … LIMIT 10) form claimed {over}", server.name());
    assert!(over > 10, "the control obeyed: the plan is not hostile any more");
}

async fn a_locked_row_is_stepped_over(server: Server) {
    let host = open(server).await;
    let (shape, table) = jobs(&host, 5).await;
    let mut transaction = host.host.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR UPDATE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    // The lock is held until the end: whoever waited for it would wait for ever.
    let spec = take(&shape, 3);
    let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
    assert_eq!(ids(&claim.await.expect("not blocked").unwrap()), [2, 3, 4]);
    transaction.rollback().await.unwrap();
    assert_eq!(ids(&table.claim(&take(&shape, 3)).await.unwrap()), [1, 5]);
}

/// A host that inserts a child row holds a key-share lock on its parent until it commits.
async fn a_row_that_a_foreign_key_points_at_is_not_stepped_over(server: Server) {
    let host = open(server).await;
    let (shape, _) = jobs(&host, 2).await;
    let child = Shape::new("child").table;
    let ddl = format!("CREATE TABLE {child} (parent bigint REFERENCES {})", shape.table);
    host.host.execute(AssertSqlSafe(ddl)).await.unwrap();
    let table = host.database.table::<Record>(shape.description()).await.unwrap();
    let mut transaction = host.host.begin().await.unwrap();
    transaction.execute(AssertSqlSafe(format!("INSERT INTO {child} VALUES (1)"))).await.unwrap();
    let spec = take(&shape, 2);
    let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
    assert_eq!(ids(&claim.await.expect("not blocked").unwrap()), [1, 2]);
    transaction.commit().await.unwrap();
}

async fn the_claim_is_served_by_an_index(server: Server) {
    let host = open(server).await;
    let shape = Shape::jobs("explain");
    host.create(&shape).await;
    let fill = format!(
        "INSERT INTO {} (id, status, rank) SELECT n, CASE WHEN n % 10 = 0 THEN 'ready' ELSE 'done' END, n \
         FROM generate_series(1, 100000) AS n",
        shape.table
    );
    host.host.execute(AssertSqlSafe(fill)).await.unwrap();
    host.host.execute(AssertSqlSafe(format!("ANALYZE {}", shape.table))).await.unwrap();
    let table = host.database.table::<Record>(shape.description()).await.unwrap();
    let plan = table.explain(&take(&shape, 100)).await.unwrap();
    assert!(plan.is_served_by_index(), "{}", plan.text);
    let plan = table.explain(&take_by(&shape, "attempts", 100)).await.unwrap();
    assert!(plan.sorts, "an order that no index has must be seen to sort:\n{}", plan.text);
    assert_eq!(table.claim(&take(&shape, 5)).await.unwrap().len(), 5, "explaining claims nothing");
}

/// The statement has returned its rows when the deferred trigger turns the commit down.
async fn a_claim_whose_commit_fails_returns_no_rows(server: Server) {
    let host = open(server).await;
    let (shape, _) = jobs(&host, 3).await;
    let table_name = &shape.table;
    let ddl = format!(
        "CREATE FUNCTION refuse_{table_name}() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = '23514'; END $$; \
         CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON {table_name} DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION refuse_{table_name}()"
    );
    host.host.execute(sqlx::raw_sql(AssertSqlSafe(ddl))).await.unwrap();
    let table = host.database.table::<Record>(shape.description()).await.unwrap();
    let spec = take(&shape, 3);
    for answer in [table.claim(&spec).await, claim_portable(&table, &spec).await] {
        let error = answer.expect_err("the commit failed");
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("not today"), "{error}");
    }
    let untouched =
        host.rows(&shape).await.iter().all(|row| row.get("status") == Some(&Value::from("ready")));
    assert!(untouched);
}

/// The server refuses a prepared statement whose result would not be what it was.
async fn a_table_altered_meanwhile_disturbs_nobody(server: Server) {
    let host = open(server).await;
    let (shape, table) = jobs(&host, 6).await;
    // Often enough that the server keeps the plan.
    for _ in 0..3 {
        assert_eq!(table.claim(&take(&shape, 1)).await.unwrap().len(), 1);
    }
    let change = |sql: String| async { host.host.execute(AssertSqlSafe(sql)).await.unwrap() };
    change(format!("ALTER TABLE {} ADD COLUMN extra int DEFAULT 7", shape.table)).await;
    assert_eq!(ids(&table.claim(&take(&shape, 1)).await.unwrap()), [4]);
    change(format!("ALTER TABLE {} ALTER COLUMN rank TYPE integer", shape.table)).await;
    assert_eq!(ids(&table.claim(&take(&shape, 1)).await.unwrap()), [5]);
}

/// A database whose default isolation makes concurrent claims fail with 40001: seen by nobody.
async fn serialization_failures_never_surface(server: Server) {
    let host = open(server).await;
    let (shape, _) = jobs(&host, 600).await;
    let options: PgConnectOptions = server.url().parse().unwrap();
    let options = options.options([("default_transaction_isolation", "serializable")]);
    let pool = PgPoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
    let database = PostgresDatabase::from_pool(pool, Pooler::None).await.unwrap();
    let table = database.table::<Record>(shape.description()).await.unwrap();
    let mut running = Vec::new();
    for _ in 0..8 {
        let (table, spec) = (table.clone(), take(&shape, 5));
        running.push(tokio::spawn(async move {
            let mut taken = Vec::new();
            loop {
                let rows = table.claim(&spec).await.expect("contention is not an error");
                if rows.is_empty() {
                    return taken;
                }
                taken.extend(ids(&rows));
            }
        }));
    }
    let mut taken = Vec::new();
    for claimer in running {
        taken.extend(claimer.await.unwrap());
    }
    // What a claimer missed because another held it is there for the next.
    loop {
        let rest = table.claim(&take(&shape, 50)).await.unwrap();
        if rest.is_empty() {
            break;
        }
        taken.extend(ids(&rest));
    }
    taken.sort_unstable();
    assert_eq!(taken, (1..=600).collect::<Vec<i64>>());
}

/// An enum, a domain, an exact number, a timestamp without a zone, and milliseconds in a bigint.
async fn types_of_the_hosts_own(server: Server) {
    let host = open(server).await;
    let name = Shape::new("types").table.to_string();
    let ddl = format!(
        "CREATE TYPE {name}_state AS ENUM ('ready', 'running'); \
         CREATE DOMAIN {name}_code AS varchar(10) CHECK (value <> ''); \
         CREATE TABLE {name} (id numeric(20, 0) PRIMARY KEY, state {name}_state NOT NULL, code {name}_code, \
             price numeric(10, 2), due timestamp NOT NULL, until_ms bigint, short varchar(20), small smallint); \
         INSERT INTO {name} VALUES \
             (1, 'ready', 'a', 1.50, (now() AT TIME ZONE 'UTC') - interval '1 hour', NULL, 'x', 1), \
             (2, 'ready', 'b', 2.50, (now() AT TIME ZONE 'UTC') + interval '1 hour', NULL, 'x', 1)"
    );
    host.host.execute(sqlx::raw_sql(AssertSqlSafe(ddl))).await.unwrap();
    let description = Table::new(&name, ["id"])
        .unwrap()
        .returning(["code", "due", "until_ms", "small"])
        .unwrap()
        .epoch("until_ms", EpochUnit::Millis)
        .unwrap();
    let table = host.database.table::<Record>(description).await.unwrap();
    let free = col("until_ms").is_null().or(col("until_ms").lt(now()));
    let spec = ClaimSpec::on(&name)
        .eligible(
            col("state").eq("ready").and(col("due").le(now())).and(col("price").lt(2)).and(free).and(
                col("code").is_in(["a", "c"]).and(col("short").eq("x")).and(col("due").gt(now_minus(DAY))),
            ),
        )
        .set("state", "running")
        .set("until_ms", now_plus(DAY))
        .set("price", "9.99")
        .set("code", "z")
        .set("due", Timestamp::from_micros(1_700_000_000_000_001))
        .add("small", 1)
        .order_by("id")
        .build()
        .unwrap();
    let claimed = claim_portable(&table, &spec).await.unwrap();
    assert_eq!(claimed.len(), 1, "by a key that the driver knows as text only");
    assert_eq!(claimed[0].get("code"), Some(&Value::from("z")));
    assert_eq!(claimed[0].get("small"), Some(&Value::Int(2)));
    let due = Value::from(Timestamp::from_micros(1_700_000_000_000_001));
    assert_eq!(claimed[0].get("due"), Some(&due));
    let ahead: bool = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT until_ms BETWEEN extract(epoch FROM now()) * 1000 + 86000000 AND extract(epoch FROM now()) * 1000 + 86800000 \
         FROM {name} WHERE id = 1"
    )))
    .fetch_one(&host.host)
    .await
    .unwrap();
    assert!(ahead, "a day in milliseconds");
    assert!(table.claim(&spec).await.unwrap().is_empty());
}

const DAY: Duration = Duration::from_secs(86_400);

/// No map of strings where the row type is known.
async fn rows_of_a_type(server: Server) {
    #[derive(Debug, PartialEq, sqlx::FromRow)]
    struct Job {
        id: i64,
        status: String,
    }
    let host = open(server).await;
    let (shape, _) = jobs(&host, 2).await;
    let named = host.database.table::<Job>(shape.description()).await.unwrap();
    let job = named.claim(&take(&shape, 1)).await.unwrap().pop().unwrap();
    assert_eq!(job, Job { id: 1, status: "running".to_owned() });
    let only = shape.description().returning(["status", "id"]).unwrap();
    let tuples = host.database.table::<(String, i64)>(only).await.unwrap();
    assert_eq!(tuples.claim(&take(&shape, 1)).await.unwrap(), [("running".to_owned(), 2)]);
}

async fn tables_that_cannot_be_claimed_from_are_refused(server: Server) {
    let host = open(server).await;
    let shape = Shape::new("refused");
    let name = shape.table.to_string();
    let ddl = format!("CREATE TABLE {name} (id bigint NOT NULL, part int, note text, UNIQUE (id, part))");
    host.host.execute(AssertSqlSafe(ddl)).await.unwrap();
    let refusal = |key: &'static str, table: String| {
        let database = host.database.clone();
        async move { error_of(database.table::<Record>(Table::new(&table, [key]).unwrap()).await) }
    };
    assert!(refusal("id", "no_such_table".to_owned()).await.contains("no such table"));
    assert!(refusal("id", name.clone()).await.contains("not unique"));
    assert!(refusal("note", name.clone()).await.contains("may be null"));
    assert!(refusal("nota", name.clone()).await.contains("did you mean `note`"));
    let ddl = format!("CREATE UNIQUE INDEX ON {name} (id) WHERE note IS NOT NULL");
    host.host.execute(AssertSqlSafe(ddl)).await.unwrap();
    assert!(
        refusal("id", name.clone()).await.contains("not unique"),
        "a partial index identifies some rows only"
    );
}

fn error_of<T>(answer: Result<T, StoreError>) -> String {
    answer.err().expect("refused").to_string()
}

async fn a_wrong_url_keeps_its_secret(_: Server) {
    for url in ["postgres://user:hunter2@[bad/db", "postgres://user:hunter2@127.0.0.1:1/db", "hunter2://x"] {
        let error = PostgresDatabase::connect(url).await.expect_err("refused");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    let unreachable = PostgresDatabase::connect("postgres://u@127.0.0.1:1/db").await.unwrap_err();
    assert_eq!(unreachable.kind(), StoreErrorKind::Unavailable, "{unreachable}");
}
