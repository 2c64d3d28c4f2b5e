//! What a PostgreSQL server can be asked.

use std::sync::Arc;

use anyhow::Result;
use sendoff::outbox::Inspect;
use sendoff::stores::postgres::{Pooler, PostgresDatabase, PostgresOutbox};
use sendoff::stores::{Migration, SchemaState, SqlOutbox};
use sqlx::Row as _;
use sqlx::postgres::{PgPool, PgRow};

use super::finding::{
    AUTOVACUUM_OFF, DEAD_ROWS, Finding, ISOLATION, NOT_DURABLE, PINNED_XMIN, PREPARED_TRANSACTION,
    REPLICATION_SLOT, SEQUENCE_CACHE, STANDBY_FEEDBACK, Severity,
};
use super::report::Report;
use super::schema::{Index, Present, compare};
use super::tables::{TABLES, literal, quoted};
use super::{clock, fetch_plan, micros_here, opened, outbox, schema, seconds, targets};
use crate::args::DoctorArgs;
use crate::site::Site;

/// Looks at the server, then at the tables, then at the outbox.
pub(super) async fn examine(
    site: &Site,
    pool: &PgPool,
    args: &DoctorArgs,
    report: &mut Report,
) -> Result<()> {
    let before = micros_here();
    let now: i64 = sqlx::query_scalar(include_str!("postgres/clock.sql")).fetch_one(pool).await?;
    report.take("clock", Ok(clock(before, now, micros_here())))?;
    settings(pool, report).await?;
    report.take("sessions", sessions(site, pool, args).await)?;
    report.take("prepared-transactions", prepared(pool, args).await)?;
    report.take("replication-slots", slots(pool).await)?;
    report.take("standbys", standbys(pool).await)?;

    let database = PostgresDatabase::from_pool(pool.clone(), Pooler::None).await?;
    let migration = Migration::named(database.clone(), site.names()?);
    let state = migration.state().await?;
    report.take("schema", Ok(schema(&state)))?;
    if state != SchemaState::Current {
        report.skip("tables", "the outbox's tables must be there first, in this program's version");
        return Ok(());
    }
    report.take("indexes", indexes(site, pool, &migration.script()?).await)?;
    report.take("sequence", sequence(site, pool).await)?;
    report.take("autovacuum", autovacuum(site, pool).await)?;
    report.take("dead-rows", dead_rows(site, pool, args).await)?;

    let whole = SqlOutbox::open_as(database.clone(), site.names()?).await;
    let whole = whole.map(|outbox| Arc::new(outbox) as Arc<dyn Inspect>).map_err(anyhow::Error::from);
    let Some(inspect) = opened(report, whole)? else { return Ok(()) };
    let fast = PostgresOutbox::open_as(database, site.names()?).await?;
    report.take("fetch-plan", plans(site, &fast, args, &*inspect).await)?;
    outbox::examine(site, &*inspect, args, now, report).await
}

/// What the server is set to for this role.
async fn settings(pool: &PgPool, report: &mut Report) -> Result<()> {
    let row = sqlx::query(include_str!("postgres/settings.sql")).fetch_one(pool).await?;
    let (isolation, role): (String, String) = (row.try_get("isolation")?, row.try_get("role")?);
    let mut found = Vec::new();
    if isolation != "read committed" {
        let what = format!("Transactions of the role {role} begin as {}.", isolation.to_uppercase());
        let todo = format!(
            "Nothing is lost: what cannot be serialised is tried again. For the relay's role that is work for nothing: \
             ALTER ROLE \"{}\" SET default_transaction_isolation = 'read committed';",
            role.replace('"', "\"\"")
        );
        found.push(ISOLATION.found(what, todo).at(Severity::Note));
    }
    report.take("isolation", Ok(found))?;

    let mut found = Vec::new();
    for setting in ["autovacuum", "track_counts"] {
        if !row.try_get::<bool, _>(setting)? {
            let todo = format!("ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf();");
            found.push(AUTOVACUUM_OFF.found(format!("The server runs with {setting} = off."), todo));
        }
    }
    report.take("autovacuum-setting", Ok(found))?;

    let mut found = Vec::new();
    if !row.try_get::<bool, _>("fsync")? {
        let todo = "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf(); a server that is for tests only may leave it off.";
        found.push(
            NOT_DURABLE
                .found("The server runs with fsync = off: a crash of the machine can damage it.", todo),
        );
    }
    if row.try_get::<String, _>("synchronous_commit")? == "off" {
        let what = format!("Transactions of the role {role} commit with synchronous_commit = off.");
        let todo = "Leave it to the relay's option to settle asynchronously, and set it on for hosts: their events are what may be lost.";
        found.push(NOT_DURABLE.found(what, todo));
    }
    report.take("durability", Ok(found))?;
    if !row.try_get::<bool, _>("sees_all")? {
        let quoted = role.replace('"', "\"\"");
        report.skip(
            "sessions of other roles",
            format!("the role {role} may not see them: GRANT pg_read_all_stats TO \"{quoted}\""),
        );
    }
    Ok(())
}

async fn sessions(site: &Site, pool: &PgPool, args: &DoctorArgs) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("postgres/pinned_xmin.sql"))
        .bind(args.xmin_age.as_secs_f64())
        .bind(quoted(site, "event"))
        .fetch_all(pool)
        .await?;
    let read = |row: &PgRow| {
        let pid: i32 = row.try_get("pid")?;
        let (role, state): (String, String) = (row.try_get("role")?, row.try_get("state")?);
        let application = match row.try_get::<String, _>("application")? {
            unnamed if unnamed.is_empty() => String::new(),
            named => format!(" of {named}"),
        };
        let writes =
            if row.try_get("writes")? { " It has written events that are not committed." } else { "" };
        let what = format!(
            "Session {pid}{application} (role {role}) has had a transaction open for {}, and is {state}.{writes}",
            seconds(row.try_get("seconds")?)
        );
        let todo = format!("Let the application end it, or end it: SELECT pg_terminate_backend({pid});");
        Ok(PINNED_XMIN.found(what, todo))
    };
    rows.iter().map(read).collect()
}

async fn prepared(pool: &PgPool, args: &DoctorArgs) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("postgres/prepared.sql"))
        .bind(args.xmin_age.as_secs_f64())
        .fetch_all(pool)
        .await?;
    let read = |row: &PgRow| {
        let (gid, role): (String, String) = (row.try_get("gid")?, row.try_get("role")?);
        let what = format!(
            "The transaction {} (role {role}) has been prepared for {}, and neither committed nor rolled back.",
            literal(&gid),
            seconds(row.try_get("seconds")?)
        );
        let todo = format!(
            "Ask its coordinator what it decided. If nobody knows: ROLLBACK PREPARED {0}; (or COMMIT PREPARED {0};)",
            literal(&gid)
        );
        Ok(PREPARED_TRANSACTION.found(what, todo))
    };
    rows.iter().map(read).collect()
}

async fn slots(pool: &PgPool) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("postgres/slots.sql")).fetch_all(pool).await?;
    let read = |row: &PgRow| {
        let (slot, kind): (String, String) = (row.try_get("slot")?, row.try_get("kind")?);
        let pid: Option<i32> = row.try_get("active_pid")?;
        let pins =
            if row.try_get("pins_rows")? { "deleted rows" } else { "deleted rows of the catalogs, and log," };
        let reader =
            pid.map_or_else(|| "nobody reads it".to_owned(), |pid| format!("process {pid} reads it"));
        let transactions: i64 = row.try_get("transactions")?;
        let what = format!(
            "The {kind} replication slot {slot} keeps {pins} of the last {transactions} transactions; {reader}."
        );
        let todo = match pid {
            None => {
                format!("Start its reader, or drop it: SELECT pg_drop_replication_slot({});", literal(&slot))
            }
            Some(_) => "See why its reader is behind.".to_owned(),
        };
        let severity = if pid.is_none() { Severity::Problem } else { Severity::Warning };
        Ok(REPLICATION_SLOT.found(what, todo).at(severity))
    };
    rows.iter().map(read).collect()
}

async fn standbys(pool: &PgPool) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("postgres/standbys.sql")).fetch_all(pool).await?;
    let read = |row: &PgRow| {
        let pid: i32 = row.try_get("pid")?;
        let (application, address): (String, String) = (row.try_get("application")?, row.try_get("address")?);
        let transactions: i64 = row.try_get("transactions")?;
        let what = format!(
            "The standby {application} at {address} (sender {pid}) keeps deleted rows of the last {transactions} transactions."
        );
        let todo = "End the long query there (pg_stat_activity on the standby), or set hot_standby_feedback = off on it.";
        Ok(STANDBY_FEEDBACK.found(what, todo))
    };
    rows.iter().map(read).collect()
}

async fn indexes(site: &Site, pool: &PgPool, script: &str) -> Result<Vec<Finding>> {
    let mut present = Present::default();
    let tables: Vec<String> =
        sqlx::query_scalar(include_str!("postgres/tables.sql")).bind(&site.names).fetch_all(pool).await?;
    present.tables.extend(tables);
    let rows = sqlx::query(include_str!("postgres/indexes.sql")).bind(&site.names).fetch_all(pool).await?;
    for row in &rows {
        let name = (!row.try_get::<bool, _>("is_primary")?).then(|| row.try_get("index_name")).transpose()?;
        let is_valid: bool = row.try_get("is_valid")?;
        let quoted: String = row.try_get("quoted")?;
        let mend = (!is_valid).then(|| format!("REINDEX INDEX CONCURRENTLY {quoted};"));
        present.indexes.push(Index { table: row.try_get("table_name")?, name, mend });
    }
    Ok(compare(script, &present))
}

async fn sequence(site: &Site, pool: &PgPool) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("postgres/sequence.sql"))
        .bind(quoted(site, "event"))
        .fetch_all(pool)
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        let (sequence, cache): (String, i64) = (row.try_get("sequence")?, row.try_get("cache")?);
        if cache > 1 {
            let what = format!("The sequence of positions, {sequence}, has CACHE {cache}.");
            found.push(SEQUENCE_CACHE.found(what, format!("ALTER SEQUENCE {sequence} CACHE 1;")));
        }
    }
    Ok(found)
}

async fn autovacuum(site: &Site, pool: &PgPool) -> Result<Vec<Finding>> {
    let tables: Vec<String> = sqlx::query_scalar(include_str!("postgres/autovacuum.sql"))
        .bind(&site.names)
        .bind(TABLES.as_slice())
        .fetch_all(pool)
        .await?;
    let read = |table: String| {
        let todo = format!("ALTER TABLE {table} RESET (autovacuum_enabled);");
        AUTOVACUUM_OFF.found(format!("Autovacuum is turned off for the table {table}."), todo)
    };
    Ok(tables.into_iter().map(read).collect())
}

async fn dead_rows(site: &Site, pool: &PgPool, args: &DoctorArgs) -> Result<Vec<Finding>> {
    let rows = sqlx::query(include_str!("postgres/dead_rows.sql"))
        .bind(&site.names)
        .bind(TABLES.as_slice())
        .bind(i64::from(args.dead_rows))
        .fetch_all(pool)
        .await?;
    let read = |row: &PgRow| {
        let table: String = row.try_get("table_name")?;
        let (live, dead): (i64, i64) = (row.try_get("live")?, row.try_get("dead")?);
        let last = row.try_get::<Option<f64>, _>("seconds")?;
        let last = last.map_or_else(|| "never".to_owned(), |ago| format!("{} ago", seconds(ago)));
        let what = format!(
            "The table {table} has {dead} deleted rows beside {live} that are there; it was last vacuumed {last}."
        );
        let todo = format!(
            "See first whether something pins them (pinned-xmin, prepared-transaction, replication-slot); then: VACUUM {table};"
        );
        Ok(DEAD_ROWS.found(what, todo))
    };
    rows.iter().map(read).collect()
}

async fn plans(
    site: &Site,
    outbox: &PostgresOutbox,
    args: &DoctorArgs,
    inspect: &dyn Inspect,
) -> Result<Vec<Finding>> {
    let todo = format!("See whether an index is missing; if none is: ANALYZE {};", quoted(site, "event"));
    let mut found = Vec::new();
    for target in targets(args, inspect).await? {
        found.extend(fetch_plan(&target, &outbox.plan_fetch(&target).await?, &todo));
    }
    Ok(found)
}
