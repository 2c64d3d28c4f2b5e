//! What an SQLite file can be asked.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use sendoff::outbox::Inspect;
use sendoff::stores::sqlite::{SqliteDatabase, SqliteOutbox};
use sendoff::stores::{Migration, SchemaState};
use sqlx::Row as _;
use sqlx::sqlite::SqlitePool;

use super::finding::{Finding, INTEGRITY, JOURNAL_MODE, NETWORK_FILE};
use super::report::Report;
use super::schema::{Index, Present, compare};
use super::{fetch_plan, micros_here, opened, outbox, schema, targets};
use crate::args::DoctorArgs;
use crate::site::Site;

/// Looks at the file, then at the tables, then at the outbox.
pub(super) async fn examine(
    site: &Site,
    pool: &SqlitePool,
    args: &DoctorArgs,
    report: &mut Report,
) -> Result<()> {
    report.take("journal-mode", journal(pool).await)?;
    match file_system(pool.connect_options().get_filename()) {
        Some(kind) => report.take("file-system", Ok(network(kind)))?,
        None => report.skip("file-system", "this system does not tell what the file is on"),
    }
    report.skip(
        "busy-timeout, synchronous",
        "every connection sets its own, and only its own program sees them: sendoff's wait a second for a \
         writer and then try again for ten, with synchronous = NORMAL; a host's should wait at least as long",
    );
    if args.deep {
        report.take("integrity", integrity(pool).await)?;
    }

    let database = SqliteDatabase::from_pool(pool.clone()).await?;
    let migration = Migration::named(database.clone(), site.names()?);
    let state = migration.state().await?;
    report.take("schema", Ok(schema(&state)))?;
    if state != SchemaState::Current {
        report.skip("tables", "the outbox's tables must be there first, in this program's version");
        return Ok(());
    }
    report.take("indexes", indexes(pool, &migration.script()?).await)?;

    let whole = SqliteOutbox::open_as(database, site.names()?).await.map(Arc::new);
    let plan = whole.as_ref().ok().map(Arc::clone);
    let whole = whole.map(|outbox| outbox as Arc<dyn Inspect>).map_err(anyhow::Error::from);
    let Some(inspect) = opened(report, whole)? else { return Ok(()) };
    if let Some(outbox) = plan {
        report.take("fetch-plan", plans(&outbox, args, &*inspect).await)?;
    }
    // The file's clock is this machine's.
    outbox::examine(site, &*inspect, args, micros_here(), report).await
}

async fn journal(pool: &SqlitePool) -> Result<Vec<Finding>> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(pool).await?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(Vec::new());
    }
    let what = format!("The file's journal mode is {}, not WAL.", mode.to_uppercase());
    let todo = "Stop what sets it (a host's own PRAGMA journal_mode), then, while nobody has the file open: PRAGMA journal_mode = WAL; \
                it stays so. A relay sets it as well when it starts.";
    Ok(vec![JOURNAL_MODE.found(what, todo)])
}

async fn integrity(pool: &SqlitePool) -> Result<Vec<Finding>> {
    let lines: Vec<String> = sqlx::query_scalar("PRAGMA quick_check(5)").fetch_all(pool).await?;
    if lines == ["ok"] {
        return Ok(Vec::new());
    }
    let what = format!("PRAGMA quick_check says: {}.", lines.join("; "));
    Ok(vec![INTEGRITY.found(what, "Restore a backup, or save what can be read: sqlite3 FILE .recover")])
}

async fn indexes(pool: &SqlitePool, script: &str) -> Result<Vec<Finding>> {
    let mut present = Present::default();
    let rows = sqlx::query(include_str!("sqlite/indexes.sql")).fetch_all(pool).await?;
    for row in &rows {
        let (name, table): (String, String) = (row.try_get("name")?, row.try_get("table_name")?);
        if row.try_get::<String, _>("kind")? == "index" {
            present.indexes.push(Index { table, name: Some(name), mend: None });
        } else {
            // Its primary key cannot be taken from a table here.
            present.tables.insert(table.clone());
            present.indexes.push(Index { table, name: None, mend: None });
        }
    }
    Ok(compare(script, &present))
}

async fn plans(outbox: &SqliteOutbox, args: &DoctorArgs, inspect: &dyn Inspect) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for target in targets(args, inspect).await? {
        let plan = outbox.plan_fetch(&target).await?;
        found.extend(fetch_plan(&target, &plan, "Make the index that is missing."));
    }
    Ok(found)
}

fn network(kind: u64) -> Vec<Finding> {
    let Some(name) = network_name(kind) else { return Vec::new() };
    let what = format!("The file is on a network file system, {name}.");
    vec![
        NETWORK_FILE
            .found(what, "Move it to a disk of the machine that its programs run on, or use a server."),
    ]
}

/// The network file systems of Linux, by the number that each has there.
fn network_name(kind: u64) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9P",
        0x5346_414f => "AFS",
        _ => return None,
    })
}

/// What kind of file system a file is on.
#[cfg(target_os = "linux")]
fn file_system(file: &Path) -> Option<u64> {
    let kind = rustix::fs::statfs(file).ok()?.f_type;
    // Numbers of 32 bits, which some systems hand over with a sign.
    u64::try_from(kind).ok().map(|kind| kind & 0xffff_ffff)
}

#[cfg(not(target_os = "linux"))]
fn file_system(_file: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_file_system_is_known_by_its_number() {
        assert_eq!(network(0x6969)[0].code, "network-file");
        assert!(network(0xff53_4d42)[0].what.contains("SMB"));
        assert_eq!(network(0xef53), [], "ext4");
        assert_eq!(network(0x0102_1994), [], "tmpfs");
    }
}
