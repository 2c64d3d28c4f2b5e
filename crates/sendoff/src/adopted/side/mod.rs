//! Claims beside a host's table: for one that has no columns for them, or may not be written.
//!
//! What is new in the host's table is *taken in*: its id goes into a narrow table of sendoff's own, by an anti-join, so that a row that commits late is found
//! whenever it commits. Claims, retries and attempts are then rows of that table, by the claim primitive.

mod beside;
mod bundles;
mod operator;
mod statements;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub use self::beside::{AtEnd, Beside};
pub(super) use self::beside::{known, misfits, script};
use self::bundles::NewColumns;
pub(super) use self::bundles::in_flight;
use self::statements::{Statements, bind};
use super::backing::Backing;
use super::leases::{self, Answer, Change, Grant};
use super::mapping::Mapping;
use super::reading::Row;
use super::table::RowTable;
use crate::claim::{ClaimSpec, Claimable as _, Key, Record, Value, col};
use crate::error::StoreError;
use crate::outbox::Failure;
use crate::stores::sql::{Bind, Dialect, SqlDatabase, Statement, retry};

const OP: &str = "adopt table";

/// So many rows are taken in at a time, at least.
const TAKE_IN: u32 = 2_000;
/// So many are swept at a time.
const SWEEP: u32 = 1_000;
/// Looking for what is new, or for what is no longer needed, takes no more than this part of the time.
const REST: u32 = 10;
/// What is no longer needed is looked for so often at most.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// A host's table with its claims beside it.
#[derive(Debug)]
pub(super) struct Side<D: SqlDatabase> {
    database: D,
    host: D::Lanes,
    host_mapping: Mapping,
    claims: D::Lanes,
    /// The same, with what an operator wants to see.
    seen: D::Lanes,
    mapping: Mapping,
    at_end: AtEnd,
    statements: Statements,
    has_bundles: bool,
    /// What new rows are read by, where they are claimed in bundles. None: they are taken in first.
    new_columns: Option<Arc<NewColumns>>,
    pace: Mutex<Pace>,
}

/// When to look again.
#[derive(Debug, Default)]
struct Pace {
    take_in_at: Option<Instant>,
    waiting: Option<Waiting>,
    sweep_at: Option<Instant>,
}

/// How many rows waited when they were counted.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    rows: u64,
    /// It was counted no further.
    most: u32,
    /// It is taken to be so until then.
    until: Instant,
}

impl<D> Side<D>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    pub(super) async fn open(database: &D, host: Mapping, beside: &Beside) -> Result<Self, StoreError> {
        let host_table = database.open_lanes(host.description()?).await?;
        let at_end = beside.at_end.clone();
        super::check::refuse(&host, &super::check::of_host(&host_table, &host, &at_end))?;
        let mapping = beside.mapping(&host)?;
        let Some(claims) = beside::known(database, &host, beside).await? else {
            let missing = beside::missing(database, &host, beside).await?;
            return Err(StoreError::schema(OP, host.table.to_string(), missing.to_string()));
        };
        super::check::fits(&claims, &mapping).await?;
        let seen = database.open_lanes(mapping.operators_description()?).await?;
        let dialect = database.dialect();
        let has_bundles = bundles::are_used(dialect, beside);
        let statements = Statements::new(dialect, beside, &host)?;
        let pace = Mutex::default();
        let new_columns = match has_bundles {
            true => NewColumns::of(dialect, &host_table, &host).await?.map(Arc::new),
            false => None,
        };
        Ok(Self {
            database: database.clone(),
            host: host_table,
            host_mapping: host,
            claims,
            seen,
            mapping,
            at_end,
            statements,
            has_bundles,
            new_columns,
            pace,
        })
    }

    pub(super) fn host_mapping(&self) -> &Mapping {
        &self.host_mapping
    }

    /// The same, with only those rows of the host that have this value.
    pub(super) fn only(&self, column: &str, value: Value) -> Result<Self, StoreError> {
        let host_mapping = self.host_mapping.clone().only(column, value);
        let beside = Beside { table: self.mapping.table.clone(), at_end: self.at_end.clone() };
        Ok(Self {
            statements: Statements::new(self.statements.dialect, &beside, &host_mapping)?,
            host_mapping,
            database: self.database.clone(),
            host: self.host.clone(),
            claims: self.claims.clone(),
            seen: self.seen.clone(),
            mapping: self.mapping.clone(),
            at_end: self.at_end.clone(),
            has_bundles: self.has_bundles,
            new_columns: self.new_columns.clone(),
            pace: Mutex::default(),
        })
    }

    /// The events of rows that were read beside the table, and what of them is gone from it.
    pub(super) async fn events(
        &self,
        records: &[Record],
        target: &str,
    ) -> Result<(Vec<Row>, Vec<Key>), StoreError> {
        let mut claimed = Vec::with_capacity(records.len());
        for record in records {
            let attempts = match record.get("attempts") {
                Some(Value::Int(number)) => u32::try_from(*number).unwrap_or(1),
                _ => 1,
            };
            claimed.push((self.mapping.key_of(record)?, attempts));
        }
        let ids: Vec<Key> = claimed.iter().map(|(key, _)| key.clone()).collect();
        let mut found = HashMap::with_capacity(ids.len());
        for record in self.host_rows(&ids, true).await? {
            found.insert(self.host_mapping.key_of(&record)?.to_bytes(), record);
        }
        let (mut rows, mut gone) = (Vec::with_capacity(claimed.len()), Vec::new());
        for (key, attempts) in claimed {
            match found.get(&key.to_bytes()) {
                Some(record) => rows.push(self.host_mapping.read(record, Some(attempts), target)?),
                None => gone.push(key),
            }
        }
        Ok((rows, gone))
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, op: &'static str, statements: &[Statement]) -> Result<u64, StoreError> {
        let subject = self.mapping.table.to_string();
        retry(op, &subject, self.database.time_to_try(), || async {
            let mut transaction = self.database.begin(op).await?;
            let mut changed = 0;
            for statement in statements {
                changed += transaction.execute(statement).await?;
            }
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }

    /// The host's rows of these ids; `wanted`: only those that are still to be delivered. A statement that takes in may have begun before a row was taken in by
    /// another, delivered and forgotten, and have taken it in again: what the host's row says is looked at after it is claimed.
    pub(super) async fn host_rows(&self, ids: &[Key], wanted: bool) -> Result<Vec<Record>, StoreError> {
        let mut rows = Vec::with_capacity(ids.len());
        for ids in ids.chunks(500) {
            let named = col(&self.host_mapping.id).is_in(ids.iter().filter_map(|id| id.0.first().cloned()));
            let filter = self.host_mapping.filter.iter().filter(|_| wanted);
            let named = filter.fold(named, |all, (column, value)| all.and(col(column).eq(value.clone())));
            let spec = ClaimSpec::on_table(self.host_mapping.table.clone()).eligible(named);
            // Only ever read by.
            let spec = spec.set(&self.host_mapping.payload, Value::Null).limit(ids.len() as u32).build()?;
            rows.extend(self.host.read(&spec).await?);
        }
        Ok(rows)
    }

    /// What is written into a delivered or dead row of the host, and its values. None: nothing.
    fn written(&self, change: &Change) -> Option<(String, Vec<(&'static str, Bind)>)> {
        let quote = |name: &str| match crate::claim::Ident::new(name) {
            Ok(name) => self.statements.dialect.quote(&name),
            Err(_) => unreachable!("names were checked when the table was opened"),
        };
        let AtEnd::Write { status, published, dead, published_at, failures } = &self.at_end else {
            return None;
        };
        let is_published = *change == Change::Publish;
        let mut set = format!("{} = {{:status}}", quote(status));
        let value = if is_published { published } else { dead };
        if let Some(column) = published_at.as_ref().filter(|_| is_published) {
            // The column's own type decides, and the host's own clock is the database's.
            let now = match self.statements.dialect {
                Dialect::Postgres => "now()",
                Dialect::Sqlite => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
                Dialect::Mysql => "UTC_TIMESTAMP(6)",
            };
            set.push_str(&format!(", {} = {now}", quote(column)));
        }
        if let Some(column) = failures {
            // What was delivered at last has not failed then.
            let less = i32::from(is_published);
            let attempts = match self.statements.dialect {
                Dialect::Postgres => "held.attempts",
                _ => "(SELECT s.attempts FROM {side} AS s WHERE s.id = {host}.{id})",
            };
            set.push_str(&format!(", {} = {attempts} - {less}", quote(column)));
        }
        Some((set, vec![("status", bind(value))]))
    }

    /// Ends claims that are still held, with what that means for the host's rows; the rows of which it was so.
    async fn finish(&self, grant: &Grant, rows: &[Key], change: &Change) -> Result<Vec<Key>, StoreError> {
        let text = |id: uuid::Uuid| match self.statements.dialect {
            Dialect::Postgres => Bind::Uuid(id),
            _ => Bind::Text(id.hyphenated().to_string()),
        };
        let mut args = vec![("token", text(grant.token)), ("owner", Bind::Text(grant.owner.clone()))];
        let mut words: Vec<(&str, String)> = Vec::new();
        if let Some((set, values)) = self.written(change) {
            words.push(("set", set));
            args.extend(values);
        }
        let deletes = self.at_end == AtEnd::Delete;
        let subject = self.mapping.table.to_string();
        let key = |row: Vec<Value>| row.into_iter().next().map(|id| Key(vec![id]));
        if self.statements.dialect == Dialect::Postgres {
            let write = if deletes {
                include_str!("delete_postgres.sql")
            } else {
                include_str!("write_postgres.sql")
            };
            words.push(("write", write.trim_end().to_owned()));
            if self.finish_bundle(grant, rows, &words, &args).await? {
                return Ok(rows.to_vec());
            }
            words.push(("leave", bundles::LEAVE.trim_end().to_owned()));
            let statement = self.statements.fill(include_str!("finish_postgres.sql"), &words, &args, rows);
            let ended = retry("settle", &subject, self.database.time_to_try(), || {
                self.database.query("settle", &statement)
            })
            .await?;
            return Ok(ended.into_iter().filter_map(key).collect());
        }
        let hold = self.statements.fill(include_str!("finish_1_hold.sql"), &words, &args, rows);
        retry("settle", &subject, self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("settle").await?;
            let held: Vec<Key> = transaction.query(&hold).await?.into_iter().filter_map(key).collect();
            if held.is_empty() {
                transaction.rollback().await?;
                return Ok(held);
            }
            let write = if deletes {
                include_str!("finish_2_delete.sql")
            } else {
                include_str!("finish_2_write.sql")
            };
            transaction.execute(&self.statements.fill(write, &words, &args, &held)).await?;
            transaction
                .execute(&self.statements.fill(include_str!("finish_3_end.sql"), &[], &[], &held))
                .await?;
            transaction.commit().await?;
            Ok(held)
        })
        .await
    }

    /// Whether a change ends a row's claim for good, and the host's row with it.
    fn ends(&self, change: &Change) -> bool {
        match (&self.at_end, change) {
            (AtEnd::Leave, _) | (_, Change::Retry { .. } | Change::Release) => false,
            (AtEnd::Delete, change) => *change == Change::Publish,
            (AtEnd::Write { .. }, _) => true,
        }
    }

    async fn finish_rows(
        &self,
        grant: &Grant,
        rows: &[Key],
        change: &Change,
    ) -> Result<Vec<Answer>, StoreError> {
        if let Change::Bury { failure: Failure { cause, error } } = change {
            // The host's table has no column for it.
            tracing::warn!(cause = cause.word(), error, rows = rows.len(), "rows are given up");
        }
        let mut answers = Vec::with_capacity(rows.len());
        for rows in rows.chunks(500) {
            let ended = self.finish(grant, rows, change).await?;
            let ended: HashSet<Vec<u8>> = ended.iter().map(Key::to_bytes).collect();
            let rest: Vec<Key> =
                rows.iter().filter(|row| !ended.contains(&row.to_bytes())).cloned().collect();
            let mut others = HashMap::new();
            if !rest.is_empty() {
                // Whatever is still beside the table is another's by now.
                let named = col("id").is_in(rest.iter().filter_map(|id| id.0.first().cloned()));
                let spec = ClaimSpec::on_table(self.mapping.table.clone()).eligible(named);
                let spec = spec.set("state", 0).order_by("id").limit(rest.len() as u32).build()?;
                for row in self.host_rows(&rest, false).await? {
                    others.insert(self.host_mapping.key_of(&row)?.to_bytes(), Answer::Terminal);
                }
                for row in self.claims.find(&spec).await? {
                    others.insert(row.to_bytes(), Answer::Stale);
                }
            }
            answers.extend(rows.iter().map(|row| match row.to_bytes() {
                row if ended.contains(&row) => Answer::Applied,
                row => others.get(&row).copied().unwrap_or(Answer::Missing),
            }));
        }
        Ok(answers)
    }
}

impl<D> Backing for Side<D>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    type Claims = D::Lanes;

    fn claims(&self) -> &D::Lanes {
        &self.claims
    }

    fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    fn claims_new(&self) -> bool {
        self.new_columns.is_some()
    }

    async fn claim_new(
        &self,
        grant: &Grant,
        lease: Duration,
        room: u32,
        target: &str,
    ) -> Result<Vec<Row>, StoreError> {
        match &self.new_columns {
            Some(columns) => self.claim_bundle(columns, grant, lease, room, target).await,
            None => Ok(Vec::new()),
        }
    }

    async fn return_lost(&self) -> Result<(), StoreError> {
        if self.has_bundles { self.split_ended().await } else { Ok(()) }
    }

    async fn renew(
        &self,
        grant: &Grant,
        lease: Duration,
        rows: &[Key],
    ) -> Result<HashSet<Vec<u8>>, StoreError> {
        let mut held = match self.has_bundles {
            true => self.renew_bundle(grant, lease).await?,
            false => HashSet::new(),
        };
        let rest: Vec<Key> = rows.iter().filter(|row| !held.contains(&row.to_bytes())).cloned().collect();
        held.extend(leases::renew(&self.claims, &self.mapping, grant, lease, &rest).await?);
        Ok(held)
    }

    async fn take_in(&self, room: u32) -> Result<u64, StoreError> {
        let began = Instant::now();
        if self.pace().take_in_at.is_some_and(|at| at > began) {
            return Ok(0);
        }
        let template = match self.statements.dialect {
            Dialect::Postgres => include_str!("take_in_postgres.sql"),
            Dialect::Sqlite => include_str!("take_in_sqlite.sql"),
            Dialect::Mysql => include_str!("take_in_mysql.sql"),
        };
        let lock = format!("sendoff takes in {}", self.mapping.table);
        let args = [("limit", Bind::Int(room.max(TAKE_IN).into())), ("lock", Bind::Text(lock))];
        let taken = self.run("take in", &[self.statements.fill(template, &[], &args, &[])]).await?;
        // What is new is found by looking at all there is: where nothing was, it is not looked at again at once.
        self.pace().take_in_at = (taken == 0).then(|| Instant::now() + began.elapsed() * REST);
        Ok(taken)
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        if self.pace().sweep_at.is_some_and(|at| at > began) {
            return Ok(());
        }
        let args = [("limit", Bind::Int(SWEEP.into()))];
        let find = self.statements.fill(include_str!("sweep_find.sql"), &[], &args, &[]);
        let gone: Vec<Key> = self
            .database
            .query("sweep", &find)
            .await?
            .into_iter()
            .filter_map(|row| row.into_iter().next().map(|id| Key(vec![id])))
            .collect();
        for ids in gone.chunks(500) {
            // An id that was there, and is not any more, does not come back.
            self.run("sweep", &[self.statements.fill(include_str!("finish_3_end.sql"), &[], &[], ids)])
                .await?;
        }
        let again = if gone.len() == SWEEP as usize { Duration::ZERO } else { SWEEP_EVERY };
        self.pace().sweep_at = Some(Instant::now() + again.max(began.elapsed() * REST));
        Ok(())
    }

    async fn read(&self, records: Vec<Record>, target: &str) -> Result<Vec<Row>, StoreError> {
        let (rows, gone) = self.events(&records, target).await?;
        for ids in gone.chunks(500) {
            // The host took them back.
            self.run("forget", &[self.statements.fill(include_str!("finish_3_end.sql"), &[], &[], ids)])
                .await?;
        }
        Ok(rows)
    }

    async fn settle(&self, grant: &Grant, rows: &[Key], change: &Change) -> Result<Vec<Answer>, StoreError> {
        if self.ends(change) {
            return self.finish_rows(grant, rows, change).await;
        }
        if self.has_bundles {
            self.split(grant, rows).await?;
        }
        leases::settle(&self.claims, &self.mapping, grant, rows, change).await
    }
}
