//! Which rows may be claimed.

use super::value::Value;

/// How a column is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less than.
    Lt,
    /// Less than or equal.
    Le,
    /// Greater than.
    Gt,
    /// Greater than or equal.
    Ge,
}

/// A condition on one row, with SQL's three-valued logic: a comparison with a column that is
/// NULL is neither true nor false, and only rows for which the whole is *true* are eligible.
///
/// Built from [`col`]; names and values are checked when the [`ClaimSpec`](super::ClaimSpec) is made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Predicate {
    /// A column compared with a value.
    Compare {
        /// The column.
        column: String,
        /// How.
        op: Op,
        /// With what.
        value: Value,
    },
    /// A column equal to one of some values; no values, no rows.
    In {
        /// The column.
        column: String,
        /// The values.
        values: Vec<Value>,
    },
    /// A column that is NULL.
    IsNull {
        /// The column.
        column: String,
    },
    /// A row before which none comes of those that have the same value in a column and for which a condition holds: the head of its group. A row
    /// without a value there is alone.
    First {
        /// The column whose value they have in common.
        group: String,
        /// Which comes before which: smallest first, by these columns, the next where one ties. They tell all rows of a group apart.
        order: Vec<String>,
        /// Those that count.
        among: Box<Predicate>,
    },
    /// All of them; true if there are none.
    And(Vec<Predicate>),
    /// Any of them; false if there are none.
    Or(Vec<Predicate>),
    /// The opposite; unknown stays unknown.
    Not(Box<Predicate>),
}

/// A column in a [`Predicate`]: `col("status").eq("pending")`.
pub fn col(name: impl Into<String>) -> Column {
    Column(name.into())
}

/// See [`col`].
#[derive(Debug, Clone)]
pub struct Column(String);

impl Column {
    fn compare(self, op: Op, value: impl Into<Value>) -> Predicate {
        Predicate::Compare { column: self.0, op, value: value.into() }
    }

    /// `column = value`
    #[allow(clippy::should_implement_trait)]
    pub fn eq(self, value: impl Into<Value>) -> Predicate {
        self.compare(Op::Eq, value)
    }

    /// `column <> value`
    #[allow(clippy::should_implement_trait)]
    pub fn ne(self, value: impl Into<Value>) -> Predicate {
        self.compare(Op::Ne, value)
    }

    /// `column < value`
    pub fn lt(self, value: impl Into<Value>) -> Predicate {
        self.compare(Op::Lt, value)
    }

    /// `column <= value`
    pub fn le(self, value: impl Into<Value>) -> Predicate {
        self.compare(Op::Le, value)
    }

    /// `column > value`
    pub fn gt(self, value: impl Into<Value>) -> Predicate {
        self.compare(Op::Gt, value)
    }

    /// `column >= value`
    pub fn ge(self, value: impl Into<Value>) -> Predicate {
        self.compare(Op::Ge, value)
    }

    /// `column IN (values)`
    pub fn is_in<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Predicate {
        Predicate::In { column: self.0, values: values.into_iter().map(Into::into).collect() }
    }

    /// `column IS NULL`
    pub fn is_null(self) -> Predicate {
        Predicate::IsNull { column: self.0 }
    }

    /// `column IS NOT NULL`
    pub fn is_not_null(self) -> Predicate {
        self.is_null().not()
    }
}

impl Predicate {
    /// See [`Predicate::First`].
    pub fn first_of<'o>(
        group: impl Into<String>,
        order: impl IntoIterator<Item = &'o str>,
        among: Predicate,
    ) -> Self {
        let order = order.into_iter().map(str::to_owned).collect();
        Self::First { group: group.into(), order, among: Box::new(among) }
    }

    /// Every row.
    pub fn always() -> Self {
        Self::And(Vec::new())
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::And(mut parts) => {
                parts.push(other);
                Self::And(parts)
            }
            first => Self::And(vec![first, other]),
        }
    }

    /// Either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Or(mut parts) => {
                parts.push(other);
                Self::Or(parts)
            }
            first => Self::Or(vec![first, other]),
        }
    }

    /// The opposite.
    #[must_use]
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Calls `see` for every column with the value it is compared with (none for IS NULL).
    pub(crate) fn walk<'p, E>(
        &'p self,
        see: &mut impl FnMut(&'p str, Option<&'p Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Compare { column, value, .. } => see(column, Some(value)),
            Self::In { column, values } => {
                see(column, None)?;
                values.iter().try_for_each(|value| see(column, Some(value)))
            }
            Self::IsNull { column } => see(column, None),
            Self::First { group, order, among } => {
                see(group, None)?;
                order.iter().try_for_each(|column| see(column, None))?;
                among.walk(see)
            }
            Self::And(parts) | Self::Or(parts) => parts.iter().try_for_each(|part| part.walk(see)),
            Self::Not(part) => part.walk(see),
        }
    }

    /// Columns that every row it holds for has equal to one value, with that value; none for NULL.
    #[cfg(feature = "_sql")]
    pub(crate) fn fixed(&self) -> Vec<(&str, Option<&Value>)> {
        match self {
            Self::Compare { column, op: Op::Eq, value } => vec![(column, Some(value))],
            Self::In { column, values } if values.len() == 1 => vec![(column, values.first())],
            Self::IsNull { column } => vec![(column, None)],
            Self::And(parts) => parts.iter().flat_map(Self::fixed).collect(),
            _ => Vec::new(),
        }
    }

    /// How many levels deep it is nested.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Compare { .. } | Self::In { .. } | Self::IsNull { .. } => 1,
            Self::And(parts) | Self::Or(parts) => 1 + parts.iter().map(Self::depth).max().unwrap_or(0),
            Self::Not(part) => 1 + part.depth(),
            Self::First { among, .. } => 1 + among.depth(),
        }
    }
}
