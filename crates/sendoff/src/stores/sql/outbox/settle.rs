//! Settling in one transaction: the leases are locked and checked, then every row is moved to where it belongs.

use std::collections::{BTreeMap, HashSet};

use super::store::lanes_of;
use super::{Arg, SqlDatabase, SqlOutbox, SqlTransaction, distinct, list};
use crate::error::StoreError;
use crate::event::Attempts;
use crate::outbox::{Change, Due, Failure, Flush, Lane, Reason, Settled, Settlement};
use crate::stores::sql::{Dialect, KEYS_PER_STATEMENT, retry};

/// Rows that go the same way, and can go together.
#[derive(Debug)]
struct Group<'a> {
    is_hot: bool,
    change: &'a Change,
    rows: Vec<&'a Settlement>,
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(crate) async fn settle_in_transaction(&self, flush: &Flush) -> Result<Settled, StoreError> {
        let subject = self.templates.names.subject();
        retry("settle", &subject, self.database.time_to_try(), || async {
            // Deleting says how many were there, not which: if some were not, it is done again with a look first.
            match self.settle_once(flush, false).await? {
                Some(settled) => Ok(settled),
                None => Ok(self.settle_once(flush, true).await?.unwrap_or_default()),
            }
        })
        .await
    }

    /// None: a row was missing, and nothing was changed.
    async fn settle_once(&self, flush: &Flush, looks: bool) -> Result<Option<Settled>, StoreError> {
        let mut transaction = self.database.begin("settle").await?;
        let current = self.fence(transaction.as_mut(), flush).await?;
        let mut settled = Settled::default();
        let mut rows = Vec::with_capacity(flush.settlements.len());
        for row in &flush.settlements {
            if current.contains(&row.lane) {
                rows.push(row);
            } else {
                settled.stale.insert(row.lane);
            }
        }
        if looks {
            let present = self.present(transaction.as_mut(), &flush.target, &rows).await?;
            settled.missing =
                rows.iter().map(|row| row.position).filter(|id| !present.contains(id)).collect();
            rows.retain(|row| present.contains(&row.position));
        }
        // An operator may have redriven a key since it was found diverted: what rests on its marker is left for the next look.
        let undiverted = self.undiverted(transaction.as_mut(), &flush.target, &rows).await?;
        rows.retain(|row| !undiverted.contains(&row.position));
        settled.missing.extend(undiverted);
        for group in groups(&rows) {
            let changed = self.apply(transaction.as_mut(), &flush.target, &group).await?;
            if changed != group.rows.len() as u64 {
                if looks {
                    let detail = format!("{} rows were locked but {changed} changed", group.rows.len());
                    return Err(StoreError::schema("settle", self.templates.names.subject(), detail));
                }
                transaction.rollback().await?;
                return Ok(None);
            }
        }
        self.promote(transaction.as_mut(), &flush.target, &rows).await?;
        self.calm(transaction.as_mut(), flush, &current).await?;
        transaction.commit().await?;
        Ok(Some(settled))
    }

    /// The lanes whose tokens are current; they stay so until this transaction ends.
    async fn fence(
        &self,
        transaction: &mut dyn SqlTransaction,
        flush: &Flush,
    ) -> Result<HashSet<Lane>, StoreError> {
        let Some(first) = flush.tokens.first() else { return Ok(HashSet::new()) };
        // Two that move rows of one lane aside must see each other's: they go one after the other.
        let shares = flush.calm.is_empty() && flush.settlements.iter().all(is_plain);
        let lock = match (self.templates.dialect, shares) {
            (Dialect::Sqlite, _) => "",
            (Dialect::Postgres, true) => "FOR SHARE",
            (Dialect::Postgres, false) => "FOR NO KEY UPDATE",
            (Dialect::Mysql, true) => "LOCK IN SHARE MODE",
            (Dialect::Mysql, false) => "FOR UPDATE",
        };
        let statement = self.templates.fill(
            include_str!("fence.sql"),
            &[
                ("target", Arg::from(flush.target.as_str())),
                ("worker", self.templates.worker(first.worker)),
                ("lanes", lanes_of(flush.tokens.iter().map(|token| token.lane))),
                ("lock", Arg::Sql(lock)),
            ],
        )?;
        let mut current = HashSet::new();
        for row in transaction.query(&statement).await? {
            let mut row = super::RowReader::new(row);
            let (lane, epoch) = (row.lane()?, row.int("epoch")?);
            if flush.tokens.iter().any(|token| token.lane == lane && token.epoch == epoch) {
                current.insert(lane);
            }
        }
        Ok(current)
    }

    async fn present(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        rows: &[&Settlement],
    ) -> Result<HashSet<i64>, StoreError> {
        let mut present = HashSet::new();
        for (is_hot, template) in
            [(true, include_str!("present_events.sql")), (false, include_str!("present_parked.sql"))]
        {
            let here: Vec<&Settlement> =
                rows.iter().filter(|row| row.place.is_hot() == is_hot).copied().collect();
            for chunk in here.chunks(KEYS_PER_STATEMENT) {
                let statement = self.templates.fill(template, &which(target, chunk))?;
                for row in transaction.query(&statement).await? {
                    present.insert(super::RowReader::new(row).int("id")?);
                }
            }
        }
        Ok(present)
    }

    async fn apply(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        group: &Group<'_>,
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        for chunk in group.rows.chunks(KEYS_PER_STATEMENT) {
            let part = Group { is_hot: group.is_hot, change: group.change, rows: chunk.to_vec() };
            changed += self.apply_chunk(transaction, target, &part).await?;
        }
        Ok(changed)
    }

    async fn apply_chunk(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        group: &Group<'_>,
    ) -> Result<u64, StoreError> {
        let mut args = which(target, &group.rows);
        match group.change {
            Change::Publish => {
                if self.keeps_published {
                    let template = if group.is_hot {
                        include_str!("publish_event.sql")
                    } else {
                        include_str!("publish_parked.sql")
                    };
                    transaction.execute(&self.templates.fill(template, &args)?).await?;
                }
            }
            Change::Park { reason, due, attempts, failure } => {
                args.extend(park_args(*reason, *due, *attempts, failure.as_ref()));
                if !group.is_hot {
                    return transaction
                        .execute(&self.templates.fill(include_str!("park_again.sql"), &args)?)
                        .await;
                }
                transaction.execute(&self.templates.fill(include_str!("park_event.sql"), &args)?).await?;
            }
            Change::Bury { attempts, failure, diverts } => {
                args.extend(attempt_args(*attempts, Some(failure)));
                let template = if group.is_hot {
                    include_str!("bury_event.sql")
                } else {
                    include_str!("bury_parked.sql")
                };
                transaction.execute(&self.templates.fill(template, &args)?).await?;
                let deleted = self.delete(transaction, target, group).await?;
                if *diverts {
                    self.mark_diverted(transaction, target, group).await?;
                }
                return Ok(deleted);
            }
        }
        self.delete(transaction, target, group).await
    }

    async fn delete(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        group: &Group<'_>,
    ) -> Result<u64, StoreError> {
        let template =
            if group.is_hot { include_str!("delete_events.sql") } else { include_str!("delete_parked.sql") };
        transaction.execute(&self.templates.fill(template, &which(target, &group.rows))?).await
    }

    async fn mark_diverted(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        group: &Group<'_>,
    ) -> Result<(), StoreError> {
        for row in &group.rows {
            let statement = self.templates.fill(
                include_str!("mark_diverted.sql"),
                &[
                    ("target", Arg::from(target)),
                    ("id", Arg::from(row.position)),
                    ("empty", Arg::from(Vec::new())),
                    ("due", Arg::Now(0)),
                ],
            )?;
            transaction.execute(&statement).await?;
        }
        Ok(())
    }

    /// What only waited for its turn is due where its turn has come.
    async fn promote(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        rows: &[&Settlement],
    ) -> Result<(), StoreError> {
        let touched = rows.iter().filter(|row| !is_plain(row));
        let mut keys = distinct(touched.filter_map(|row| Some((row.lane, row.key.clone()?))));
        keys.sort_unstable();
        for (lane, key) in keys {
            self.promote_key(transaction, target, lane, &key).await?;
        }
        Ok(())
    }

    pub(crate) async fn promote_key(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        lane: Lane,
        key: &str,
    ) -> Result<(), StoreError> {
        let statement = self.templates.fill(
            include_str!("promote.sql"),
            &[("target", Arg::from(target)), ("lane", Arg::from(lane)), ("key", Arg::from(key))],
        )?;
        transaction.execute(&statement).await?;
        Ok(())
    }

    async fn calm(
        &self,
        transaction: &mut dyn SqlTransaction,
        flush: &Flush,
        current: &HashSet<Lane>,
    ) -> Result<(), StoreError> {
        let calm: Vec<Lane> = flush.calm.iter().filter(|lane| current.contains(lane)).copied().collect();
        let (Some(first), false) = (flush.tokens.first(), calm.is_empty()) else { return Ok(()) };
        let statement = self.templates.fill(
            include_str!("calm.sql"),
            &[
                ("target", Arg::from(flush.target.as_str())),
                ("worker", self.templates.worker(first.worker)),
                ("lanes", list(calm)),
            ],
        )?;
        transaction.execute(&statement).await?;
        Ok(())
    }
}

/// An event that was published from the event table: by far the most.
pub(crate) fn is_plain(row: &Settlement) -> bool {
    row.place.is_hot() && row.change == Change::Publish
}

/// Rows by what becomes of them, each group by rising position: whoever meets the same rows meets them in the same order.
fn groups<'a>(rows: &[&'a Settlement]) -> Vec<Group<'a>> {
    let mut sorted: Vec<&Settlement> = rows.to_vec();
    sorted.sort_unstable_by_key(|row| row.position);
    let mut groups: BTreeMap<(bool, String), Group<'a>> = BTreeMap::new();
    for row in sorted {
        let is_hot = row.place.is_hot();
        let kind = format!("{:?}", row.change);
        let group = groups.entry((is_hot, kind)).or_insert_with(|| Group {
            is_hot,
            change: &row.change,
            rows: Vec::new(),
        });
        group.rows.push(row);
    }
    groups.into_values().collect()
}

fn which(target: &str, rows: &[&Settlement]) -> Vec<(&'static str, Arg)> {
    vec![
        ("target", Arg::from(target)),
        ("lanes", lanes_of(rows.iter().map(|row| row.lane))),
        ("ids", list(rows.iter().map(|row| row.position))),
    ]
}

fn park_args(
    reason: Reason,
    due: Due,
    attempts: Attempts,
    failure: Option<&Failure>,
) -> Vec<(&'static str, Arg)> {
    let due = match due {
        Due::In(wait) => Arg::Now(super::store::micros(wait)),
        Due::At(moment) => Arg::Moment(moment),
        Due::Never => Arg::Null,
    };
    let mut args = vec![("reason", Arg::from(reason.word())), ("due", due)];
    args.extend(attempt_args(attempts, failure));
    args
}

fn attempt_args(attempts: Attempts, failure: Option<&Failure>) -> Vec<(&'static str, Arg)> {
    vec![
        ("failures", Arg::from(attempts.failures)),
        ("crashes", Arg::from(attempts.crashes)),
        ("cause", Arg::from(failure.map(|failure| failure.cause.word()))),
        ("error", Arg::from(failure.map(|failure| failure.error.as_str()))),
    ]
}
