//! A MariaDB server in the states that are to be found. What is the whole server's is tried on one of our own.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};

use crate::outbox::Outbox;
use crate::private;
use crate::report::{Report, versions};

const SERVER: &str = "SENDOFF_TEST_MARIADB";

fn table(outbox: &Outbox, name: &str) -> String {
    format!("`{}{name}`", outbox.names.as_deref().unwrap_or("sendoff_"))
}

fn with_session<T>(outbox: &Outbox, work: impl AsyncFnOnce(&mut MySqlConnection) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = MySqlConnection::connect(&outbox.store).await.unwrap();
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
    // The servers of the tests do not wait for the disk, and have the usual level.
    assert_eq!((report.code, report.codes()), (0, vec!["isolation", "not-durable"]), "{:#}", report.json);
    assert_eq!(report.skipped(), [""; 0], "{:#}", report.json);
}

#[test]
fn a_missing_index_is_found_with_the_statement_that_makes_it() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    outbox.sql(&format!("ALTER TABLE {} DROP KEY by_due", table(&outbox, "parked")));
    let report = Report::of(&outbox, &[]);
    let (severity, what, todo) = report.one("missing-index");
    assert_eq!((report.code, severity), (1, "problem"));
    assert!(what.contains("by_due"), "{what}");
    outbox.sql(todo);
    outbox.sql(&format!("ALTER TABLE {} DROP KEY by_lane", table(&outbox, "event")));
    let report = Report::of(&outbox, &[]);
    let (severity, what, _) = report.one("fetch-not-by-index");
    assert!(severity == "problem" && what.contains("by_lane"), "{what}");
    outbox.sql(report.one("missing-index").2);
    assert_eq!(Report::of(&outbox, &[]).code, 0);
}

#[test]
fn a_table_without_transactions_is_found() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    outbox.sql(&format!("ALTER TABLE {} ENGINE = MyISAM", table(&outbox, "operation")));
    let report = Report::of(&outbox, &[]);
    let (severity, what, todo) = report.one("table-engine");
    assert_eq!((report.code, severity), (1, "problem"));
    assert!(what.ends_with("operation is kept by MyISAM."), "{what}");
    outbox.sql(todo);
    assert_eq!(Report::of(&outbox, &[]).code, 0);
}

#[test]
fn tables_that_are_missing_or_of_another_version_are_findings() {
    let Some(mut outbox) = Outbox::on_server(SERVER) else { return };
    versions(&outbox, |version| {
        let meta = table(&outbox, "meta");
        outbox.sql(&format!("UPDATE {meta} SET value = '{version}' WHERE name = 'protocol_version'"));
    });
    outbox.names = Some("nothing_here".to_owned());
    let report = Report::of(&outbox, &[]);
    assert_eq!((report.code, report.one("schema-missing").0), (1, "problem"));
}

#[test]
fn a_transaction_that_is_held_open_is_named() {
    let Some(outbox) = Outbox::on_server(SERVER) else { return };
    let insert = format!("INSERT INTO {} (topic, payload) VALUES ('t', 'x')", table(&outbox, "event"));
    with_session(&outbox, async |session| {
        let thread: i64 = sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS SIGNED)")
            .fetch_one(&mut *session)
            .await
            .unwrap();
        session.execute("START TRANSACTION").await.unwrap();
        session.execute(AssertSqlSafe(insert)).await.unwrap();
        std::thread::sleep(Duration::from_millis(1_100));
        let of_it = |report: &Report| {
            let name = format!("Session {thread} (sendoff from ");
            let all = report.all("long-transaction");
            all.iter().find(|one| one["what"].as_str().unwrap().starts_with(&name)).map(|one| (*one).clone())
        };
        let report = Report::of(&outbox, &["--xmin-age", "1s"]);
        let found = of_it(&report).unwrap();
        assert_eq!((report.code, found["severity"].as_str()), (1, Some("warning")));
        assert!(found["what"].as_str().unwrap().contains("has changed 1 rows"), "{found:#}");
        assert!(of_it(&Report::of(&outbox, &[])).is_none(), "five minutes are allowed");
        std::thread::scope(|scope| {
            scope
                .spawn(|| outbox.sql(found["todo"].as_str().unwrap().split_once("end it: ").unwrap().1))
                .join()
                .unwrap()
        });
        assert!(session.execute("SELECT 1").await.is_err(), "it was ended");
        assert!(of_it(&Report::of(&outbox, &["--xmin-age", "1s"])).is_none());
    });
}

#[test]
fn a_user_with_few_rights_is_told_what_it_does_not_see() {
    let Some(mut outbox) = Outbox::on_server(SERVER) else { return };
    let user = format!("u{:x}", fastrand::u64(..));
    let owner = outbox.store.clone();
    outbox.sql(&format!("CREATE USER '{user}'@'127.0.0.1' IDENTIFIED BY 'few'"));
    outbox.sql(&format!("GRANT SELECT ON sendoff.* TO '{user}'@'127.0.0.1'"));
    outbox.store = owner.replace("sendoff:sendoff-test@", &format!("{user}:few@"));
    assert_ne!(outbox.store, owner);
    let report = Report::of(&outbox, &[]);
    assert_eq!(report.skipped(), ["sessions"], "{:#}", report.json);
    assert!(report.json["skipped"][0]["reason"].as_str().unwrap().contains("PROCESS"), "{:#}", report.json);
    outbox.store = owner;
    outbox.sql(&format!("DROP USER '{user}'@'127.0.0.1'"));
}

/// What the server as a whole is set to, and that the findings say what really happens.
#[test]
fn a_server_of_our_own_is_silent_and_then_is_not() {
    let Some(server) = private::mariadb(SERVER) else { return };
    let outbox = &server.outbox;
    let text = outbox.ok(&["doctor"]);
    assert!(text.starts_with("nothing found: "), "{text}");
    let set = |statement: &str, code: &str, severity: &str| {
        outbox.sql(statement);
        let report = Report::of(outbox, &[]);
        assert_eq!(
            (report.codes(), report.one(code).0),
            (vec![code], severity),
            "{statement}: {:#}",
            report.json
        );
        assert_eq!(report.code, if severity == "note" { 0 } else { 1 }, "{statement}");
    };
    set("SET GLOBAL sql_mode = ''", "not-strict", "warning");
    outbox.sql("SET GLOBAL sql_mode = DEFAULT");
    set("SET GLOBAL auto_increment_increment = 3", "auto-increment-steps", "note");
    outbox.sql("SET GLOBAL auto_increment_increment = 1");
    set("SET GLOBAL tx_isolation = 'REPEATABLE-READ'", "isolation", "note");
    set("SET GLOBAL tx_isolation = 'SERIALIZABLE'", "isolation", "warning");
    set("SET GLOBAL tx_isolation = 'READ-UNCOMMITTED'", "isolation", "warning");
    let insert = format!("INSERT INTO {} (topic, payload) VALUES ('t', 'x')", table(outbox, "event"));
    with_session(outbox, async |host| {
        host.execute("START TRANSACTION").await.unwrap();
        host.execute(AssertSqlSafe(insert)).await.unwrap();
        let path = outbox.directory.path().join("delivered");
        let _relay = outbox.relay(&format!("file:{}", path.display()));
        let delivered = || std::fs::read_to_string(&path).unwrap_or_default();
        // Each is found by a look that would have found what was written before it, committed or not.
        for topic in ["first", "second"] {
            outbox.enqueue(&[topic]);
            outbox.until("what is committed is delivered", || delivered().contains(topic));
        }
        assert_eq!(delivered().lines().count(), 2, "and nothing else: {}", delivered());
        // Killed before that, it would leave behind what it has delivered.
        let is_settled = || {
            let counts = outbox.counts("default");
            counts["unprocessed"] == 0 && counts["processing"] == 0
        };
        outbox.until("what is delivered is settled", is_settled);
        host.execute("ROLLBACK").await.unwrap();
    });
    outbox.sql("SET GLOBAL tx_isolation = 'READ-COMMITTED'");
    outbox.sql(&format!("DELETE FROM {}", table(outbox, "worker")));
    set("SET GLOBAL binlog_format = 'STATEMENT'", "binlog-format", "problem");
    // A write at READ COMMITTED is refused, so that no worker can register or claim.
    let done = outbox.run(&["enqueue", "t"]);
    assert!(done.code != 0 && done.errors.contains("1665"), "{}", done.errors);
    let relay = outbox.relay("null:");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(outbox.json(&["workers"])["workers"], serde_json::json!([]), "no worker could register");
    drop(relay);
    outbox.sql("SET GLOBAL binlog_format = 'ROW'");
    assert_eq!(Report::of(outbox, &[]).codes(), [""; 0]);
}
