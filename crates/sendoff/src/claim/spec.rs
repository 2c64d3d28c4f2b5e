//! A claim in full: which rows, what becomes of them, in which order, how many.

use super::ident::{Ident, IdentError, TableName};
use super::predicate::Predicate;
use super::value::Value;
use crate::error::StoreError;

/// Deeper than any condition a person writes, and shallow enough for every database's parser.
const PREDICATE_DEPTH_MAX: usize = 64;

/// Where NULL sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nulls {
    /// As the database does, which is what its indexes serve: PostgreSQL puts NULL after
    /// everything, the others before (ascending; the other way round descending).
    #[default]
    Native,
    /// Before everything.
    First,
    /// After everything.
    Last,
}

/// Which way a column sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// One column of the order in which rows are taken and returned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Order {
    /// The column.
    pub column: Ident,
    /// Which way.
    pub direction: Direction,
    /// Where NULL goes.
    pub nulls: Nulls,
}

/// What a claim writes to one column.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Assignment {
    /// The column.
    pub column: Ident,
    /// What becomes of it.
    pub change: Change,
}

/// See [`Assignment`].
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// This value.
    To(Value),
    /// The column's own value plus this; NULL counts as 0.
    Add(i64),
}

/// What to claim. Names and values have been checked; whether the table has such columns is
/// checked by the store against the table itself.
///
/// ```
/// use std::time::Duration;
/// use sendoff::claim::{ClaimSpec, col, now, now_plus};
///
/// let spec = ClaimSpec::on("jobs")
///     .eligible(col("status").eq("ready").and(col("due").le(now())))
///     .set("status", "running")
///     .set("lease_until", now_plus(Duration::from_secs(30)))
///     .add("attempts", 1)
///     .order_by("due")
///     .limit(100)
///     .build()?;
/// # Ok::<(), sendoff::StoreError>(())
/// ```
///
/// A claim either marks its rows, as this one does, or removes them from their table:
///
/// ```
/// use std::time::Duration;
/// use sendoff::claim::{ClaimSpec, col, now_minus};
///
/// let spec = ClaimSpec::on("jobs")
///     .eligible(col("status").eq("done").and(col("ended_at").lt(now_minus(Duration::from_secs(86_400)))))
///     .remove()
///     .order_by("ended_at")
///     .limit(1_000)
///     .build()?;
/// assert!(spec.removes() && spec.assignments().is_empty());
/// # Ok::<(), sendoff::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimSpec {
    table: TableName,
    eligible: Predicate,
    /// Empty if the claim removes its rows, and only then.
    set: Vec<Assignment>,
    order: Vec<Order>,
    limit: u32,
}

impl ClaimSpec {
    /// Starts a claim on `table` or `schema.table`.
    pub fn on(table: &str) -> ClaimSpecBuilder {
        ClaimSpecBuilder::new(TableName::parse(table))
    }

    /// Starts a claim on a table whose name has been checked.
    pub fn on_table(table: TableName) -> ClaimSpecBuilder {
        ClaimSpecBuilder::new(Ok(table))
    }

    /// The table.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Which rows may be taken.
    pub fn eligible(&self) -> &Predicate {
        &self.eligible
    }

    /// What is written to them; nothing if the claim [removes](Self::removes) them.
    pub fn assignments(&self) -> &[Assignment] {
        &self.set
    }

    /// Whether they are deleted instead of marked. A store that does not know how must refuse such a claim: handed out and left
    /// where they are, its rows would be handed out again.
    pub fn removes(&self) -> bool {
        self.set.is_empty()
    }

    /// The order in which they are taken and returned.
    pub fn order(&self) -> &[Order] {
        &self.order
    }

    /// At most so many.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The same claim with another limit.
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }
}

/// Collects a [`ClaimSpec`]; [`build`](Self::build) checks it.
#[derive(Debug, Clone)]
#[must_use = "a claim does nothing until it is built and given to a store"]
pub struct ClaimSpecBuilder {
    table: Result<TableName, IdentError>,
    eligible: Option<Predicate>,
    set: Vec<(String, Change)>,
    remove: bool,
    order: Vec<(String, Direction, Nulls)>,
    limit: u32,
}

impl ClaimSpecBuilder {
    fn new(table: Result<TableName, IdentError>) -> Self {
        Self { table, eligible: None, set: Vec::new(), remove: false, order: Vec::new(), limit: 100 }
    }

    /// Which rows may be taken. It must be false for a row as this claim leaves it, or the row
    /// could be claimed again at once: see [`Claimable`](super::Claimable). Of a row that is removed nothing is left.
    pub fn eligible(mut self, predicate: Predicate) -> Self {
        self.eligible = Some(predicate);
        self
    }

    /// Sets a column to a value.
    pub fn set(mut self, column: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set.push((column.into(), Change::To(value.into())));
        self
    }

    /// Adds a number to a column: an attempt counted, an epoch raised. NULL counts as 0.
    pub fn add(mut self, column: impl Into<String>, number: i64) -> Self {
        self.set.push((column.into(), Change::Add(number)));
        self
    }

    /// Deletes the rows instead of marking them, in the same atomic act. Each is handed to one caller, as it was when it was
    /// taken, and to nobody ever after: there is no lease that brings back what a caller has lost. For what may be forgotten.
    pub fn remove(mut self) -> Self {
        self.remove = true;
        self
    }

    /// Takes and returns rows by this column, smallest first; further calls break ties.
    pub fn order_by(self, column: impl Into<String>) -> Self {
        self.order_by_with(column, Direction::Ascending, Nulls::Native)
    }

    /// Takes and returns rows by this column, largest first.
    pub fn order_by_desc(self, column: impl Into<String>) -> Self {
        self.order_by_with(column, Direction::Descending, Nulls::Native)
    }

    /// Takes and returns rows by this column. Where NULL goes other than the database's own way,
    /// an index usually cannot serve the order.
    pub fn order_by_with(mut self, column: impl Into<String>, direction: Direction, nulls: Nulls) -> Self {
        self.order.push((column.into(), direction, nulls));
        self
    }

    /// At most so many rows; 100 if not said.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Checks names and values.
    ///
    /// # Errors
    /// `Rejected`, saying which name or value and why.
    pub fn build(self) -> Result<ClaimSpec, StoreError> {
        let table = self.table.map_err(|error| refuse("?", &error.to_string()))?;
        let subject = table.to_string();
        let ident = |name: &str| Ident::new(name).map_err(|error| refuse(&subject, &error.to_string()));

        let eligible = self.eligible.ok_or_else(|| {
            refuse(
                &subject,
                "no eligibility was given; say `.eligible(…)`, or `Predicate::always()` to mean it",
            )
        })?;
        check_predicate(&subject, &eligible)?;

        match (self.remove, self.set.is_empty()) {
            (false, true) => {
                return Err(refuse(
                    &subject,
                    "nothing to set; a claim must change the row so that it is no longer eligible, or `.remove()` it",
                ));
            }
            (true, false) => {
                return Err(refuse(
                    &subject,
                    "rows are both set and removed; a claim marks its rows or removes them",
                ));
            }
            _ => {}
        }
        let mut set: Vec<Assignment> = Vec::with_capacity(self.set.len());
        for (name, change) in self.set {
            let column = ident(&name)?;
            if set.iter().any(|earlier| earlier.column == column) {
                return Err(refuse(&subject, &format!("column `{column}` is set twice")));
            }
            if let Change::To(value) = &change {
                check_number(&subject, &name, value)?;
            }
            set.push(Assignment { column, change });
        }
        let mut order = Vec::with_capacity(self.order.len());
        for (name, direction, nulls) in self.order {
            order.push(Order { column: ident(&name)?, direction, nulls });
        }
        Ok(ClaimSpec { table, eligible, set, order, limit: self.limit })
    }
}

fn refuse(subject: &str, detail: &str) -> StoreError {
    StoreError::rejected("claim spec", subject, detail.to_owned())
}

fn check_predicate(subject: &str, predicate: &Predicate) -> Result<(), StoreError> {
    if predicate.depth() > PREDICATE_DEPTH_MAX {
        return Err(refuse(
            subject,
            &format!("the condition is nested more than {PREDICATE_DEPTH_MAX} levels deep"),
        ));
    }
    predicate.walk(&mut |column, value| {
        Ident::new(column).map_err(|error| refuse(subject, &error.to_string()))?;
        match value {
            Some(Value::Null) => Err(refuse(
                subject,
                &format!("column `{column}` is compared with null, which is never true; use `is_null()`"),
            )),
            Some(Value::Json(_)) => Err(refuse(
                subject,
                &format!("column `{column}` is compared with json, which databases do not agree on"),
            )),
            Some(value) => check_number(subject, column, value),
            None => Ok(()),
        }
    })
}

fn check_number(subject: &str, column: &str, value: &Value) -> Result<(), StoreError> {
    match value {
        Value::Float(number) if !number.is_finite() => {
            Err(refuse(subject, &format!("the float for column `{column}` is not finite")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::predicate::col;
    use super::*;

    fn minimal() -> ClaimSpecBuilder {
        ClaimSpec::on("jobs").eligible(col("a").eq(1)).set("a", 2)
    }

    #[test]
    fn says_what_is_missing_or_wrong() {
        for (builder, part) in [
            (ClaimSpec::on("").eligible(col("a").eq(1)).set("a", 2), "empty"),
            (ClaimSpec::on("jobs").set("a", 2), "no eligibility"),
            (ClaimSpec::on("jobs").eligible(col("a").eq(1)), "nothing to set"),
            (minimal().remove(), "both set and removed"),
            (ClaimSpec::on("jobs").eligible(col("a").eq(1)).remove().add("b", 1), "both set and removed"),
            (ClaimSpec::on("jobs").remove(), "no eligibility"),
            (minimal().set("a", 3), "set twice"),
            (minimal().eligible(col("a").eq(None::<i64>)), "is_null"),
            (minimal().eligible(col("a").is_in([Some(1), None])), "is_null"),
            (minimal().eligible(col("a").eq(serde_json::json!({}))), "json"),
            (minimal().eligible(col("a").lt(f64::NAN)), "not finite"),
            (minimal().set("b", f64::INFINITY), "not finite"),
            (minimal().eligible(col("x\0").is_null()), "control character"),
            (minimal().order_by(""), "empty"),
        ] {
            let error = builder.build().expect_err(part).to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!minimal().build().unwrap().removes());
        let removal = ClaimSpec::on("jobs").eligible(col("a").eq(1)).remove().build().unwrap();
        assert!(removal.removes());
    }

    #[test]
    fn refuses_bottomless_conditions() {
        let deep = (0..100).fold(col("a").eq(1), |inner, _| inner.not());
        let error = minimal().eligible(deep).build().unwrap_err().to_string();
        assert!(error.contains("64 levels"), "{error}");
    }
}
