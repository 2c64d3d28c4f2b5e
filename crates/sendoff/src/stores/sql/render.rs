//! From a claim to SQL: the holes of a statement file are filled from a [`ClaimSpec`].

use super::bind::{Bind, Term, list, term};
use super::dialect::Dialect;
use super::layout::{ColumnInfo, ColumnKind, Layout};
use crate::claim::{Change, ClaimSpec, Direction, Ident, Key, Nulls, Op, Order, Predicate, Value};
use crate::error::StoreError;

/// SQL with the values it binds, in the order of their placeholders.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub(crate) sql: String,
    pub(crate) binds: Vec<Bind>,
}

/// Fills one statement. Everything is written from left to right, so that bound values
/// stand in the order of their placeholders, and what was written is never looked at again: a
/// table called `{set}` stays a table called `{set}`.
pub(crate) struct Renderer<'a> {
    dialect: Dialect,
    layout: &'a Layout,
    spec: &'a ClaimSpec,
    keys: &'a [Key],
    scan_index: Option<&'a str>,
    trusts_locks: bool,
    /// What a predicate calls the row it is about.
    alias: &'static str,
    sql: String,
    binds: Vec<Bind>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(dialect: Dialect, layout: &'a Layout, spec: &'a ClaimSpec) -> Self {
        Self {
            dialect,
            layout,
            spec,
            keys: &[],
            scan_index: None,
            trusts_locks: true,
            alias: "t.",
            sql: String::new(),
            binds: Vec::new(),
        }
    }

    /// The rows that `{key_in}` names.
    pub(crate) fn keys(mut self, keys: &'a [Key]) -> Self {
        self.keys = keys;
        self
    }

    /// The index that `{scan_index}` forces.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    pub(crate) fn scan_index(mut self, index: Option<&'a str>) -> Self {
        self.scan_index = index;
        self
    }

    /// Checks again what a lock should have kept: for a cluster, where it does not always.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    pub(crate) fn trusts_locks(mut self, trusts_locks: bool) -> Self {
        self.trusts_locks = trusts_locks;
        self
    }

    /// Fills the holes of `template`. Lines that are comments stay with the reader.
    pub(crate) fn fill(mut self, template: &'static str) -> Result<Statement, StoreError> {
        for line in template.lines().filter(|line| !line.trim_start().starts_with("--")) {
            let mut rest = line;
            while let Some((before, after)) = rest.split_once('{') {
                let Some((hole, tail)) = after.split_once('}') else { break };
                self.sql.push_str(before);
                self.hole(hole)?;
                rest = tail;
            }
            self.sql.push_str(rest);
            self.sql.push('\n');
        }
        Ok(Statement { sql: self.sql.trim_end().to_owned(), binds: self.binds })
    }

    fn hole(&mut self, hole: &str) -> Result<(), StoreError> {
        match hole {
            "table" => self.sql.push_str(&self.dialect.quote_table(self.layout.name())),
            "key" => self.key_columns("t.", "k"),
            "found_key" => self.found_key(),
            "key_picked" => self.key_picked()?,
            "claimed_join" => self.claimed_join(),
            "key_in" => self.key_in()?,
            "key_count" => self.sql.push_str(&self.keys.len().to_string()),
            "key_join" => self.key_join(),
            "key_rows" => self.key_rows()?,
            "returned_key" => {
                let prefix = if self.dialect == Dialect::Sqlite { "" } else { "t." };
                self.key_columns(prefix, "sendoff_k");
            }
            "eligible" => self.predicate(self.spec.eligible())?,
            "still_eligible" => {
                if !self.trusts_locks {
                    self.sql.push_str(" AND (");
                    self.predicate(self.spec.eligible())?;
                    self.sql.push(')');
                }
            }
            "is_ours" => self.is_ours()?,
            "set" => self.assignments()?,
            "order_by" => self.order_by()?,
            // Written out, being a number and not a value: a planner that does not know it plans for a tenth of the
            // table, finds its general plan dear, and plans anew for every claim.
            "limit" => self.sql.push_str(&self.spec.limit().to_string()),
            "columns" => self.columns("t."),
            "bare_columns" => self.columns(""),
            "scan_index" => {
                if let Some(index) = self.scan_index {
                    self.force_index(index);
                }
            }
            "key_index" => self.force_index(self.layout.key_index()),
            unknown => unreachable!("statement file has an unknown hole {{{unknown}}}"),
        }
        Ok(())
    }

    fn bind(&mut self, bind: Bind) {
        self.binds.push(bind);
        self.sql.push_str(&self.dialect.placeholder(self.binds.len()));
    }

    fn name(&mut self, prefix: &str, name: &Ident) {
        self.sql.push_str(prefix);
        self.sql.push_str(&self.dialect.quote(name));
    }

    fn refuse(&self, detail: String) -> StoreError {
        StoreError::rejected("claim", self.layout.name().to_string(), detail)
    }

    fn value(&mut self, column: &ColumnInfo, value: &Value) -> Result<(), StoreError> {
        let epoch = self.layout.table().epochs.get(&column.name).copied().unwrap_or_default();
        match term(self.dialect, column, epoch, value).map_err(|detail| self.refuse(detail))? {
            Term::Null => self.sql.push_str("NULL"),
            Term::Bound(bind) => self.bind(bind),
            Term::Cast(bind, to) => {
                self.sql.push_str("CAST(");
                self.bind(bind);
                self.sql.push_str(&format!(" AS {to})"));
            }
            Term::Now(kind, offset) => {
                let offset = offset.map(|bind| {
                    self.binds.push(bind);
                    self.dialect.placeholder(self.binds.len())
                });
                let now = self.dialect.now(&kind, offset.as_deref());
                self.sql.push_str(&format!("({now})"));
            }
        }
        Ok(())
    }

    fn predicate(&mut self, predicate: &Predicate) -> Result<(), StoreError> {
        match predicate {
            Predicate::Compare { column, op, value } => {
                let column = self.layout.column(column)?;
                self.name(self.alias, &column.name);
                self.sql.push_str(match op {
                    Op::Eq => " = ",
                    Op::Ne => " <> ",
                    Op::Lt => " < ",
                    Op::Le => " <= ",
                    Op::Gt => " > ",
                    Op::Ge => " >= ",
                });
                self.value(column, value)
            }
            Predicate::In { column, values } => {
                let column = self.layout.column(column)?;
                if values.is_empty() {
                    self.sql.push_str(self.dialect.never());
                    return Ok(());
                }
                self.name(self.alias, &column.name);
                let epoch = self.layout.table().epochs.get(&column.name).copied().unwrap_or_default();
                if let Some(list) = list(self.dialect, column, epoch, values) {
                    // One statement however many there are: it stays prepared.
                    self.sql.push_str(" = ANY (");
                    self.bind(list);
                    self.sql.push(')');
                    return Ok(());
                }
                self.sql.push_str(" IN (");
                for (index, value) in values.iter().enumerate() {
                    self.comma(index);
                    self.value(column, value)?;
                }
                self.sql.push(')');
                Ok(())
            }
            Predicate::IsNull { column } => {
                let column = self.layout.column(column)?;
                self.name(self.alias, &column.name);
                self.sql.push_str(" IS NULL");
                Ok(())
            }
            Predicate::First { group, order, among } => self.first(group, order, among),
            Predicate::And(parts) => self.joined(parts, " AND ", self.dialect.always()),
            Predicate::Or(parts) => self.joined(parts, " OR ", self.dialect.never()),
            Predicate::Not(part) => {
                self.sql.push_str("NOT (");
                self.predicate(part)?;
                self.sql.push(')');
                Ok(())
            }
        }
    }

    /// No earlier one of its group is there. The rows that are looked at are called `u`.
    fn first(&mut self, group: &str, order: &[String], among: &Predicate) -> Result<(), StoreError> {
        let layout = self.layout;
        let same = |renderer: &mut Self, column: &str, how: &str| -> Result<(), StoreError> {
            let column = layout.column(column)?;
            renderer.name("u.", &column.name);
            renderer.sql.push_str(how);
            renderer.name("t.", &column.name);
            Ok(())
        };
        let table = self.dialect.quote_table(layout.name());
        self.sql.push_str(&format!("NOT EXISTS (SELECT 1 FROM {table} AS u WHERE "));
        same(self, group, " = ")?;
        self.sql.push_str(" AND (");
        for (index, column) in order.iter().enumerate() {
            self.sql.push_str(if index == 0 { "(" } else { " OR (" });
            for earlier in &order[..index] {
                same(self, earlier, " = ")?;
                self.sql.push_str(" AND ");
            }
            same(self, column, " < ")?;
            self.sql.push(')');
        }
        self.sql.push_str(") AND (");
        self.alias = "u.";
        let written = self.predicate(among);
        self.alias = "t.";
        self.sql.push_str("))");
        written
    }

    fn joined(&mut self, parts: &[Predicate], word: &str, empty: &str) -> Result<(), StoreError> {
        if parts.is_empty() {
            self.sql.push_str(empty);
            return Ok(());
        }
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.sql.push_str(word);
            }
            self.sql.push('(');
            self.predicate(part)?;
            self.sql.push(')');
        }
        Ok(())
    }

    fn assignments(&mut self) -> Result<(), StoreError> {
        for (index, assignment) in self.spec.assignments().iter().enumerate() {
            self.comma(index);
            let column = self.layout.column(assignment.column.as_str())?;
            self.name("", &column.name);
            self.sql.push_str(" = ");
            match &assignment.change {
                Change::To(value) => self.value(column, value)?,
                Change::Add(number) => {
                    self.sql.push_str("COALESCE(");
                    self.name("t.", &column.name);
                    self.sql.push_str(", 0) + ");
                    self.value(column, &Value::Int(*number))?;
                }
            }
        }
        Ok(())
    }

    /// Whether a row has the values that this claim gave it, as far as they can be compared.
    fn is_ours(&mut self) -> Result<(), StoreError> {
        self.sql.push_str("(1 = 1");
        let trusts_locks = self.trusts_locks;
        for assignment in self.spec.assignments().iter().filter(|_| !trusts_locks) {
            let Change::To(value) = &assignment.change else { continue };
            if !matches!(value, Value::Json(_) | Value::Now { .. }) {
                let column = self.layout.column(assignment.column.as_str())?;
                self.name(" AND t.", &column.name);
                self.sql.push_str(" <=> ");
                self.value(column, value)?;
            }
        }
        self.sql.push(')');
        Ok(())
    }

    fn order_by(&mut self) -> Result<(), StoreError> {
        for (index, Order { column, direction, nulls }) in self.spec.order().iter().enumerate() {
            self.sql.push_str(if index == 0 { "ORDER BY " } else { ", " });
            let column = self.layout.column(column.as_str())?;
            if self.dialect == Dialect::Mysql && *nulls != Nulls::Native {
                // No NULLS FIRST there: sort by whether it is null (0 or 1) first.
                self.name("t.", &column.name);
                self.sql.push_str(if *nulls == Nulls::First { " IS NULL DESC, " } else { " IS NULL ASC, " });
            }
            self.name("t.", &column.name);
            self.sql.push_str(match direction {
                Direction::Ascending => " ASC",
                Direction::Descending => " DESC",
            });
            if self.dialect != Dialect::Mysql {
                self.sql.push_str(match nulls {
                    Nulls::Native => "",
                    Nulls::First => " NULLS FIRST",
                    Nulls::Last => " NULLS LAST",
                });
            }
        }
        Ok(())
    }

    /// The key columns under the names k0, k1…, which no column of the table can collide with here.
    fn key_columns(&mut self, prefix: &str, alias: &str) {
        let layout = self.layout;
        for (index, column) in layout.key().enumerate() {
            self.comma(index);
            self.name(prefix, &column.name);
            self.sql.push_str(&format!(" AS {alias}{index}"));
        }
    }

    /// The key as it is read by a program: types that the driver does not know as text.
    fn found_key(&mut self) {
        let layout = self.layout;
        for (index, column) in layout.key().enumerate() {
            self.comma(index);
            self.name("t.", &column.name);
            if self.dialect == Dialect::Postgres
                && matches!(column.kind, ColumnKind::Decimal | ColumnKind::Other(_))
            {
                self.sql.push_str("::text");
            }
            self.sql.push_str(&format!(" AS k{index}"));
        }
    }

    /// The rows of the CTE `picked`. Where all columns of the key but one are fixed by the claim, that one reaches them as an array: the
    /// planner takes it for short, and looks into the key's index whatever it believes of the table.
    fn key_picked(&mut self) -> Result<(), StoreError> {
        let layout = self.layout;
        let fixed = self.spec.eligible().fixed();
        let value_of = |column: &ColumnInfo| {
            fixed.iter().find(|(name, _)| *name == column.name.as_str()).and_then(|(_, value)| *value)
        };
        let open: Vec<usize> = layout
            .key()
            .enumerate()
            .filter(|(_, column)| value_of(column).is_none())
            .map(|(n, _)| n)
            .collect();
        if open.len() <= 1 {
            // One must come from what was picked, or a row would be claimed that others hold.
            let from_picked = open.first().copied().unwrap_or_default();
            for (index, column) in layout.key().enumerate() {
                self.name(if index == 0 { "WHERE t." } else { " AND t." }, &column.name);
                match value_of(column).filter(|_| index != from_picked) {
                    Some(value) => {
                        self.sql.push_str(" = ");
                        self.value(column, value)?;
                    }
                    None => self.sql.push_str(&format!(" = ANY (ARRAY(SELECT k{index} FROM picked))")),
                }
            }
            return Ok(());
        }
        let from = if self.spec.removes() { "USING picked AS p WHERE " } else { "FROM picked AS p WHERE " };
        for (index, column) in layout.key().enumerate() {
            self.sql.push_str(if index == 0 { from } else { " AND " });
            self.name("t.", &column.name);
            self.sql.push_str(&format!(" = p.k{index}"));
        }
        Ok(())
    }

    /// A claimed row and where it was picked.
    fn claimed_join(&mut self) {
        for index in 0..self.layout.key().len() {
            if index > 0 {
                self.sql.push_str(" AND ");
            }
            self.sql.push_str(&format!("claimed.sendoff_k{index} = p.k{index}"));
        }
    }

    /// The keys as rows, each with all its columns.
    fn key_rows(&mut self) -> Result<(), StoreError> {
        let (layout, keys) = (self.layout, self.keys);
        for (number, key) in keys.iter().enumerate() {
            self.sql.push_str(if number == 0 { "UNION ALL SELECT " } else { " UNION ALL SELECT " });
            for (index, (column, value)) in layout.key().zip(&key.0).enumerate() {
                self.comma(index);
                self.value(column, value)?;
            }
        }
        Ok(())
    }

    /// A row `r` and its key `k`.
    fn key_join(&mut self) {
        let layout = self.layout;
        for (index, column) in layout.key().enumerate() {
            self.name(if index == 0 { "r." } else { " AND r." }, &column.name);
            self.sql.push_str(&format!(" = k.k{index}"));
        }
    }

    /// Names rows by their keys. For composite keys an OR of ANDs: not every optimizer reads
    /// `(a, b) IN (…)` as ranges of an index.
    fn key_in(&mut self) -> Result<(), StoreError> {
        let layout = self.layout;
        let columns: Vec<&ColumnInfo> = layout.key().collect();
        if let [column] = columns[..] {
            self.name("t.", &column.name);
            self.sql.push_str(" IN (");
            for (index, key) in self.keys.iter().enumerate() {
                self.comma(index);
                self.value(column, &key.0[0])?;
            }
            self.sql.push(')');
            return Ok(());
        }
        for (index, key) in self.keys.iter().enumerate() {
            self.sql.push_str(if index == 0 { "(" } else { " OR " });
            for (part, (column, value)) in columns.iter().zip(&key.0).enumerate() {
                self.sql.push_str(if part == 0 { "(" } else { " AND " });
                self.name("t.", &column.name);
                self.sql.push_str(" = ");
                self.value(column, value)?;
            }
            self.sql.push(')');
        }
        self.sql.push(')');
        Ok(())
    }

    /// What is returned, column by column: `*` would change its meaning under a statement that is kept prepared, which
    /// crashes one driver's worker and confuses another's.
    fn columns(&mut self, prefix: &str) {
        let layout = self.layout;
        for (index, column) in layout.returned().enumerate() {
            self.comma(index);
            match (layout.is_json_as_text(column), self.dialect) {
                (true, Dialect::Postgres) => {
                    self.name(prefix, column);
                    self.sql.push_str("::text");
                    self.name(" AS ", column);
                }
                (true, Dialect::Mysql) => {
                    self.sql.push_str("CAST(");
                    self.name(prefix, column);
                    self.sql.push_str(" AS CHAR)");
                    self.name(" AS ", column);
                }
                // It keeps JSON as text, or as what was written.
                _ => self.name(prefix, column),
            }
        }
    }

    fn force_index(&mut self, index: &str) {
        self.sql.push_str("FORCE INDEX (`");
        self.sql.push_str(&index.replace('`', "``"));
        self.sql.push_str("`)");
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.sql.push_str(", ");
        }
    }
}
