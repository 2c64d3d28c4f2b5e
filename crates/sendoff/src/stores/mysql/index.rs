//! Which index a claim should scan. Left to itself the optimizer reads a small table whole, and
//! then every row it passes is locked.

use crate::claim::{ClaimSpec, Direction, Nulls};

/// An index as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) parts: Vec<IndexPart>,
}

/// One column of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexPart {
    pub(super) column: String,
    pub(super) descending: bool,
}

/// The index that gives eligible rows in the claim's order: first the columns that the claim
/// wants equal to a value, in any order, then exactly its order. Of several, the one that narrows
/// most; `None` if there is none.
pub(super) fn for_claim<'i>(indexes: &'i [Index], spec: &ClaimSpec) -> Option<&'i str> {
    if spec.order().is_empty() || spec.order().iter().any(|order| order.nulls != Nulls::Native) {
        return None;
    }
    let equal: Vec<&str> = spec.eligible().fixed().into_iter().map(|(column, _)| column).collect();
    indexes
        .iter()
        .filter_map(|index| serves(index, &equal, spec).map(|narrowed| (narrowed, index)))
        .max_by_key(|(narrowed, _)| *narrowed)
        .map(|(_, index)| index.name.as_str())
}

/// How many leading columns are fixed by the claim, if the rest is its order.
fn serves(index: &Index, equal: &[&str], spec: &ClaimSpec) -> Option<usize> {
    let fixed = index
        .parts
        .iter()
        .take_while(|part| equal.iter().any(|name| name.eq_ignore_ascii_case(&part.column)))
        .count();
    // A column may be both fixed and in the order; try the longest fixed prefix first.
    (0..=fixed).rev().find(|&start| {
        let rest = &index.parts[start..];
        let wanted = spec.order();
        if rest.len() < wanted.len() {
            return false;
        }
        let matches = |flipped: bool| {
            wanted.iter().zip(rest).all(|(order, part)| {
                let descending = (order.direction == Direction::Descending) != flipped;
                order.column.as_str().eq_ignore_ascii_case(&part.column) && descending == part.descending
            })
        };
        // An index can be read backwards as well.
        matches(false) || matches(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Predicate, col, now};

    fn index(name: &str, columns: &[&str]) -> Index {
        let parts = columns
            .iter()
            .map(|column| IndexPart {
                column: column.trim_start_matches('-').to_owned(),
                descending: column.starts_with('-'),
            })
            .collect();
        Index { name: name.to_owned(), unique: name == "PRIMARY", parts }
    }

    fn choose(eligible: Predicate, order: &[&str], indexes: &[Index]) -> Option<String> {
        let mut spec = ClaimSpec::on("jobs").eligible(eligible).set("x", 1);
        for column in order {
            spec = match column.strip_prefix('-') {
                Some(column) => spec.order_by_desc(column),
                None => spec.order_by(*column),
            };
        }
        for_claim(indexes, &spec.build().unwrap()).map(str::to_owned)
    }

    #[test]
    fn fixed_columns_first_then_the_order() {
        let indexes = [
            index("PRIMARY", &["id"]),
            index("by_status", &["status"]),
            index("ready", &["status", "due", "id"]),
        ];
        let ready = col("status").eq("ready").and(col("due").le(now()));
        assert_eq!(choose(ready.clone(), &["due", "id"], &indexes).as_deref(), Some("ready"));
        assert_eq!(choose(ready.clone(), &["due"], &indexes).as_deref(), Some("ready"));
        assert_eq!(choose(ready.clone(), &["-due", "-id"], &indexes).as_deref(), Some("ready"));
        assert_eq!(choose(ready.clone(), &["-due", "id"], &indexes), None, "one way or the other, not both");
        assert_eq!(choose(ready, &["id"], &indexes).as_deref(), Some("PRIMARY"));
    }

    #[test]
    fn an_or_fixes_nothing() {
        let indexes = [index("PRIMARY", &["id"]), index("ready", &["status", "id"])];
        let either = col("status").eq("ready").or(col("lease").lt(now()));
        assert_eq!(choose(either, &["id"], &indexes).as_deref(), Some("PRIMARY"));
    }

    #[test]
    fn without_a_fitting_index_the_server_chooses() {
        let indexes = [index("PRIMARY", &["id"])];
        assert_eq!(choose(col("status").eq("ready"), &["due"], &indexes), None);
        assert_eq!(choose(col("status").eq("ready"), &[], &indexes), None);
    }

    #[test]
    fn null_is_one_value_too() {
        let indexes = [index("PRIMARY", &["id"]), index("free", &["owner", "id"])];
        assert_eq!(choose(col("owner").is_null(), &["id"], &indexes).as_deref(), Some("free"));
    }
}
