//! What a table looks like in its database, and whether a claim fits it.

use std::collections::BTreeMap;

use super::bind::term;
use super::dialect::Dialect;
use crate::adopted::Fit;
use crate::claim::{ClaimSpec, EpochUnit, Ident, Table, TableName, Value};
use crate::error::StoreError;

/// What a column can hold, as far as binding a value depends on it. Not every database has all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(all(feature = "postgres", feature = "sqlite", feature = "mysql")), allow(dead_code))]
pub(crate) enum ColumnKind {
    Bool,
    Int,
    Float,
    /// Exact numbers with a fraction.
    Decimal,
    Text,
    Bytes,
    Uuid,
    /// A moment with a zone, or in UTC by definition.
    Moment,
    /// A moment without a zone: read and written as UTC.
    PlainMoment,
    /// Whole numbers that stand for moments. Only while a moment is bound to an `Int` column.
    Epoch(EpochUnit),
    Json,
    /// A type of the database's own (an enum, a domain…): written as text and cast to this type.
    Other(String),
    /// SQLite without a declared type: anything.
    Any,
}

impl ColumnKind {
    /// What it is, in words for error texts.
    pub(crate) fn describe(&self) -> &str {
        match self {
            Self::Bool => "a bool",
            Self::Int | Self::Epoch(_) => "an integer",
            Self::Float => "a float",
            Self::Decimal => "a decimal",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Uuid => "a uuid",
            Self::Moment | Self::PlainMoment => "a timestamp",
            Self::Json => "json",
            Self::Other(name) => name,
            Self::Any => "untyped",
        }
    }
}

/// One column as the database describes it.
#[derive(Debug, Clone)]
pub(crate) struct ColumnInfo {
    pub(crate) name: Ident,
    pub(crate) kind: ColumnKind,
    pub(crate) nullable: bool,
}

/// A set of columns that is unique in the table, under the name of its index.
#[derive(Debug, Clone)]
pub(crate) struct UniqueKey {
    pub(crate) index: String,
    pub(crate) columns: Vec<String>,
}

/// A table as described by its owner, checked against the database.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    table: Table,
    columns: Vec<ColumnInfo>,
    by_name: BTreeMap<String, usize>,
    key: Vec<usize>,
    key_index: String,
    folds_case: bool,
}

impl Layout {
    /// Checks that the table has the columns its owner names, and that its key is one: a claim
    /// by a key that several rows share would take them all.
    pub(crate) fn check(
        table: Table,
        columns: Vec<ColumnInfo>,
        unique: &[UniqueKey],
        dialect: Dialect,
    ) -> Result<Self, StoreError> {
        let folds_case = dialect.folds_case();
        let subject = table.name().to_string();
        if columns.is_empty() {
            return Err(StoreError::schema(
                "open table",
                subject,
                "no such table, or no right to see it; create it, or check the schema and the name's case",
            ));
        }
        let fold = |name: &str| if folds_case { name.to_ascii_lowercase() } else { name.to_owned() };
        let by_name = columns.iter().enumerate().map(|(i, c)| (fold(c.name.as_str()), i)).collect();
        let mut layout =
            Self { table, columns, by_name, key: Vec::new(), key_index: String::new(), folds_case };

        for name in layout.table.returning.iter().flatten().chain(layout.table.epochs.keys()) {
            layout.index_of(name.as_str(), "open table")?;
        }
        for name in &layout.table.key {
            let index = layout.index_of(name.as_str(), "open table")?;
            if layout.columns[index].nullable {
                return Err(StoreError::schema(
                    "open table",
                    subject,
                    format!(
                        "key column `{name}` may be null; a key must identify every row: make it NOT NULL"
                    ),
                ));
            }
            layout.key.push(index);
        }
        let key: Vec<String> = layout.table.key.iter().map(|name| fold(name.as_str())).collect();
        let covering = unique
            .iter()
            .find(|candidate| candidate.columns.iter().all(|column| key.contains(&fold(column))));
        let Some(covering) = covering else {
            return Err(StoreError::schema(
                "open table",
                subject,
                format!(
                    "`{}` is not unique in this table; name its primary key, or run: CREATE UNIQUE INDEX {} ON {} ({})",
                    key.join("`, `"),
                    dialect.quote(&layout.unique_name()),
                    dialect.quote_table(layout.name()),
                    layout.table.key.iter().map(|name| dialect.quote(name)).collect::<Vec<_>>().join(", ")
                ),
            ));
        };
        layout.key_index.clone_from(&covering.index);
        Ok(layout)
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn name(&self) -> &TableName {
        self.table.name()
    }

    pub(crate) fn key(&self) -> impl ExactSizeIterator<Item = &ColumnInfo> {
        self.key.iter().map(|&index| &self.columns[index])
    }

    /// The columns that a claim returns: those that were asked for, or all that there were when the table was opened.
    pub(crate) fn returned(&self) -> impl Iterator<Item = &Ident> {
        let asked = self.table.returning.as_deref().unwrap_or_default();
        let all = self.columns.iter().map(|column| &column.name).filter(|_| self.table.returning.is_none());
        asked.iter().chain(all)
    }

    /// Whether a column is JSON that is returned as the database writes it.
    pub(crate) fn is_json_as_text(&self, column: &Ident) -> bool {
        let is_json = || self.column(column.as_str()).is_ok_and(|column| column.kind == ColumnKind::Json);
        self.table.json_as_text && is_json()
    }

    /// The index that makes the key unique.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    pub(crate) fn key_index(&self) -> &str {
        &self.key_index
    }

    /// The column of that name.
    pub(crate) fn column(&self, name: &str) -> Result<&ColumnInfo, StoreError> {
        self.index_of(name, "claim").map(|index| &self.columns[index])
    }

    fn index_of(&self, name: &str, op: &'static str) -> Result<usize, StoreError> {
        let folded = if self.folds_case { name.to_ascii_lowercase() } else { name.to_owned() };
        self.by_name
            .get(&folded)
            .copied()
            .ok_or_else(|| StoreError::rejected(op, self.name().to_string(), self.missing(name)))
    }

    /// What a unique index on the key would be called.
    fn unique_name(&self) -> Ident {
        let name = format!("{}_unique", self.name().name().as_str());
        Ident::new(&name).unwrap_or_else(|_| self.name().name().clone())
    }

    /// There is no such column.
    fn missing(&self, name: &str) -> String {
        match nearest(name, self.columns.iter().map(|column| column.name.as_str())) {
            Some(near) => format!("no column `{name}`; did you mean `{near}`?"),
            None => format!("no column `{name}`"),
        }
    }

    /// Refuses what could not be a claim on this table.
    pub(crate) fn accepts(&self, spec: &ClaimSpec) -> Result<(), StoreError> {
        let refuse = |detail: String| Err(StoreError::rejected("claim", self.name().to_string(), detail));
        if spec.table() != self.name() {
            return refuse(format!("the spec is for table `{}`", spec.table()));
        }
        for assignment in spec.assignments() {
            let index = self.index_of(assignment.column.as_str(), "claim")?;
            if self.key.contains(&index) {
                return refuse(format!(
                    "column `{}` is part of the key and cannot be set",
                    assignment.column
                ));
            }
        }
        Ok(())
    }
}

/// Whether a column can hold, and be compared with, a value. NULL fits wherever there is a column.
pub(crate) fn fit(dialect: Dialect, layout: &Layout, column: &str, value: &Value) -> Fit {
    let info = match layout.column(column) {
        Ok(info) => info,
        Err(_) => return Fit::Missing(layout.missing(column)),
    };
    let epoch = layout.table.epochs.get(&info.name).copied().unwrap_or_default();
    match term(dialect, info, epoch, value) {
        Ok(_) => Fit::Fits,
        Err(detail) => Fit::Wrong(detail),
    }
}

/// The candidate that `name` was probably meant to be.
fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let limit = name.chars().count().max(3) / 3;
    candidates
        .map(|candidate| (edits(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance: how many letters to add, drop or change.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::col;

    fn info(name: &str, kind: ColumnKind, nullable: bool) -> ColumnInfo {
        ColumnInfo { name: Ident::new(name).unwrap(), kind, nullable }
    }

    fn open(key: &[&str], unique: &[&str]) -> Result<Layout, StoreError> {
        let columns = vec![
            info("id", ColumnKind::Int, false),
            info("part", ColumnKind::Int, false),
            info("status", ColumnKind::Text, true),
        ];
        let unique =
            [UniqueKey { index: "pk".into(), columns: unique.iter().map(|&name| name.to_owned()).collect() }];
        Layout::check(Table::new("jobs", key.iter().copied())?, columns, &unique, Dialect::Sqlite)
    }

    #[test]
    fn a_key_must_identify_rows() {
        assert!(open(&["ID"], &["id"]).is_ok());
        assert!(open(&["id", "part"], &["id"]).is_ok(), "more than unique is unique");
        let error = open(&["id"], &["id", "part"]).unwrap_err().to_string();
        assert!(error.contains("not unique"), "{error}");
        let error = open(&["status"], &["status"]).unwrap_err().to_string();
        assert!(error.contains("may be null"), "{error}");
    }

    #[test]
    fn unknown_columns_are_named_with_what_was_probably_meant() {
        let layout = open(&["id"], &["id"]).unwrap();
        let error = layout.column("staus").unwrap_err().to_string();
        assert!(error.contains("did you mean `status`"), "{error}");
        let error = layout.column("zebra_count").unwrap_err().to_string();
        assert!(error.ends_with("no column `zebra_count`"), "{error}");
    }

    #[test]
    fn a_claim_may_not_change_the_key_nor_another_table() {
        let layout = open(&["id"], &["id"]).unwrap();
        let spec = ClaimSpec::on("jobs").eligible(col("id").eq(1)).set("Id", 2).build().unwrap();
        assert!(layout.accepts(&spec).unwrap_err().to_string().contains("part of the key"));
        let spec = ClaimSpec::on("other").eligible(col("id").eq(1)).set("status", "x").build().unwrap();
        assert!(layout.accepts(&spec).unwrap_err().to_string().contains("for table `other`"));
    }
}
