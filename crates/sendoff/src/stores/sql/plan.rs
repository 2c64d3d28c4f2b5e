//! How a database would run a claim or a fetch.

/// What EXPLAIN says of a claim or a fetch: whether an index serves it, and whether it has to sort first.
///
/// A claim that sorts reads every eligible row to return a few, and on MariaDB and MySQL locks
/// them all. Its cost then grows with the backlog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The index that finds the rows, if there is one.
    pub index: Option<String>,
    /// The rows are sorted before the first is taken.
    pub sorts: bool,
    /// The database's own words.
    pub text: String,
}

impl Plan {
    /// The cost of the statement does not grow with the backlog.
    pub fn is_served_by_index(&self) -> bool {
        self.index.is_some() && !self.sorts
    }
}
