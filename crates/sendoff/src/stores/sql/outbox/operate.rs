//! What every operation on events shares: lanes are locked first, then keys are put in order again, and what was done is written down.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::store::lanes_of;
use super::{Arg, RowReader, SqlDatabase, SqlOutbox, SqlTransaction, list};
use crate::error::StoreError;
use crate::outbox::{Lane, WorkerId};
use crate::stores::sql::{Bind, Dialect, KEYS_PER_STATEMENT, Statement};

/// The longest name of an operator that is kept, in characters.
pub(super) const OPERATOR_CHARS_MAX: usize = 255;

/// The longest description of an operation that is kept, in characters.
const WHAT_CHARS_MAX: usize = 1_000;

/// Where a row stands, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) target: String,
    pub(super) lane: Lane,
    pub(super) id: i64,
    pub(super) key: Option<String>,
}

impl Spot {
    pub(super) fn read(mut row: RowReader) -> Result<Self, StoreError> {
        let target = row.text("target")?;
        Ok(Self { target, lane: row.lane()?, id: row.int("id")?, key: row.optional_text("key")? })
    }
}

/// A lane that is locked until the transaction ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locked {
    pub(super) owner: Option<WorkerId>,
    pub(super) expired: bool,
}

/// The lanes of these rows, in the order in which they are locked.
pub(super) fn lanes(spots: &[&[Spot]]) -> BTreeSet<(String, Lane)> {
    spots.iter().copied().flatten().map(|spot| (spot.target.clone(), spot.lane)).collect()
}

/// Rows lane by lane; those of other lanes are left out.
pub(super) fn by_lane(
    spots: Vec<Spot>,
    lanes: &BTreeSet<(String, Lane)>,
) -> BTreeMap<(String, Lane), Vec<Spot>> {
    let mut sorted: BTreeMap<(String, Lane), Vec<Spot>> = BTreeMap::new();
    for spot in spots {
        let lane = (spot.target.clone(), spot.lane);
        if lanes.contains(&lane) {
            sorted.entry(lane).or_default().push(spot);
        }
    }
    sorted
}

/// The keys of these rows, each with its highest position.
pub(super) fn keys(spots: &[Spot]) -> BTreeMap<&str, i64> {
    let mut keys = BTreeMap::new();
    for spot in spots {
        if let Some(key) = &spot.key {
            let highest = keys.entry(key.as_str()).or_insert(spot.id);
            *highest = spot.id.max(*highest);
        }
    }
    keys
}

/// Text that fits; NULs, which PostgreSQL cannot hold, are dropped.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}

impl<D: SqlDatabase> SqlOutbox<D> {
    /// Locks lanes of one target. Who settles has them locked as well, so nothing of them is moved meanwhile, and nobody can lease
    /// them.
    pub(super) async fn lock_lanes(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        lanes: impl IntoIterator<Item = Lane>,
    ) -> Result<HashMap<Lane, Locked>, StoreError> {
        let lock = match self.templates.dialect {
            // Its transaction is the only one that writes.
            Dialect::Sqlite => "",
            Dialect::Postgres => "FOR NO KEY UPDATE",
            Dialect::Mysql => "FOR UPDATE",
        };
        let statement = self.templates.fill(
            include_str!("lock_lanes.sql"),
            &[("target", Arg::from(target)), ("lanes", lanes_of(lanes)), ("lock", Arg::Sql(lock))],
        )?;
        let mut locked = HashMap::new();
        for row in transaction.query(&statement).await? {
            let mut row = RowReader::new(row);
            let lane = row.lane()?;
            let owner = row.optional_uuid("owner")?.map(WorkerId);
            locked.insert(lane, Locked { owner, expired: row.int("expired")? > 0 });
        }
        Ok(locked)
    }

    /// Locks lanes of any targets, in their order.
    pub(super) async fn lock_all(
        &self,
        transaction: &mut dyn SqlTransaction,
        lanes: &BTreeSet<(String, Lane)>,
    ) -> Result<(), StoreError> {
        let targets: BTreeSet<&String> = lanes.iter().map(|(target, _)| target).collect();
        for target in targets {
            let of_target = lanes.iter().filter(|(other, _)| other == target).map(|(_, lane)| *lane);
            self.lock_lanes(transaction, target, of_target).await?;
        }
        Ok(())
    }

    /// The markers of these keys of one lane, by their positions.
    pub(super) async fn markers(
        &self,
        transaction: &mut dyn SqlTransaction,
        target: &str,
        lane: Lane,
        keys: &[&str],
    ) -> Result<BTreeMap<i64, String>, StoreError> {
        let mut markers = BTreeMap::new();
        for chunk in keys.chunks(KEYS_PER_STATEMENT) {
            let args = [of_target(target), of_lane(lane), ("keys", texts(chunk))];
            let statement = self.templates.fill(include_str!("markers.sql"), &args)?;
            for row in transaction.query(&statement).await? {
                let mut row = RowReader::new(row);
                markers.insert(row.int("id")?, row.text("key")?);
            }
        }
        Ok(markers)
    }

    /// Runs a statement for these rows of one lane; how many it changed.
    pub(super) async fn change_rows(
        &self,
        transaction: &mut dyn SqlTransaction,
        template: &'static str,
        (target, lane): (&str, Lane),
        ids: &[i64],
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        for chunk in ids.chunks(KEYS_PER_STATEMENT) {
            let args = [
                of_target(target),
                of_lane(lane),
                ("lanes", list([lane])),
                ("ids", list(chunk.iter().copied())),
            ];
            changed += transaction.execute(&self.templates.fill(template, &args)?).await?;
        }
        Ok(changed)
    }

    /// The first dead one of a key above a position diverts it, if there is one.
    ///
    /// The marker is due, as every new one: what was parked above it while earlier ones were on their way is to follow when it comes up.
    pub(super) async fn mark_next(
        &self,
        transaction: &mut dyn SqlTransaction,
        (target, lane): (&str, Lane),
        key: &str,
        above: i64,
    ) -> Result<(), StoreError> {
        let args = [
            of_target(target),
            of_lane(lane),
            ("key", Arg::from(key)),
            ("above", Arg::from(above)),
            ("empty", Arg::from(Vec::new())),
        ];
        transaction.execute(&self.templates.fill(include_str!("mark_next.sql"), &args)?).await?;
        Ok(())
    }

    /// What only waited for its turn is due where its turn has come.
    pub(super) async fn promote_keys(
        &self,
        transaction: &mut dyn SqlTransaction,
        (target, lane): (&str, Lane),
        keys: &[&str],
    ) -> Result<(), StoreError> {
        for chunk in keys.chunks(KEYS_PER_STATEMENT) {
            let args = [of_target(target), of_lane(lane), ("keys", texts(chunk))];
            let statement = self.templates.fill(include_str!("heads_of_keys.sql"), &args)?;
            let mut heads = Vec::with_capacity(chunk.len());
            for row in transaction.query(&statement).await? {
                heads.push(RowReader::new(row).int("id")?);
            }
            heads.sort_unstable();
            let template = include_str!("promote_heads.sql");
            self.change_rows(transaction, template, (target, lane), &heads).await?;
        }
        Ok(())
    }

    /// Writes down what an operator did.
    pub(super) fn operation(&self, by: &str, what: &str, events: u64) -> Result<Statement, StoreError> {
        self.templates.fill(
            include_str!("record.sql"),
            &[
                ("by", Arg::from(cut(by, OPERATOR_CHARS_MAX).as_str())),
                ("what", Arg::from(cut(what, WHAT_CHARS_MAX).as_str())),
                ("events", Arg::from(i64::try_from(events).unwrap_or(i64::MAX))),
            ],
        )
    }
}

fn of_target(target: &str) -> (&'static str, Arg) {
    ("target", Arg::from(target))
}

fn of_lane(lane: Lane) -> (&'static str, Arg) {
    ("lane", Arg::from(lane))
}

fn texts(texts: &[&str]) -> Arg {
    Arg::List(texts.iter().map(|text| Bind::Text((*text).to_owned())).collect())
}
