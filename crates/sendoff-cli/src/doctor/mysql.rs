//! What a MariaDB or MySQL server can be asked.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use sendoff::outbox::Inspect;
use sendoff::stores::mysql::{MysqlDatabase, MysqlOutbox};
use sendoff::stores::{Migration, SchemaState};
use sendoff::{StoreError, StoreErrorKind};
use sqlx::Row as _;
use sqlx::mysql::{MySqlPool, MySqlRow};

use super::finding::{
    AUTO_INCREMENT_STEPS, BINLOG_FORMAT, FETCH_NOT_BY_INDEX, Finding, ISOLATION, LONG_TRANSACTION,
    NOT_DURABLE, NOT_STRICT, Severity, TABLE_ENGINE,
};
use super::report::Report;
use super::schema::{Index, Present, compare};
use super::tables::{TABLES, quoted};
use super::{clock, fetch_plan, micros_here, opened, outbox, schema, seconds, targets};
use crate::args::DoctorArgs;
use crate::site::Site;

/// Looks at the server, then at the tables, then at the outbox.
pub(super) async fn examine(
    site: &Site,
    pool: &MySqlPool,
    args: &DoctorArgs,
    report: &mut Report,
) -> Result<()> {
    let before = micros_here();
    let now: i64 = sqlx::query_scalar(include_str!("mysql/clock.sql")).fetch_one(pool).await?;
    report.take("clock", Ok(clock(before, now, micros_here())))?;
    report.take("settings", settings(pool).await)?;
    report.take("sessions", sessions(pool, args).await)?;

    let database = MysqlDatabase::from_pool(pool.clone()).await?;
    let migration = Migration::named(database.clone(), site.names()?);
    let state = migration.state().await?;
    report.take("schema", Ok(schema(&state)))?;
    if state != SchemaState::Current {
        report.skip("tables", "the outbox's tables must be there first, in this program's version");
        return Ok(());
    }
    report.take("indexes", indexes(site, pool, &migration.script()?).await)?;
    report.take("engines", engines(site, pool).await)?;

    let whole = MysqlOutbox::open_as(database, site.names()?).await.map(Arc::new);
    let plan = whole.as_ref().ok().map(Arc::clone);
    let whole = whole.map(|outbox| outbox as Arc<dyn Inspect>).map_err(anyhow::Error::from);
    let Some(inspect) = opened(report, whole)? else { return Ok(()) };
    if let Some(outbox) = plan {
        report.take("fetch-plan", plans(&outbox, args, &*inspect).await)?;
    }
    outbox::examine(site, &*inspect, args, now, report).await
}

async fn settings(pool: &MySqlPool) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("mysql/settings.sql")).fetch_all(pool).await?;
    let mut settings: HashMap<String, String> = HashMap::new();
    for row in &rows {
        settings.insert(row.try_get::<String, _>(0)?.to_lowercase(), row.try_get(1)?);
    }
    let of = |name: &str| settings.get(name).map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    let level = if of("tx_isolation").is_empty() { of("transaction_isolation") } else { of("tx_isolation") };
    found.extend(isolation(level));
    if of("log_bin") == "ON" && of("binlog_format") == "STATEMENT" {
        let todo = "SET GLOBAL binlog_format = 'ROW'; (and in the server's configuration), then start the relays and the hosts anew.";
        found.push(BINLOG_FORMAT.found("The server writes its binary log in the format STATEMENT.", todo));
    }
    if !matches!(of("auto_increment_increment"), "" | "1") {
        let what = format!("The server counts in steps of {}.", of("auto_increment_increment"));
        found.push(AUTO_INCREMENT_STEPS.found(what, "Write all events of a key on one server. With one server that is written to there is nothing to do."));
    }
    if !of("sql_mode").contains("STRICT_") {
        let todo = "SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES'); (and in the server's configuration)";
        found.push(NOT_STRICT.found("The server's sql_mode has no strict mode.", todo));
    }
    if matches!(of("innodb_flush_log_at_trx_commit"), "0" | "2") {
        let what = format!(
            "The server runs with innodb_flush_log_at_trx_commit = {}: a commit does not wait for the disk.",
            of("innodb_flush_log_at_trx_commit")
        );
        found.push(NOT_DURABLE.found(
            what,
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1; a server that is for tests only may leave it.",
        ));
    }
    Ok(found)
}

/// What is to be said of the level that sessions begin with. REPEATABLE READ is the server's default, and hosts may well have it.
fn isolation(level: &str) -> Option<Finding> {
    let what = format!("Sessions begin at {}.", level.replace('-', " "));
    let set = "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED; (and transaction-isolation = READ-COMMITTED in the server's configuration)";
    match level {
        "READ-UNCOMMITTED" => {
            let what = format!(
                "{what} sendoff's own connections read what is committed and no more; hosts read what may be rolled back, and a pool of theirs that is lent to sendoff is refused."
            );
            Some(ISOLATION.found(what, format!("Set it only where it is wanted: {set}.")))
        }
        "SERIALIZABLE" => {
            let what = format!(
                "{what} Every plain read in a host's transaction locks what it reads, gaps too, and a worker that settles there waits or is chosen as a deadlock's victim."
            );
            Some(ISOLATION.found(what, format!("Set it only in the transactions that need it: {set}.")))
        }
        "REPEATABLE-READ" => {
            let what = format!(
                "{what} It is the server's default, and hosts may have it: only a transaction that they leave open is dearer, since it keeps what was deleted since it began."
            );
            let todo = format!("Nothing, or, if hosts do not count on it: {set}.");
            Some(ISOLATION.found(what, todo).at(Severity::Note))
        }
        _ => None,
    }
}

async fn sessions(pool: &MySqlPool, args: &DoctorArgs) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("mysql/long_transactions.sql"))
        .bind(i64::try_from(args.xmin_age.as_secs()).unwrap_or(i64::MAX))
        .fetch_all(pool)
        .await?;
    let read = |row: &MySqlRow| {
        let thread: i64 = row.try_get("thread")?;
        let (user, host): (String, String) = (row.try_get("user")?, row.try_get("host")?);
        let command: String = row.try_get("command")?;
        let (modified, age): (i64, i64) = (row.try_get("modified")?, row.try_get("seconds")?);
        #[allow(clippy::cast_precision_loss)]
        let age = seconds(age as f64);
        let what = format!(
            "Session {thread} ({user} from {host}, {command}) has had a transaction open for {age}, and has changed {modified} rows."
        );
        Ok(LONG_TRANSACTION.found(what, format!("Let the application end it, or end it: KILL {thread};")))
    };
    rows.iter().map(read).collect()
}

async fn indexes(site: &Site, pool: &MySqlPool, script: &str) -> Result<Vec<Finding>> {
    let mut present = Present::default();
    for (table, _) in tables(site, pool).await? {
        present.tables.insert(table);
    }
    let rows = sqlx::query(include_str!("mysql/indexes.sql"))
        .bind(&site.names)
        .bind(&site.names)
        .fetch_all(pool)
        .await?;
    for row in &rows {
        let name: String = row.try_get("index_name")?;
        let name = (name != "PRIMARY").then_some(name);
        present.indexes.push(Index { table: row.try_get("table_name")?, name, mend: None });
    }
    Ok(compare(script, &present))
}

async fn engines(site: &Site, pool: &MySqlPool) -> Result<Vec<Finding>> {
    let ours = TABLES.map(|table| format!("{}{table}", site.names));
    let mut found = Vec::new();
    for (table, engine) in tables(site, pool).await? {
        if ours.contains(&table) && engine != "InnoDB" {
            let quoted = quoted(site, table.strip_prefix(&site.names).unwrap_or(&table));
            let what = format!("The table {table} is kept by {engine}.");
            found.push(TABLE_ENGINE.found(what, format!("ALTER TABLE {quoted} ENGINE = InnoDB;")));
        }
    }
    Ok(found)
}

/// The tables whose names begin as ours do, each with its engine.
async fn tables(site: &Site, pool: &MySqlPool) -> Result<Vec<(String, String)>> {
    let rows = sqlx::query(include_str!("mysql/tables.sql"))
        .bind(&site.names)
        .bind(&site.names)
        .fetch_all(pool)
        .await?;
    let read = |row: &MySqlRow| {
        let engine: Option<String> = row.try_get("engine")?;
        Ok((row.try_get("table_name")?, engine.unwrap_or_else(|| "nothing".to_owned())))
    };
    rows.iter().map(read).collect()
}

async fn plans(outbox: &MysqlOutbox, args: &DoctorArgs, inspect: &dyn Inspect) -> Result<Vec<Finding>> {
    let todo = "Make the index that is missing.";
    let mut found = Vec::new();
    for target in targets(args, inspect).await? {
        match outbox.plan_fetch(&target).await {
            Ok(plan) => found.extend(fetch_plan(&target, &plan, todo)),
            // The statement names its index; without it the server refuses to run it.
            Err(error) if is_refused(&error) => {
                let what = format!("A fetch of target {target} is refused by the server: {error}.");
                found.push(FETCH_NOT_BY_INDEX.found(what, todo).at(Severity::Problem));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

fn is_refused(error: &StoreError) -> bool {
    !matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Contended)
}
