//! Reading all lanes in one trip.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::PgRow;
use sqlx::types::time::OffsetDateTime;
use sqlx::{AssertSqlSafe, Row as _};

use super::super::{BEGIN, errors, layout};
use super::PostgresOutbox;
use super::database::plan_lines;
use super::tid::Tid;
use crate::error::StoreError;
use crate::event::{Attempts, Event, EventId, Headers};
use crate::outbox::{Fetch, Fetched, Hold, Lane, Page, Place};
use crate::stores::sql::{
    Faults, Plan, object_headers, retry, timestamp, whole_fetch, without_unreadable_key,
};

/// Binds what `fetch.sql` wants.
macro_rules! bind_fetch {
    ($query:expr, $want:expr) => {
        $query
            .bind(&$want.target)
            .bind($want.lanes.iter().map(|lane| small(lane.lane)).collect::<Vec<i16>>())
            .bind($want.lanes.iter().map(|lane| lane.above).collect::<Vec<i64>>())
            .bind($want.lanes.iter().map(|lane| i64::from(lane.limit)).collect::<Vec<i64>>())
            .bind(i64::from($want.limit))
    };
}

/// Up to so many rows it may be cheapest to read a table whole.
const FEW: i64 = 1_000;

/// A row whose payload is to come, with its size.
type Large = (usize, u64);

impl PostgresOutbox {
    pub(super) async fn fetch_fast(&self, want: &Fetch) -> Result<Page, StoreError> {
        let patience = self.database().patience;
        retry("fetch", "event", patience, || self.fetch_once(want)).await
    }

    async fn fetch_once(&self, want: &Fetch) -> Result<Page, StoreError> {
        let convert = |error| errors::convert("fetch", "event", error);
        let query = sqlx::query(AssertSqlSafe(self.statements.fetch.as_str()));
        let rows = self.fetch_all("fetch", bind_fetch!(query, want)).await?;
        let mut fetched = Vec::with_capacity(rows.len());
        let mut large: Vec<Large> = Vec::new();
        for row in &rows {
            let (read, bytes) = read(row, &want.target).map_err(convert)?;
            if let Some(bytes) = bytes {
                large.push((fetched.len(), bytes));
            }
            fetched.push(read);
        }
        let mut page = Page::new(fetched, want.limit);
        if !large.is_empty() {
            self.add_large(want, &mut page, &large).await?;
        }
        page.events = within_bytes(want, page.events);
        Ok(page)
    }

    /// How many of the server's buffers this fetch touches: its true cost, whatever else the machine does. Reads, and hands out nothing.
    ///
    /// # Errors
    /// As a fetch.
    pub async fn fetch_buffers(&self, want: &Fetch) -> Result<u64, StoreError> {
        let convert = |error| errors::convert("explain fetch", "event", error);
        let sql = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", self.statements.fetch);
        let query = sqlx::query(AssertSqlSafe(sql.as_str())).persistent(false);
        let row = self.fetch_one("explain fetch", bind_fetch!(query, want)).await?;
        let plan: serde_json::Value = row.try_get(0).map_err(convert)?;
        let of = |name: &str| plan[0]["Plan"][name].as_u64().unwrap_or(0);
        Ok(of("Shared Hit Blocks") + of("Shared Read Blocks"))
    }

    /// How the server would read the events of a target, for a worker that has all its lanes. Reads, and hands out nothing.
    ///
    /// A table of few rows is read whole and sorted, and rightly so: there the server is asked what it would do if it had to avoid that.
    ///
    /// # Errors
    /// As a fetch.
    pub async fn plan_fetch(&self, target: &str) -> Result<Plan, StoreError> {
        if !self.has_sessions() {
            return self.floor.plan_fetch(target).await;
        }
        let convert = |error| errors::convert("explain", "event", error);
        let want = whole_fetch(target);
        let count = format!("SELECT count(*) FROM (SELECT FROM {} LIMIT $1) AS few", self.statements.event);
        let count = sqlx::query(AssertSqlSafe(count)).bind(FEW + 1);
        let rows: i64 = self.fetch_one("explain", count).await?.try_get(0).map_err(convert)?;
        let mut connection = self.database().connections.acquire().await.map_err(convert)?;
        let mut transaction = sqlx::Connection::begin_with(&mut *connection, BEGIN).await.map_err(convert)?;
        if rows <= FEW {
            let avoid = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off";
            sqlx::raw_sql(avoid).execute(&mut *transaction).await.map_err(convert)?;
        }
        let sql = format!("EXPLAIN (COSTS OFF) {}", self.statements.fetch);
        let query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        let rows = bind_fetch!(query, want).fetch_all(&mut *transaction).await.map_err(convert)?;
        transaction.rollback().await.map_err(convert)?;
        connection.keep();
        Ok(layout::fetch_plan(&plan_lines(&rows), "e"))
    }

    /// Reads the large payloads there is room for; a lane ends before the first one there is none for.
    async fn add_large(&self, want: &Fetch, page: &mut Page, large: &[Large]) -> Result<(), StoreError> {
        let convert = |error| errors::convert("fetch", "event", error);
        let fetched = &mut page.events;
        let mut given: HashMap<Lane, u64> = HashMap::new();
        let mut ends: HashMap<Lane, usize> = HashMap::new();
        let mut chosen = Vec::new();
        for &(index, bytes) in large {
            let lane = fetched[index].event.lane;
            let so_far = given.entry(lane).or_default();
            if *so_far > 0 && *so_far + bytes > want.bytes_per_lane {
                ends.entry(lane).or_insert(index);
            }
            if !ends.contains_key(&lane) {
                *so_far += bytes;
                chosen.push(index);
            }
        }
        let lanes: Vec<i16> = chosen.iter().map(|index| small(fetched[*index].event.lane)).collect();
        let ids: Vec<i64> = chosen.iter().map(|index| fetched[*index].event.position).collect();
        let query = sqlx::query(AssertSqlSafe(self.statements.fetch_large.as_str()));
        let query = query.bind(&want.target).bind(lanes).bind(ids);
        let rows = self.fetch_all("fetch", query).await?;
        let mut payloads: HashMap<i64, Vec<u8>> = HashMap::new();
        for row in &rows {
            payloads.insert(row.try_get(0).map_err(convert)?, row.try_get(1).map_err(convert)?);
        }
        let mut gone = HashSet::new();
        for index in chosen {
            let event = &mut fetched[index].event;
            match payloads.remove(&event.position) {
                Some(payload) => event.payload = payload,
                // Settled or cancelled meanwhile.
                None => {
                    gone.insert(index);
                    page.gone.push((event.lane, event.position));
                }
            }
        }
        let mut index = 0;
        fetched.retain(|row| {
            let stays = ends.get(&row.event.lane).is_none_or(|end| index < *end) && !gone.contains(&index);
            index += 1;
            stays
        });
        Ok(())
    }
}

/// No lane goes on once it has given enough bytes.
fn within_bytes(want: &Fetch, mut fetched: Vec<Fetched>) -> Vec<Fetched> {
    let all: u64 = fetched.iter().map(|row| row.event.payload.len() as u64).sum();
    if all < want.bytes_per_lane {
        return fetched;
    }
    let mut given: HashMap<Lane, u64> = HashMap::new();
    fetched.retain(|row| {
        let so_far = given.entry(row.event.lane).or_default();
        let stays = *so_far < want.bytes_per_lane;
        *so_far = so_far.saturating_add(row.event.payload.len() as u64);
        stays
    });
    fetched
}

pub(super) fn small(lane: Lane) -> i16 {
    i16::try_from(lane).unwrap_or(i16::MAX)
}

/// The event, and its payload's size if that is still to come.
/// The statement says what each column is: looking at its type again for every row would be felt.
fn read(row: &PgRow, target: &str) -> Result<(Fetched, Option<u64>), sqlx::Error> {
    let mut faults = Faults::default();
    let headers = match row.try_get_unchecked::<Option<serde_json::Value>, _>(8) {
        Ok(headers) => headers.map_or(Ok(Headers::new()), object_headers),
        Err(_) => Err("its headers cannot be read as JSON".to_owned()),
    };
    let headers = headers.unwrap_or_else(|error| faults.add(error));
    let topic = text(row, 3, "topic", &mut faults)?.unwrap_or_default();
    let key = text(row, 4, "key", &mut faults)?;
    let content_type = text(row, 7, "content_type", &mut faults)?;
    let payload: Option<Vec<u8>> = row.try_get_unchecked(5)?;
    let bytes: Option<i32> = row.try_get_unchecked(6)?;
    let lane: i16 = row.try_get_unchecked(2)?;
    let later: Option<OffsetDateTime> = row.try_get_unchecked(11)?;
    let hold = match row.try_get_unchecked::<Option<&str>, _>(12)? {
        None => Hold::Free,
        Some("draining") => Hold::Draining,
        Some("diverted") => Hold::Diverted,
        Some(_) => Hold::Held,
    };
    let event = Event {
        event_id: EventId(row.try_get_unchecked(9)?),
        position: row.try_get_unchecked(1)?,
        standing: crate::event::Standing::Lane,
        target: target.to_owned(),
        lane: Lane::try_from(lane).unwrap_or_default(),
        topic,
        key,
        payload: payload.unwrap_or_default(),
        content_type,
        headers,
        created_at: timestamp(row.try_get_unchecked(10)?),
        attempts: Attempts::default(),
    };
    let address: Tid = row.try_get_unchecked(0)?;
    let fetched = Fetched {
        event,
        place: Place::Hot(Some(address.0)),
        hold,
        later: later.map(timestamp),
        reason: None,
        corrupt: faults.into_reason(),
    };
    Ok((without_unreadable_key(fetched), bytes.map(|bytes| u64::from(bytes.unsigned_abs()))))
}

/// Text of a column. A database whose encoding is SQL_ASCII may hold what is not UTF-8.
fn text(row: &PgRow, index: usize, column: &str, faults: &mut Faults) -> Result<Option<String>, sqlx::Error> {
    match row.try_get_unchecked(index) {
        Ok(text) => Ok(text),
        Err(_) => {
            let bytes = row.try_get_raw(index)?.as_bytes().map_err(sqlx::Error::Decode)?;
            Ok(Some(faults.utf8(column, bytes.to_vec())))
        }
    }
}
