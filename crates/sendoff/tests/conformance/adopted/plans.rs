//! An index serves every claim without a sort, over 100,000 rows, whatever their states.

use std::time::Duration;

use sendoff::adopted::Adopted;
use sendoff::claim::{ClaimSpec, Record};
use sendoff::stores::Plan;
use sendoff::stores::mysql::{MysqlDatabase, MysqlTable};
use sendoff::stores::postgres::{PostgresDatabase, PostgresTable};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteTable};

use super::host::{Host, Kind, Pool};

const ROWS: usize = 100_000;

/// The claims of a turn: what is pending, what was left behind, what failed.
fn specs(adopted: &Adopted) -> Vec<ClaimSpec> {
    adopted.mapping().claims_of_a_turn("planned", Duration::from_secs(30), 100).unwrap()
}

async fn explain(host: &Host, spec: &ClaimSpec) -> Plan {
    let table = host.mapping().description().unwrap();
    match &host.pool {
        Pool::Postgres(_) => {
            let database = PostgresDatabase::connect(&host.url).await.unwrap();
            let table: PostgresTable<Record> = database.table(table).await.unwrap();
            table.explain(spec).await.unwrap()
        }
        Pool::Mysql(_) => {
            let database = MysqlDatabase::connect(&host.url).await.unwrap();
            let table: MysqlTable<Record> = database.table(table).await.unwrap();
            table.explain(spec).await.unwrap()
        }
        Pool::Sqlite(_) => {
            let database = SqliteDatabase::connect(&host.url).await.unwrap();
            let table: SqliteTable<Record> = database.table(table).await.unwrap();
            table.explain(spec).await.unwrap()
        }
    }
}

pub(super) async fn an_index_serves_each_claim_without_a_sort(host: Host) {
    host.fill(ROWS).await;
    // Half is delivered; of the rest every tenth was left behind, and every tenth failed.
    let (status, id, owner, lease) = match host.kind {
        Kind::Framework => ("status", "created_at", "locked_by", "locked_until"),
        _ => ("Status", "CreatedUtc", "ClaimedBy", "ClaimExpiresUtc"),
    };
    let [status, id, owner, lease] = [status, id, owner, lease].map(|column| host.pool.quote(column));
    let [_, published, failed, _] = host.kind.words();
    let table = &host.table;
    let digit = |digit: u8| match host.pool {
        Pool::Postgres(_) => format!("extract(microseconds FROM {id})::bigint % 10 = {digit}"),
        Pool::Mysql(_) => format!("MICROSECOND({id}) % 10 = {digit}"),
        Pool::Sqlite(_) => format!("{id} LIKE '%{digit}'"),
    };
    let odd = [1, 3, 5, 7, 9].map(digit).join(" OR ");
    host.pool.run(&format!("UPDATE {table} SET {status} = '{published}' WHERE {odd}")).await;
    let left =
        if host.kind == Kind::Framework { format!("{status} = 'processing', ") } else { String::new() };
    let ended = "'2024-01-01 00:00:00.000000'";
    host.pool
        .run(&format!("UPDATE {table} SET {left}{owner} = 'lost', {lease} = {ended} WHERE {}", digit(4)))
        .await;
    host.pool.run(&format!("UPDATE {table} SET {status} = '{failed}' WHERE {}", digit(8))).await;
    let adopted = host.adopt().await;
    match &host.pool {
        Pool::Postgres(_) | Pool::Sqlite(_) => host.pool.run(&format!("ANALYZE {table}")).await,
        Pool::Mysql(_) => host.pool.run(&format!("ANALYZE TABLE {table}")).await,
    }
    let specs = specs(&adopted);
    assert_eq!(specs.len(), if host.kind == Kind::Framework { 3 } else { 2 });
    for spec in specs {
        let plan = explain(&host, &spec).await;
        assert!(plan.is_served_by_index(), "{:?}\n{}", spec.eligible(), plan.text);
    }
}
