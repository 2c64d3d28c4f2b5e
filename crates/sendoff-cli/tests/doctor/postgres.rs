//! A PostgreSQL server in the states that are to be found. What is the whole server's is tried on one of our own.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::outbox::Outbox;
use crate::private;
use crate::report::{Report, versions};

const SERVER: &str = "SENDOFF_TEST_POSTGRES15";

fn table(outbox: &Outbox, name: &str) -> String {
    format!("\"{}\".{name}", outbox.names.as_ref().unwrap())
}

/// Runs with a connection of its own, which stays open as long as that.
fn with_session<T>(outbox: &Outbox, work: impl AsyncFnOnce(&mut PgConnection) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = PgConnection::connect(&outbox.store).await.unwrap();
        let result = work(&mut session).await;
        drop(session);
        result
    })
}

#[test]
fn a_healthy_server_is_met_with_silence() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    let _relay = outbox.relay("null:");
    let id = outbox.enqueue(&["t", "--key", "k"]);
    outbox.until("it is delivered", || outbox.run(&["explain", &id]).code == 1);
    let report = Report::of(&outbox, &[]);
    // The servers of the tests do not wait for the disk.
    assert_eq!((report.code, report.codes()), (0, vec!["not-durable"]), "{:#}", report.json);
    assert_eq!(report.skipped(), [""; 0], "{:#}", report.json);
    assert!(report.checks().len() >= 20, "{:#}", report.json);
}

#[test]
fn an_index_that_is_missing_or_not_valid_is_found() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    outbox.sql(&format!("DROP INDEX {}", table(&outbox, "parked_by_turn")));
    let report = Report::of(&outbox, &[]);
    let (severity, what, todo) = report.one("missing-index");
    assert_eq!((report.code, severity), (1, "problem"));
    assert!(what.contains("parked_by_turn"), "{what}");
    outbox.sql(todo);
    outbox.sql(&format!(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass",
        table(&outbox, "dead_by_key")
    ));
    let report = Report::of(&outbox, &[]);
    assert!(report.is_silent_about("missing-index"), "it was mended");
    let (_, what, todo) = report.one("invalid-index");
    assert!(what.contains("dead_by_key") && todo.starts_with("REINDEX INDEX CONCURRENTLY"), "{what} {todo}");
    outbox.sql(todo);
    assert_eq!(Report::of(&outbox, &[]).code, 0);
}

#[test]
fn a_fetch_without_its_index_is_found_in_small_tables_and_large() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    let event = table(&outbox, "event");
    let insert = format!(
        "INSERT INTO {event} (topic, key, payload) SELECT 't', 'k-' || n, 'x' FROM generate_series(1, 5000) AS n"
    );
    for fill in [None, Some(insert)] {
        if let Some(fill) = fill {
            outbox.sql(&fill);
            outbox.sql(&format!("ANALYZE {event}"));
        }
        assert!(Report::of(&outbox, &[]).is_silent_about("fetch-not-by-index"), "an index serves it");
        outbox.sql(&format!("ALTER TABLE {event} DROP CONSTRAINT event_pkey"));
        let report = Report::of(&outbox, &[]);
        let (_, what, _) = report.one("fetch-not-by-index");
        assert!(what.contains("Seq Scan on event"), "{what}");
        outbox.sql(report.one("missing-index").2);
    }
}

#[test]
fn a_transaction_that_is_held_open_is_named() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    let insert = format!("INSERT INTO {} (topic, payload) VALUES ('t', 'x')", table(&outbox, "event"));
    with_session(&outbox, async |session| {
        session.execute("SET application_name = 'a report'").await.unwrap();
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *session).await.unwrap();
        let of_it = |report: &Report| {
            let name = format!("Session {pid} of a report");
            let all = report.all("pinned-xmin");
            all.iter().find(|one| one["what"].as_str().unwrap().starts_with(&name)).map(|one| (*one).clone())
        };
        assert!(of_it(&Report::of(&outbox, &["--xmin-age", "0s"])).is_none());
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
        session.execute("SELECT count(*) FROM pg_class").await.unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        let report = Report::of(&outbox, &["--xmin-age", "1s"]);
        let found = of_it(&report).unwrap();
        assert_eq!((report.code, found["severity"].as_str()), (1, Some("warning")));
        let what = found["what"].as_str().unwrap();
        assert!(what.contains("open for 1s, and is idle in transaction."), "{what}");
        assert!(!what.contains("written events"), "{what}");
        assert!(of_it(&Report::of(&outbox, &[])).is_none(), "five minutes are allowed");
        session.execute(AssertSqlSafe(insert)).await.unwrap();
        let found = of_it(&Report::of(&outbox, &["--xmin-age", "0s"])).unwrap();
        assert!(found["what"].as_str().unwrap().ends_with("It has written events that are not committed."));
        let todo = found["todo"].as_str().unwrap();
        let statement = todo.split_once("end it: ").unwrap().1;
        std::thread::scope(|scope| scope.spawn(|| outbox.sql(statement)).join().unwrap());
        assert!(session.execute("SELECT 1").await.is_err(), "it was ended");
        assert!(of_it(&Report::of(&outbox, &["--xmin-age", "0s"])).is_none());
    });
}

#[test]
fn a_prepared_transaction_is_named() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    let gid = format!("o'brien {}", outbox.names.as_ref().unwrap());
    let quoted = gid.replace('\'', "''");
    let insert = format!("INSERT INTO {} (topic, payload) VALUES ('t', 'x')", table(&outbox, "event"));
    with_session(&outbox, async |session| {
        session.execute("BEGIN").await.unwrap();
        session.execute(AssertSqlSafe(insert)).await.unwrap();
        session.execute(AssertSqlSafe(format!("PREPARE TRANSACTION '{quoted}'"))).await.unwrap();
    });
    let of_it = |report: &Report| {
        let all = report.all("prepared-transaction");
        all.iter().find(|one| one["what"].as_str().unwrap().contains(&quoted)).map(|one| (*one).clone())
    };
    let report = Report::of(&outbox, &["--xmin-age", "0s"]);
    let found = of_it(&report).unwrap();
    assert_eq!((report.code, found["severity"].as_str()), (1, Some("problem")));
    let rollback = format!("ROLLBACK PREPARED '{quoted}';");
    assert!(found["todo"].as_str().unwrap().contains(&rollback), "{found:#}");
    outbox.sql(&rollback);
    assert!(of_it(&Report::of(&outbox, &["--xmin-age", "0s"])).is_none());
}

#[test]
fn a_sequence_with_a_cache_is_found() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    outbox.sql(&format!("ALTER SEQUENCE {} CACHE 20", table(&outbox, "event_id_seq")));
    let report = Report::of(&outbox, &[]);
    let (severity, what, todo) = report.one("sequence-cache");
    assert_eq!((report.code, severity), (1, "problem"));
    assert!(what.contains("CACHE 20") && todo.starts_with("ALTER SEQUENCE"), "{what} {todo}");
    outbox.sql(todo);
    assert!(Report::of(&outbox, &[]).is_silent_about("sequence-cache"));
}

#[test]
fn tables_that_are_missing_or_of_another_version_are_findings() {
    let Some(mut outbox) = Outbox::on_server(SERVER) else { return };
    versions(&outbox, |version| {
        let meta = table(&outbox, "meta");
        outbox.sql(&format!("UPDATE {meta} SET value = '{version}' WHERE name = 'protocol_version'"));
    });
    outbox.sql(&format!("ALTER TABLE {} DROP CONSTRAINT lane_pkey", table(&outbox, "lane")));
    let report = Report::of(&outbox, &[]);
    assert!(report.one("schema-damaged").1.contains("cannot be opened"), "{:#}", report.json);
    assert!(report.one("missing-index").2.ends_with("ADD PRIMARY KEY (target, lane);"));
    outbox.names = Some("nothing_here".to_owned());
    let report = Report::of(&outbox, &[]);
    assert_eq!((report.code, report.one("schema-missing").0), (1, "problem"));
}

#[test]
fn a_table_without_autovacuum_and_its_dead_rows_are_found() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    let event = table(&outbox, "event");
    outbox.sql(&format!("ALTER TABLE {event} SET (autovacuum_enabled = off)"));
    outbox.sql(&format!("INSERT INTO {event} (topic, payload) SELECT 't', 'x' FROM generate_series(1, 500)"));
    outbox.sql(&format!("DELETE FROM {event}"));
    outbox.until("it is counted", || {
        !Report::of(&outbox, &["--dead-rows", "400"]).is_silent_about("dead-rows")
    });
    let report = Report::of(&outbox, &["--dead-rows", "400"]);
    assert!(report.one("dead-rows").1.contains("500 deleted rows"), "{:#}", report.json);
    assert!(report.one("dead-rows").1.contains("last vacuumed never"), "{:#}", report.json);
    let report = Report::of(&outbox, &[]);
    assert!(report.is_silent_about("dead-rows"));
    let (severity, what, todo) = report.one("autovacuum-off");
    assert!(severity == "problem" && what.contains(".event"), "{what}");
    outbox.sql(todo);
    assert!(Report::of(&outbox, &[]).is_silent_about("autovacuum-off"));
}

/// What it may not see is skipped, and its own settings are those that count.
#[test]
fn a_role_with_few_rights_is_told_what_it_does_not_see() {
    let Some(mut outbox) = Outbox::on_server(SERVER) else { return };
    let schema = outbox.names.clone().unwrap();
    let role = format!("role_{schema}");
    let owner = outbox.store.clone();
    for statement in [
        format!("CREATE ROLE {role} LOGIN"),
        format!("GRANT USAGE ON SCHEMA \"{schema}\" TO {role}"),
        format!("GRANT SELECT ON ALL TABLES IN SCHEMA \"{schema}\" TO {role}"),
        format!("ALTER ROLE {role} SET default_transaction_isolation = 'serializable'"),
        format!("ALTER ROLE {role} SET synchronous_commit = off"),
    ] {
        outbox.sql(&statement);
    }
    outbox.store = owner.replace("sendoff@", &format!("{role}@"));
    assert_ne!(outbox.store, owner);
    let report = Report::of(&outbox, &[]);
    assert_eq!(report.skipped(), ["sessions of other roles"], "{:#}", report.json);
    assert_eq!((report.code, report.one("isolation").0), (0, "note"), "{:#}", report.json);
    assert!(report.one("isolation").1.contains("SERIALIZABLE"));
    assert_eq!(report.all("not-durable").len(), 2, "{:#}", report.json);
    let revoke = format!("REVOKE SELECT ON \"{schema}\".worker FROM {role}");
    outbox.store = owner.clone();
    outbox.sql(&revoke);
    outbox.store = owner.replace("sendoff@", &format!("{role}@"));
    let report = Report::of(&outbox, &[]);
    assert!(report.skipped().contains(&"workers"), "{:#}", report.json);
    outbox.store = owner;
    outbox.sql(&format!("DROP OWNED BY {role}"));
    outbox.sql(&format!("DROP ROLE {role}"));
}

#[test]
fn a_server_of_our_own_is_silent_and_then_is_not() {
    let Some(server) = private::postgres(SERVER) else { return };
    let outbox = &server.outbox;
    let text = outbox.ok(&["doctor"]);
    assert!(text.starts_with("nothing found: "), "{text}");
    outbox.sql("SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')");
    let report = Report::of(outbox, &[]);
    let (severity, what, todo) = report.one("replication-slot");
    assert!(severity == "problem" && what.contains("nobody reads it"), "{what}");
    outbox.sql(todo.split_once("drop it: ").unwrap().1);
    outbox.sql("ALTER SYSTEM SET autovacuum = off");
    outbox.sql("SELECT pg_reload_conf()");
    outbox.until("it is off", || !Report::of(outbox, &[]).is_silent_about("autovacuum-off"));
    let report = Report::of(outbox, &[]);
    assert_eq!((report.code, report.codes()), (1, vec!["autovacuum-off"]), "{:#}", report.json);
}
