//! What everybody starts with, on PostgreSQL: `SELECT … FOR UPDATE SKIP LOCKED` and a status column.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::task::JoinSet;

use super::load::Load;

/// Makes the table and fills it.
async fn fill(pool: &PgPool, schema: &str, events: u64, load: Load) -> Result<()> {
    let table = format!(
        "DROP TABLE IF EXISTS \"{schema}\".outbox_events; {}",
        include_str!("adr003.sql").replace("{schema}", schema)
    );
    sqlx::raw_sql(AssertSqlSafe(table)).execute(pool).await?;
    let fill = format!(
        "INSERT INTO \"{schema}\".outbox_events (aggregate_type, aggregate_id, event_type, payload, created_at) \
         SELECT 'bench', 'key-' || (random() * $1)::int, 'bench', jsonb_build_object('x', repeat('x', $2)), clock_timestamp() \
         FROM generate_series(1, $3)"
    );
    sqlx::query(AssertSqlSafe(fill))
        .bind(f64::from(load.keys))
        .bind(i32::try_from(load.payload.saturating_sub(8))?)
        .bind(i64::try_from(events)?)
        .execute(pool)
        .await?;
    sqlx::raw_sql(AssertSqlSafe(format!("VACUUM (ANALYZE) \"{schema}\".outbox_events")))
        .execute(pool)
        .await?;
    Ok(())
}

/// Events a second.
pub(crate) async fn drain(
    pool: &PgPool,
    schema: &str,
    events: u64,
    workers: u16,
    batch: u32,
    load: Load,
) -> Result<f64> {
    fill(pool, schema, events, load).await?;
    let select = format!(
        "SELECT id, aggregate_type, aggregate_id, event_type, payload FROM \"{schema}\".outbox_events \
         WHERE status = 'PENDING' ORDER BY created_at ASC LIMIT {batch} FOR UPDATE SKIP LOCKED"
    );
    let update = format!(
        "UPDATE \"{schema}\".outbox_events SET status = 'PUBLISHED', published_at = now() WHERE id = ANY ($1)"
    );
    let left = Arc::new(AtomicU64::new(events));
    let started = Instant::now();
    let mut loops = JoinSet::new();
    for _ in 0..workers {
        let (pool, left, select, update) = (pool.clone(), Arc::clone(&left), select.clone(), update.clone());
        loops.spawn(async move {
            let mut connection = pool.acquire().await?;
            while left.load(Ordering::Relaxed) > 0 {
                let mut transaction = sqlx::Connection::begin(&mut *connection).await?;
                let rows: Vec<(uuid::Uuid, String, String, String, serde_json::Value)> =
                    sqlx::query_as(AssertSqlSafe(select.clone())).fetch_all(&mut *transaction).await?;
                let ids: Vec<uuid::Uuid> = rows.iter().map(|row| row.0).collect();
                sqlx::query(AssertSqlSafe(update.clone())).bind(&ids).execute(&mut *transaction).await?;
                transaction.commit().await?;
                left.fetch_sub(ids.len() as u64, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = loops.join_next().await {
        ended??;
    }
    #[allow(clippy::cast_precision_loss)]
    let rate = events as f64 / started.elapsed().as_secs_f64();
    Ok(rate)
}
