//! The store's contract in portable SQL.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use super::note::note_name;
use super::{Arg, SqlDatabase, SqlOutbox, distinct, list};
use crate::claim::{ClaimSpec, Claimable, Record};
use crate::error::StoreError;
use crate::outbox::{
    Census, Fetch, Fetched, Flush, LANES, Lane, LaneSet, Leased, Member, Page, ParkedFetch, Peer, Reason,
    Settled, Store, Token, WorkerId, leases,
};

/// Workers whose registration ended so many leases ago are forgotten.
const FORGET_AFTER_LEASES: i64 = 20;

/// So many keys' runs are read in one statement.
const RUNS_MAX: usize = 50;

impl<D: SqlDatabase> SqlOutbox<D> {
    /// Registers a worker, with or without a session lock of its own.
    pub(crate) async fn register(&self, member: &Member, has_session: bool) -> Result<(), StoreError> {
        let until = Arg::Now(micros(member.lease));
        let worker = self.templates.worker(member.worker);
        let target = Arg::from(member.target.as_str());
        let update = self
            .templates
            .fill(include_str!("join_update.sql"), &[("worker", worker.clone()), ("until", until.clone())])?;
        if self.write("join", &[update]).await? == [0] {
            let mut statements = Vec::new();
            let has_session = Arg::Bound(crate::stores::sql::Bind::Bool(has_session));
            let insert = self.templates.fill(
                include_str!("join_insert.sql"),
                &[
                    ("worker", worker),
                    ("target", target.clone()),
                    ("name", Arg::from(member.name.as_str())),
                    ("has_session", has_session),
                    ("until", until),
                ],
            )?;
            statements.push(insert);
            // With it, so that nobody ever sees the one without the other.
            if !member.scope.is_usual() {
                let (name, scope) = (scope_name(member.worker), member.scope.to_string());
                let args = [("name", Arg::from(name.as_str())), ("value", Arg::from(scope.as_str()))];
                statements.push(self.templates.fill(include_str!("note.sql"), &args)?);
            }
            self.write("join", &statements).await?;
        }
        let count = self.templates.fill(include_str!("count_lanes.sql"), &[("target", target.clone())])?;
        let mut rows = self.read("join", &count).await?;
        let known = rows.pop().map_or(Ok(0), |mut row| row.int("count"))?;
        if known < i64::from(LANES) {
            let rows = (0..LANES).map(|lane| vec![target.clone(), Arg::from(lane)]).collect();
            let lanes = self.templates.fill(include_str!("join_lanes.sql"), &[("rows", Arg::Rows(rows))])?;
            self.write("join", &[lanes]).await?;
        }
        Ok(())
    }

    /// Who works for a target.
    pub(super) async fn census_of(&self, target: &str) -> Result<Census, StoreError> {
        let paused = paused_name(target);
        let statement = self.templates.fill(
            include_str!("census.sql"),
            &[("target", Arg::from(target)), ("paused", Arg::from(paused.as_str()))],
        )?;
        let mut census = Census::default();
        for mut row in self.read("census", &statement).await? {
            let worker = WorkerId(row.uuid("worker")?);
            census.paused = row.int("paused")? > 0;
            census.workers.push(Peer { worker, scope: row.scope()? });
        }
        census.workers.sort_unstable_by_key(|peer| peer.worker);
        Ok(census)
    }

    /// Takes those off the register whose registration ended long ago.
    pub(crate) async fn forget_workers(&self, member: &Member) -> Result<(), StoreError> {
        let long = micros(member.lease).saturating_mul(FORGET_AFTER_LEASES);
        let forget = self.templates.fill(
            include_str!("forget_workers.sql"),
            &[("target", Arg::from(member.target.as_str())), ("long_ago", Arg::Now(-long))],
        )?;
        if self.write("take", &[forget]).await? != [0] {
            self.forget_scopes().await?;
        }
        Ok(())
    }

    /// Deletes what was kept of workers that are not on the register any more.
    pub(crate) async fn forget_scopes(&self) -> Result<(), StoreError> {
        let forget = self.templates.fill(include_str!("forget_scopes.sql"), &[])?;
        self.write("take", &[forget]).await?;
        Ok(())
    }

    /// Leases lanes, also those of workers that are known to be gone.
    pub(crate) async fn take_from(
        &self,
        member: &Member,
        gone: &[WorkerId],
        lanes: LaneSet,
        most: u16,
    ) -> Result<Vec<Leased>, StoreError> {
        if self.leases_on_floor {
            let floor = OnFloor(self.lanes.clone());
            return leases::take(&floor, &self.lane_table, member, gone, lanes, most).await;
        }
        leases::take(&self.lanes, &self.lane_table, member, gone, lanes, most).await
    }

    async fn fetch_runs(
        &self,
        target: &str,
        heads: &[&Fetched],
        limit: usize,
    ) -> Result<Vec<Fetched>, StoreError> {
        if heads.is_empty() {
            return Ok(Vec::new());
        }
        let parts = heads.iter().map(|head| {
            vec![
                ("target", Arg::from(target)),
                ("lane", Arg::from(head.event.lane)),
                ("key", Arg::from(head.event.key.as_deref())),
                ("above", Arg::from(head.event.position)),
                ("limit", Arg::from(u32::try_from(limit).unwrap_or(u32::MAX))),
            ]
        });
        let statement = self.templates.union(include_str!("fetch_run.sql"), parts)?;
        let rows = self.read("fetch parked", &statement).await?;
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            runs.push(row.parked(target)?.0);
        }
        runs.sort_by_key(|row| row.event.position);
        Ok(runs)
    }

    /// The lanes where a parked event is due, and when the next one will be.
    async fn due_lanes(&self, want: &Fetch) -> Result<(LaneSet, Option<Duration>), StoreError> {
        let lanes = list(want.lanes.iter().map(|lane| lane.lane));
        let statement = self.templates.fill(
            include_str!("next_due.sql"),
            &[("target", Arg::from(want.target.as_str())), ("lanes", lanes)],
        )?;
        let (mut due, mut wait) = (Vec::new(), None::<Duration>);
        for mut row in self.read("fetch parked", &statement).await? {
            let (now, lane) = (row.moment("now")?, row.lane()?);
            if row.optional_moment("first_due")?.is_some_and(|first| first <= now) {
                due.push(lane);
            }
            if let Some(next) = row.optional_moment("next_due")? {
                let micros = next.as_micros().saturating_sub(now.as_micros());
                let next = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
                wait = Some(wait.map_or(next, |wait| wait.min(next)));
            }
        }
        Ok((due.into_iter().collect(), wait))
    }
}

#[async_trait]
impl<D: SqlDatabase> Store for SqlOutbox<D> {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        self.register(member, false).await
    }

    async fn census(&self, member: &Member) -> Result<Census, StoreError> {
        self.census_of(&member.target).await
    }

    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError> {
        self.forget_workers(member).await?;
        self.take_from(member, &[], lanes, most).await
    }

    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError> {
        let until = Arg::Now(micros(member.lease));
        let worker = self.templates.worker(member.worker);
        let target = Arg::from(member.target.as_str());
        let mut statements = vec![self.templates.fill(
            include_str!("renew_worker.sql"),
            &[("worker", worker.clone()), ("until", until.clone())],
        )?];
        if !tokens.is_empty() {
            statements.push(self.templates.fill(
                include_str!("renew_lanes.sql"),
                &[
                    ("worker", worker.clone()),
                    ("target", target.clone()),
                    ("until", until),
                    ("lanes", list(tokens.iter().map(|token| token.lane))),
                ],
            )?);
        }
        self.write("renew", &statements).await?;
        let owned = self
            .templates
            .fill(include_str!("owned_lanes.sql"), &[("worker", worker), ("target", target)])?;
        let mut current = HashSet::new();
        for mut row in self.read("renew", &owned).await? {
            current.insert((row.lane()?, row.int("epoch")?));
        }
        let kept = tokens.iter().filter(|token| current.contains(&(token.lane, token.epoch)));
        Ok(kept.map(|token| token.lane).collect())
    }

    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError> {
        let statements = tokens.iter().map(|token| {
            self.templates.fill(
                include_str!("give.sql"),
                &[
                    ("target", Arg::from(member.target.as_str())),
                    ("lane", Arg::from(token.lane)),
                    ("worker", self.templates.worker(token.worker)),
                    ("epoch", Arg::from(token.epoch)),
                ],
            )
        });
        self.write("give", &statements.collect::<Result<Vec<_>, _>>()?).await?;
        Ok(())
    }

    async fn leave(&self, member: &Member) -> Result<(), StoreError> {
        let worker = self.templates.worker(member.worker);
        let target = Arg::from(member.target.as_str());
        let lanes = self
            .templates
            .fill(include_str!("leave_lanes.sql"), &[("target", target), ("worker", worker.clone())])?;
        let gone = self.templates.fill(include_str!("leave_worker.sql"), &[("worker", worker)])?;
        let notes = self.forget_notes([note_name(member.worker), scope_name(member.worker)])?;
        self.write("leave", &[lanes, gone, notes]).await?;
        Ok(())
    }

    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError> {
        self.fetch_page(want).await
    }

    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError> {
        let (due, next_due) = self.due_lanes(want).await?;
        if due.is_empty() {
            return Ok(ParkedFetch::nothing(next_due));
        }
        let parts = want.lanes.iter().filter(|lane| due.contains(lane.lane)).map(|lane| {
            vec![
                ("target", Arg::from(want.target.as_str())),
                ("lane", Arg::from(lane.lane)),
                ("limit", Arg::from(lane.limit.min(want.limit))),
            ]
        });
        let statement = self.templates.union(include_str!("fetch_parked.sql"), parts)?;
        let rows = self.read("fetch parked", &statement).await?;
        let mut heads =
            rows.into_iter().map(|row| row.parked(&want.target)).collect::<Result<Vec<_>, _>>()?;
        heads.sort_by_key(|(row, due_at)| (*due_at, row.event.position));
        heads.truncate(want.limit as usize);
        let leads = |row: &&Fetched| row.event.key.is_some() && row.reason != Some(Reason::Delayed);
        let keyed: Vec<&Fetched> = heads.iter().map(|(row, _)| row).filter(leads).take(RUNS_MAX).collect();
        let runs = self.fetch_runs(&want.target, &keyed, want.limit as usize).await?;
        let mut events: Vec<Fetched> = Vec::with_capacity(heads.len() + runs.len());
        let mut unread = heads.iter().map(|(row, _)| row).filter(leads).skip(RUNS_MAX).peekable();
        for (head, _) in &heads {
            let is_unread = unread.next_if(|next| std::ptr::eq(*next, head)).is_some();
            if is_unread && head.reason == Some(Reason::Diverted) {
                // Alone it would say that nothing of its key is left. It comes up again.
                continue;
            }
            events.push(head.clone());
            if leads(&head) {
                let of_key = runs.iter().filter(|row| {
                    row.event.lane == head.event.lane
                        && row.event.key == head.event.key
                        && row.event.position > head.event.position
                });
                // A marker that has come up takes all of its key along, but for other markers.
                let is_marker = head.reason == Some(Reason::Diverted);
                let follows = |row: &&Fetched| is_marker || row.reason == Some(Reason::Behind);
                let of_key = of_key.filter(|row| !is_marker || row.reason != Some(Reason::Diverted));
                events.extend(of_key.take_while(follows).cloned());
            }
        }
        events.truncate(want.limit as usize);
        Ok(ParkedFetch { events, next_due, due })
    }

    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError> {
        let args = [
            ("target", Arg::from(member.target.as_str())),
            ("lane", Arg::from(lane)),
            ("id", Arg::from(position)),
        ];
        let hot = self.templates.fill(include_str!("find_event.sql"), &args)?;
        if let Some(row) = self.read("find", &hot).await?.pop() {
            return row.hot(&member.target).map(Some);
        }
        let parked = self.templates.fill(include_str!("find_parked.sql"), &args)?;
        let row = self.read("find", &parked).await?.pop();
        row.map(|row| Ok(row.parked(&member.target)?.0)).transpose()
    }

    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError> {
        let statement = self.templates.fill(
            include_str!("name.sql"),
            &[
                ("id", Arg::from(position)),
                ("target", Arg::from(member.target.as_str())),
                ("lane", Arg::from(token.lane)),
                ("worker", self.templates.worker(token.worker)),
                ("epoch", Arg::from(token.epoch)),
            ],
        )?;
        Ok(self.write("name", &[statement]).await? == [1])
    }

    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError> {
        self.settle_in_transaction(flush).await
    }

    async fn note_sink(&self, member: &Member, down: Option<&str>) -> Result<(), StoreError> {
        self.write_note(member.worker, down).await
    }
}

/// A table of lanes with its fast path taken away.
#[derive(Debug, Clone)]
struct OnFloor<T>(T);

impl<T: Claimable<Row = Record>> Claimable for OnFloor<T> {
    type Id = T::Id;
    type Row = Record;

    fn find(&self, spec: &ClaimSpec) -> impl Future<Output = Result<Vec<T::Id>, StoreError>> + Send {
        self.0.find(spec)
    }

    fn claim_one(
        &self,
        spec: &ClaimSpec,
        id: &T::Id,
    ) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send {
        self.0.claim_one(spec, id)
    }
}

/// Where a paused target is written down.
pub(crate) fn paused_name(target: &str) -> String {
    format!("paused:{target}")
}

/// Where a worker's scope is written down.
fn scope_name(worker: WorkerId) -> String {
    format!("scope:{}", worker.0.simple())
}

pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 1_000)
}

/// Lanes of settlements, each once.
pub(crate) fn lanes_of(lanes: impl IntoIterator<Item = Lane>) -> Arg {
    let mut lanes = distinct(lanes);
    lanes.sort_unstable();
    list(lanes)
}
