//! Bundles: the first claims of many rows, kept as one row beside the host's table.
//!
//! A row beside the table for each event costs about as much as all that a host's own statements do to an event. Nearly every event is delivered at its first try, and needs no row of
//! its own: a claim of new rows is one row here, with their ids. What is delivered leaves its bundle. What fails, is given back, or is lost with its worker is *split off*: it gets a
//! row of its own under the same proof, and from there on everything is as it is for rows that were taken in.
//!
//! Claims of new rows are made in turn, under an advisory lock, so that each sees what the one before it has; no row of the host is locked by them. All of a turn is sent at once: no
//! worker holds the lock while it thinks, or is frozen. PostgreSQL alone has arrays, and so bundles.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use super::super::leases::Grant;
use super::super::reading::Row;
use super::super::table::{Fit, RowTable};
use super::statements::{Statements, written};
use super::{AtEnd, Beside, Mapping, Side, bind};
use crate::claim::{ClaimSpec, Ident, Key, Nulls, Predicate, Record, Table, TableName, Value, col};
use crate::error::{StoreError, StoreErrorKind};
use crate::outbox::EventState;
use crate::stores::sql::{AtOnce, Bind, Dialect, SqlDatabase, Statement, retry};

/// The statement that makes their table.
pub(super) const CREATE: &str = include_str!("create.sql");
/// How rows leave their bundle: the beginning of a statement that goes on with what becomes of them.
pub(super) const LEAVE: &str = include_str!("leave.sql");

/// So many rows are in a bundle at most: it is written anew whenever some of them leave it.
const ROWS_MAX: u32 = 1_000;

/// Whether claims of new rows may be bundles: a delivered row leaves nothing beside the table.
pub(super) fn are_used(dialect: Dialect, beside: &Beside) -> bool {
    dialect == Dialect::Postgres && beside.at_end != AtEnd::Leave
}

/// Their table, for the one that claims are kept in.
pub(super) fn table_of(side: &TableName) -> Result<TableName, StoreError> {
    let name = format!("{}_bundle", side.name());
    let table = match side.schema() {
        Some(schema) => TableName::in_schema(schema.as_str(), &name),
        None => TableName::bare(&name),
    };
    table.map_err(|error| StoreError::rejected("map", side.to_string(), error.to_string()))
}

/// Whether their table is there, and what is needed of it.
pub(super) async fn are_there<D: SqlDatabase>(database: &D, beside: &Beside) -> Result<bool, StoreError> {
    let table = Table::named(table_of(&beside.table)?, ["token"])?.returning(["owner", "lease_until"])?;
    match database.open_lanes(table).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == StoreErrorKind::Schema => Ok(false),
        Err(error) => Err(error),
    }
}

/// The host's columns as a bundle's rows are read by them.
#[derive(Debug)]
pub(super) struct NewColumns {
    names: Arc<[Ident]>,
    sql: String,
}

impl NewColumns {
    /// None: no index gives the new rows in their order, and they are taken in first.
    pub(super) async fn of<T: RowTable>(
        dialect: Dialect,
        table: &T,
        mapping: &Mapping,
    ) -> Result<Option<Self>, StoreError> {
        if mapping.is_ordered_by_key || mapping.order.is_empty() {
            return Ok(None);
        }
        let wanted = mapping.filter.iter().map(|(column, value)| col(column).eq(value.clone())).collect();
        let mut spec = ClaimSpec::on_table(mapping.table.clone()).eligible(Predicate::And(wanted));
        for (column, direction) in &mapping.order {
            spec = spec.order_by_with(column, *direction, Nulls::Native);
        }
        let spec = spec.set(&mapping.payload, Value::Null).limit(1).build()?;
        if !table.is_servable(&spec).await? {
            return Ok(None);
        }
        let names = mapping.returned()?;
        let is_json = |name: &Ident| {
            let fits = |value: Value| table.fit(name.as_str(), &value) == Fit::Fits;
            fits(Value::Json(serde_json::Value::Null)) && !fits(Value::Text(String::new()))
        };
        let columns = names.iter().map(|name| {
            let quoted = dialect.quote(name);
            let cast = if is_json(name) { "::text" } else { "" };
            format!("h.{quoted}{cast} AS {quoted}")
        });
        let sql = columns.collect::<Vec<_>>().join(", ");
        Ok(Some(Self { names: names.into(), sql }))
    }
}

fn micros(lease: Duration) -> Bind {
    Bind::Int(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX))
}

fn proof(grant: &Grant) -> [(&'static str, Bind); 2] {
    [("owner", Bind::Text(grant.owner.clone())), ("token", Bind::Uuid(grant.token))]
}

/// Whether these are all the rows that were claimed in one bundle, each once.
fn is_bundle(grant: &Grant, rows: &[Key]) -> bool {
    let Some(bundle) = grant.bundle.get().filter(|bundle| bundle.len() == rows.len()) else { return false };
    let rows: HashSet<Vec<u8>> = rows.iter().map(Key::to_bytes).collect();
    rows == *bundle
}

/// Of a statement: the same for the same text, whoever prepares it.
fn prepared_name(sql: &str) -> String {
    let mut hasher = DefaultHasher::new();
    sql.hash(&mut hasher);
    format!("sendoff_{:016x}", hasher.finish())
}

/// The ids that a statement returned first.
fn ids(rows: Vec<Vec<Value>>) -> impl Iterator<Item = Key> {
    rows.into_iter().filter_map(|row| Some(Key(vec![row.into_iter().next()?])))
}

impl<D> Side<D>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    async fn ask(&self, op: &'static str, statement: &Statement) -> Result<Vec<Vec<Value>>, StoreError> {
        let subject = self.mapping.table.to_string();
        retry(op, &subject, self.database.time_to_try(), || self.database.query(op, statement)).await
    }

    /// Claims what is new, in one bundle, and reads it.
    pub(super) async fn claim_bundle(
        &self,
        columns: &NewColumns,
        grant: &Grant,
        lease: Duration,
        room: u32,
        target: &str,
    ) -> Result<Vec<Row>, StoreError> {
        let turn = self.turn(columns, grant, lease, room.min(ROWS_MAX))?;
        let subject = self.mapping.table.to_string();
        let patience = self.database.time_to_try();
        let claimed =
            retry("claim", &subject, patience, || self.database.query_at_once("claim", &turn)).await;
        // What the host took back meanwhile is left out; its claim ends with its bundle.
        let read = |values| {
            self.host_mapping.read(&Record::new(Arc::clone(&columns.names), values), Some(1), target)
        };
        let rows = claimed.and_then(|rows| rows.into_iter().map(read).collect::<Result<Vec<Row>, _>>());
        match &rows {
            Ok(rows) => {
                grant.bundle.get_or_init(|| rows.iter().map(|row| row.key.to_bytes()).collect());
            }
            Err(_) => self.give_back(grant).await,
        }
        rows
    }

    /// All of a turn as one text. Its two statements are prepared where connections keep that: planning them took longer than running them.
    fn turn(
        &self,
        columns: &NewColumns,
        grant: &Grant,
        lease: Duration,
        room: u32,
    ) -> Result<AtOnce, StoreError> {
        let [(_, owner), (_, token)] = proof(grant);
        let values = [token, owner, micros(lease), Bind::Int(room.into())];
        let values = values.iter().map(written).collect::<Result<Vec<_>, _>>()?;
        let mut prepare = Vec::new();
        let mut statement = |template: &'static str| -> Result<String, StoreError> {
            let keeps = self.database.keeps_prepared();
            let place = |index: usize| if keeps { format!("${}", index + 1) } else { values[index].clone() };
            let words = [
                ("token", place(0)),
                ("owner", place(1)),
                ("lease", place(2)),
                ("limit", place(3)),
                ("limit_at_most", room.next_power_of_two().to_string()),
                ("columns", columns.sql.clone()),
            ];
            let sql = self.statements.written_out(template, &words, &[])?;
            if !keeps {
                return Ok(sql);
            }
            let name = prepared_name(&sql);
            prepare.push(format!("PREPARE {name} (uuid, text, bigint, bigint) AS {sql}"));
            Ok(format!("EXECUTE {name} ({})", values.join(", ")))
        };
        // Prepared in this order: where a claim is, its reading is too, which nobody may find out only after the claim.
        let read = statement(include_str!("read.sql"))?;
        let words = [("claim", statement(include_str!("claim.sql"))?), ("read", read)];
        let lock = format!("sendoff claims new rows by {}", self.mapping.table);
        let text =
            self.statements.written_out(include_str!("turn.sql"), &words, &[("lock", Bind::Text(lock))])?;
        Ok(AtOnce { prepare, text })
    }

    /// Ends a claim whose rows nobody got to see, so that they need not wait for its lease to end.
    async fn give_back(&self, grant: &Grant) {
        let give_back = self.statements.fill(include_str!("give_back.sql"), &[], &proof(grant), &[]);
        if let Err(error) = self.database.query("claim", &give_back).await {
            tracing::debug!(%error, "a claim that failed could not be given back; its lease ends");
        }
    }

    /// Writes what became of all the rows of a bundle, if these are all of them and none has left it. Whether that was so.
    pub(super) async fn finish_bundle(
        &self,
        grant: &Grant,
        rows: &[Key],
        words: &[(&str, String)],
        args: &[(&'static str, Bind)],
    ) -> Result<bool, StoreError> {
        if !is_bundle(grant, rows) {
            return Ok(false);
        }
        let mut args = args.to_vec();
        args.push(("count", Bind::Int(i64::try_from(rows.len()).unwrap_or(i64::MAX))));
        let finish = self.statements.fill(include_str!("finish.sql"), words, &args, &[]);
        let ended = self.ask("settle", &finish).await?;
        Ok(matches!(ended.first().and_then(|row| row.first()), Some(Value::Int(1..))))
    }

    /// Gives rows of a bundle claims of their own.
    pub(super) async fn split(&self, grant: &Grant, rows: &[Key]) -> Result<(), StoreError> {
        for rows in rows.chunks(500) {
            let words = [("leave", LEAVE.trim_end().to_owned())];
            let split = self.statements.fill(include_str!("split.sql"), &words, &proof(grant), rows);
            self.ask("settle", &split).await?;
        }
        Ok(())
    }

    /// Gives the rows of bundles whose lease has ended claims of their own, which have ended too.
    pub(super) async fn split_ended(&self) -> Result<(), StoreError> {
        let split = self.statements.fill(include_str!("split_ended.sql"), &[], &[], &[]);
        self.ask("claim", &split).await.map(drop)
    }

    /// Prolongs a bundle's lease; which rows are in it.
    pub(super) async fn renew_bundle(
        &self,
        grant: &Grant,
        lease: Duration,
    ) -> Result<HashSet<Vec<u8>>, StoreError> {
        let [owner, token] = proof(grant);
        let args = [owner, token, ("lease", micros(lease))];
        let renew = self.statements.fill(include_str!("renew.sql"), &[], &args, &[]);
        Ok(ids(self.ask("renew", &renew).await?).map(|id| id.to_bytes()).collect())
    }

    /// Rows of bundles whose lease lasts, or of those whose lease has ended, all or one, as the table of claims would have them.
    pub(in crate::adopted) async fn bundled(
        &self,
        lasts: bool,
        one: Option<&Value>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        if !self.has_bundles {
            return Ok(Vec::new());
        }
        let mut args = vec![("lasts", Bind::Bool(lasts)), ("limit", Bind::Int(limit.into()))];
        let named = match one {
            Some(id) => {
                args.push(("one", bind(id)));
                "one.id = {:one}"
            }
            None => "1 = 1",
        };
        let words = [("named", named.to_owned())];
        let find = self.statements.fill(include_str!("find.sql"), &words, &args, &[]);
        let names = ["id", "owner", "lease_until", "attempts"].map(Ident::new);
        let names: Arc<[Ident]> = names.into_iter().collect::<Result<_, _>>().map_err(|error| {
            StoreError::rejected("list", self.mapping.table.to_string(), error.to_string())
        })?;
        let found = self.ask("list", &find).await?.into_iter();
        Ok(found.map(|values| Record::new(Arc::clone(&names), values)).collect())
    }

    /// How many rows are in bundles whose lease lasts, or has ended.
    pub(super) async fn count_bundled(&self, lasts: bool, most: u32) -> Result<u64, StoreError> {
        if !self.has_bundles {
            return Ok(0);
        }
        let args = [("lasts", Bind::Bool(lasts)), ("limit", Bind::Int(most.into()))];
        let count = self.statements.fill(include_str!("count.sql"), &[], &args, &[]);
        Ok(match self.ask("count", &count).await?.first().and_then(|row| row.first()) {
            Some(Value::Int(number)) => u64::try_from(*number).unwrap_or_default(),
            _ => 0,
        })
    }
}

/// Whether the leases of a bundle's rows last if they stand so; none if they do not.
pub(super) fn lasts(state: EventState) -> Option<bool> {
    match state {
        EventState::Processing => Some(true),
        EventState::Abandoned => Some(false),
        _ => None,
    }
}

/// The rows that are claimed in bundles now, for those who only look.
pub(in crate::adopted) async fn in_flight<D: SqlDatabase>(
    database: &D,
    host: &Mapping,
    beside: &Beside,
) -> Result<HashSet<Vec<u8>>, StoreError> {
    let dialect = database.dialect();
    if !are_used(dialect, beside) || !are_there(database, beside).await? {
        return Ok(HashSet::new());
    }
    let find = Statements::new(dialect, beside, host)?.fill(include_str!("in_flight.sql"), &[], &[], &[]);
    Ok(ids(database.query("look", &find).await?).map(|id| id.to_bytes()).collect())
}
