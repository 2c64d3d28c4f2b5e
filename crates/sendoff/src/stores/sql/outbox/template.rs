//! Filling the statement files of outbox and inbox: tables, the database's time, bound values.

use super::Names;
use crate::claim::{EpochUnit, Timestamp};
use crate::error::StoreError;
use crate::event::EventId;
use crate::outbox::WorkerId;
use crate::stores::sql::bind::{Bind, moment};
use crate::stores::sql::layout::ColumnKind;
use crate::stores::sql::{Dialect, Statement};

/// What a hole `{:name}` is filled with.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    /// The word NULL.
    Null,
    /// A bound value.
    Bound(Bind),
    /// Bound values, with commas between.
    List(Vec<Bind>),
    /// Rows of arguments: `(a, b), (c, d)`.
    Rows(Vec<Vec<Arg>>),
    /// The database's time, so many microseconds on.
    Now(i64),
    /// A moment.
    Moment(Timestamp),
    /// A part of the statement itself, written by us.
    Sql(&'static str),
    /// Statements of one kind, joined by UNION ALL.
    Union(&'static str, Vec<Vec<(&'static str, Arg)>>),
}

impl From<i64> for Arg {
    fn from(number: i64) -> Self {
        Self::Bound(Bind::Int(number))
    }
}

impl From<u16> for Arg {
    fn from(number: u16) -> Self {
        Self::Bound(Bind::Int(number.into()))
    }
}

impl From<u32> for Arg {
    fn from(number: u32) -> Self {
        Self::Bound(Bind::Int(number.into()))
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Bound(Bind::Text(text.to_owned()))
    }
}

impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bound(Bind::Bytes(bytes))
    }
}

impl<T: Into<Arg>> From<Option<T>> for Arg {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Arguments by their names.
pub(crate) type Args<'a> = &'a [(&'static str, Arg)];

/// Numbers as a list.
pub(crate) fn list<N: Into<i64>>(numbers: impl IntoIterator<Item = N>) -> Arg {
    Arg::List(numbers.into_iter().map(|number| Bind::Int(number.into())).collect())
}

/// Fills statements for one outbox.
#[derive(Debug, Clone)]
pub struct Templates {
    pub(crate) dialect: Dialect,
    pub(crate) names: Names,
}

impl Templates {
    /// A worker's id as this dialect's tables hold it.
    pub(crate) fn worker(&self, id: WorkerId) -> Arg {
        Arg::Bound(self.uuid(id.0))
    }

    /// An event's id as this dialect's tables hold it.
    pub(crate) fn event_id(&self, id: EventId) -> Arg {
        Arg::Bound(self.uuid(id.0))
    }

    /// An id as this dialect's tables hold it.
    pub(crate) fn uuid(&self, id: uuid::Uuid) -> Bind {
        match self.dialect {
            Dialect::Postgres => Bind::Uuid(id),
            Dialect::Mysql => Bind::Bytes(id.as_bytes().to_vec()),
            Dialect::Sqlite => Bind::Text(id.hyphenated().to_string()),
        }
    }

    /// How this dialect's tables hold moments.
    fn moment_kind(&self) -> ColumnKind {
        match self.dialect {
            Dialect::Postgres => ColumnKind::Moment,
            Dialect::Mysql => ColumnKind::PlainMoment,
            Dialect::Sqlite => ColumnKind::Epoch(EpochUnit::Micros),
        }
    }

    /// Fills one statement.
    pub(crate) fn fill(&self, template: &'static str, args: Args<'_>) -> Result<Statement, StoreError> {
        let mut statement = Statement { sql: String::new(), binds: Vec::new() };
        self.append(&mut statement, template, args)?;
        Ok(statement)
    }

    /// Fills several of one kind and joins them, each as it is, for one trip.
    pub(crate) fn union(
        &self,
        template: &'static str,
        parts: impl IntoIterator<Item = Vec<(&'static str, Arg)>>,
    ) -> Result<Statement, StoreError> {
        let mut statement = Statement { sql: String::new(), binds: Vec::new() };
        for (index, args) in parts.into_iter().enumerate() {
            self.append_part(&mut statement, template, &args, index)?;
        }
        Ok(statement)
    }

    /// The same, of all together no more than so many rows: those of the first parts.
    pub(crate) fn union_up_to(
        &self,
        template: &'static str,
        parts: impl IntoIterator<Item = Vec<(&'static str, Arg)>>,
        limit: u32,
    ) -> Result<Statement, StoreError> {
        let parts: Vec<_> = parts.into_iter().collect();
        // One alone has its own limit, and PostgreSQL takes no second one.
        let is_union = parts.len() > 1;
        let mut statement = self.union(template, parts)?;
        if is_union {
            self.append(&mut statement, "\nLIMIT {:limit}", &[("limit", Arg::from(limit))])?;
        }
        Ok(statement)
    }

    fn append_part(
        &self,
        to: &mut Statement,
        template: &'static str,
        args: Args<'_>,
        index: usize,
    ) -> Result<(), StoreError> {
        // SQLite takes no parentheses around the parts of a union, and no LIMIT in them without.
        let (open, close) =
            if self.dialect == Dialect::Sqlite { ("SELECT * FROM (\n", "\n)") } else { ("(\n", "\n)") };
        if index > 0 {
            to.sql.push_str("\nUNION ALL\n");
        }
        to.sql.push_str(open);
        self.append(to, template, args)?;
        to.sql.push_str(close);
        Ok(())
    }

    fn append(&self, to: &mut Statement, template: &'static str, args: Args<'_>) -> Result<(), StoreError> {
        for line in template.lines().filter(|line| !line.trim_start().starts_with("--")) {
            let mut rest = line;
            while let Some((before, after)) = rest.split_once('{') {
                let Some((hole, tail)) = after.split_once('}') else { break };
                to.sql.push_str(before);
                match hole.strip_prefix(':') {
                    Some(name) => {
                        let arg = args.iter().find(|(known, _)| *known == name).map(|(_, arg)| arg);
                        let Some(arg) = arg else { unreachable!("no argument for {{:{name}}}") };
                        self.argument(to, arg)?;
                        if self.dialect == Dialect::Sqlite && before.ends_with("LIMIT ") {
                            // It plans anew whenever a bound limit is bound again, but not for one it would have to compute.
                            to.sql.push_str(" + 0");
                        }
                    }
                    None => to.sql.push_str(&self.word(hole)?),
                }
                rest = tail;
            }
            to.sql.push_str(rest);
            to.sql.push('\n');
        }
        to.sql.truncate(to.sql.trim_end().len());
        Ok(())
    }

    /// The text of a schema file, for people and for the server. Its comments stay.
    pub(crate) fn script(&self, template: &str, collation: &str) -> Result<String, StoreError> {
        let mut script = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((hole, tail)) = after.split_once('}') else { break };
            script.push_str(before);
            let is_index = hole.contains("_by_");
            match hole {
                "schema" => script.push_str(&self.names.quoted_schema(self.dialect)),
                "collation" => script.push_str(collation),
                index if is_index => script.push_str(&self.names.index(self.dialect, index)?),
                table => script.push_str(&self.names.quoted(self.dialect, table)?),
            }
            rest = tail;
        }
        script.push_str(rest);
        Ok(script)
    }

    fn word(&self, hole: &str) -> Result<String, StoreError> {
        let mysql = self.dialect == Dialect::Mysql;
        Ok(match hole {
            "now" => self.dialect.now(&self.moment_kind(), None),
            "key" => if mysql { "`key`" } else { "\"key\"" }.to_owned(),
            "force_primary" => if mysql { "FORCE INDEX (PRIMARY)" } else { "" }.to_owned(),
            force if force.starts_with("force_by_") => match force.strip_prefix("force_") {
                Some(index) if mysql => format!("FORCE INDEX ({index})"),
                _ => String::new(),
            },
            "insert_if_new" => match self.dialect {
                Dialect::Postgres => "INSERT INTO",
                Dialect::Sqlite => "INSERT OR IGNORE INTO",
                Dialect::Mysql => "INSERT IGNORE INTO",
            }
            .to_owned(),
            "or_leave" => {
                if self.dialect == Dialect::Postgres { "ON CONFLICT DO NOTHING" } else { "" }.to_owned()
            }
            // A task whose unique key a live one has is not inserted. IGNORE would hide every other error too.
            "or_same_key" => {
                if mysql { "ON DUPLICATE KEY UPDATE attempt = attempt" } else { "ON CONFLICT DO NOTHING" }
                    .to_owned()
            }
            // The unique key of the task `t`, if it is live.
            "live_key" => {
                let partial = "t.status IN ('not_started', 'ready', 'running') AND t.unique_key";
                if mysql { "t.live_key" } else { partial }.to_owned()
            }
            // When the time of the task `t` will have run out, if it starts now.
            "run_end" => self.dialect.now(&self.moment_kind(), Some("t.run_time")),
            // Where the scope of the worker `w` is written down.
            "scope_name" => match self.dialect {
                Dialect::Mysql => "CONCAT('scope:', LOWER(HEX(w.worker)))",
                Dialect::Postgres => "'scope:' || replace(w.worker::text, '-', '')",
                Dialect::Sqlite => "'scope:' || replace(w.worker, '-', '')",
            }
            .to_owned(),
            // By the primary key and nothing else: a scan would lock, or wait for, rows of others.
            "delete_from_event" | "delete_from_parked" | "delete_from_dead" | "delete_from_meta" => {
                let table = hole.trim_start_matches("delete_from_");
                let quoted = self.names.quoted(self.dialect, table)?;
                let alias = &table[..1];
                if mysql {
                    format!("DELETE {alias} FROM {quoted} AS {alias} FORCE INDEX (PRIMARY)")
                } else {
                    format!("DELETE FROM {quoted} AS {alias}")
                }
            }
            table => self.names.quoted(self.dialect, table)?,
        })
    }

    fn argument(&self, to: &mut Statement, arg: &Arg) -> Result<(), StoreError> {
        match arg {
            Arg::Null => to.sql.push_str("NULL"),
            Arg::Bound(bind) => self.bind(to, bind),
            Arg::List(binds) => {
                for (index, bind) in binds.iter().enumerate() {
                    comma(to, index);
                    self.bind(to, bind);
                }
            }
            Arg::Rows(rows) => {
                for (index, row) in rows.iter().enumerate() {
                    comma(to, index);
                    to.sql.push('(');
                    for (column, arg) in row.iter().enumerate() {
                        comma(to, column);
                        self.argument(to, arg)?;
                    }
                    to.sql.push(')');
                }
            }
            Arg::Now(0) => to.sql.push_str(&self.dialect.now(&self.moment_kind(), None)),
            Arg::Now(offset) => {
                to.binds.push(Bind::Int(*offset));
                let placeholder = self.dialect.placeholder(to.binds.len());
                to.sql.push_str(&self.dialect.now(&self.moment_kind(), Some(&placeholder)));
            }
            Arg::Moment(at) => {
                let bind = match self.dialect {
                    Dialect::Sqlite => Bind::Int(at.as_micros()),
                    dialect => moment(dialect, &self.moment_kind(), *at)
                        .map_err(|detail| StoreError::rejected("outbox", "a moment", detail))?,
                };
                self.bind(to, &bind);
            }
            Arg::Sql(text) => to.sql.push_str(text),
            Arg::Union(template, parts) => {
                for (index, args) in parts.iter().enumerate() {
                    self.append_part(to, template, args, index)?;
                }
            }
        }
        Ok(())
    }

    fn bind(&self, to: &mut Statement, bind: &Bind) {
        to.binds.push(bind.clone());
        to.sql.push_str(&self.dialect.placeholder(to.binds.len()));
    }
}

fn comma(to: &mut Statement, index: usize) {
    if index > 0 {
        to.sql.push_str(", ");
    }
}
