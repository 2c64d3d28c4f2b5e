//! A page of the event table: measured first, then read.
//!
//! Measuring asks every lane for the positions and sizes of its lowest events, which is cheap where there are none. What is read then is known
//! by its positions, so that neither a lane's bytes nor the whole page go beyond their limits.

use std::collections::HashMap;

use super::template::{Arg, list};
use super::{SqlDatabase, SqlOutbox};
use crate::error::StoreError;
use crate::outbox::{Fetch, Fetched, LANES, Lane, LaneFetch, Page};
use crate::stores::sql::{Dialect, Plan, Statement};

/// Rows that are read by one statement.
const ROWS_MAX: usize = 4_096;

/// What a lane has to give.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// Where its lane stands among those that were asked for.
    place: usize,
    lane: Lane,
    position: i64,
    bytes: u64,
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn fetch_page(&self, want: &Fetch) -> Result<Page, StoreError> {
        let mut measured = self.measure(want, want.limit).await?;
        if measured.len() >= want.limit as usize
            && !measured.is_sorted_by_key(|one| (one.place, one.position))
        {
            // The database answered lanes out of their order: what the limit left out may come before what it let in.
            measured = self.measure(want, u32::MAX).await?;
            measured.sort_by_key(|one| (one.place, one.position));
            measured.truncate(want.limit as usize);
        }
        let is_full = measured.len() >= want.limit as usize;
        let ends_in = measured.last().filter(|_| is_full).map(|one| one.lane);
        measured.sort_by_key(|one| (one.place, one.position));
        keep_within_bytes(&mut measured, want.bytes_per_lane);
        let mut rows: HashMap<i64, Fetched> = HashMap::with_capacity(measured.len());
        for part in measured.chunks(ROWS_MAX) {
            self.read_events(&want.target, part, &mut rows).await?;
        }
        let mut page = Page { ends_in, ..Page::default() };
        for one in measured {
            match rows.remove(&one.position) {
                Some(row) => page.events.push(row),
                None => page.gone.push((one.lane, one.position)),
            }
        }
        Ok(page)
    }

    /// How the database would find the events of a target, for a worker that has all its lanes. Reads, and hands out nothing.
    ///
    /// # Errors
    /// As a fetch: on MariaDB and MySQL also where the index that it names is gone.
    pub async fn plan_fetch(&self, target: &str) -> Result<Plan, StoreError> {
        let want = whole_fetch(target);
        let mut plan = self.database.explain(&self.measure_statement(&want, want.limit)?).await?;
        // By its positions alone it would be read whole for every lane.
        let is_by_lane = |line: &str| line.contains("lane=?");
        let mut of_events = plan.text.lines().filter(|line| line.contains(" f "));
        if self.templates.dialect == Dialect::Sqlite && !of_events.all(is_by_lane) {
            plan.index = None;
        }
        Ok(plan)
    }

    fn measure_statement(&self, want: &Fetch, limit: u32) -> Result<Statement, StoreError> {
        let parts = want.lanes.iter().map(|lane| {
            vec![
                ("target", Arg::from(want.target.as_str())),
                ("lane", Arg::from(lane.lane)),
                ("above", Arg::from(lane.above)),
                ("limit", Arg::from(lane.limit.min(want.limit))),
            ]
        });
        self.templates.union_up_to(include_str!("measure.sql"), parts, limit)
    }

    async fn measure(&self, want: &Fetch, limit: u32) -> Result<Vec<Measured>, StoreError> {
        let statement = self.measure_statement(want, limit)?;
        let places: HashMap<Lane, usize> =
            want.lanes.iter().enumerate().map(|(place, lane)| (lane.lane, place)).collect();
        let mut measured = Vec::new();
        for mut row in self.read("fetch", &statement).await? {
            let (position, lane) = (row.int("id")?, row.lane()?);
            let bytes = u64::try_from(row.int("bytes")?).unwrap_or_default();
            let place = places.get(&lane).copied().unwrap_or(usize::MAX);
            measured.push(Measured { place, lane, position, bytes });
        }
        Ok(measured)
    }

    async fn read_events(
        &self,
        target: &str,
        wanted: &[Measured],
        rows: &mut HashMap<i64, Fetched>,
    ) -> Result<(), StoreError> {
        let Some(last) = wanted.last() else { return Ok(()) };
        // Few different statements, which the database keeps prepared: the last position fills up.
        let count = wanted.len().next_power_of_two();
        let positions = wanted.iter().chain(std::iter::repeat(last)).take(count).map(|one| one.position);
        let statement = self.templates.fill(include_str!("fetch.sql"), &[("ids", list(positions))])?;
        for row in self.read("fetch", &statement).await? {
            let row = row.hot(target)?;
            rows.insert(row.event.position, row);
        }
        Ok(())
    }
}

/// A page of all lanes, from their beginning.
pub(crate) fn whole_fetch(target: &str) -> Fetch {
    const EVENTS: u32 = 500;
    let lanes = (0..LANES).map(|lane| LaneFetch { lane, above: 0, limit: EVENTS });
    Fetch { target: target.to_owned(), lanes: lanes.collect(), limit: EVENTS, bytes_per_lane: 1 << 20 }
}

/// A lane does not go on once it has given enough bytes.
fn keep_within_bytes(measured: &mut Vec<Measured>, bytes_per_lane: u64) {
    let mut given: HashMap<Lane, u64> = HashMap::new();
    measured.retain(|one| {
        let so_far = given.entry(one.lane).or_default();
        let stays = *so_far < bytes_per_lane;
        *so_far = so_far.saturating_add(one.bytes);
        stays
    });
}
