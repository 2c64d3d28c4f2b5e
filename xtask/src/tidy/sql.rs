//! Every SQL dialect has the same statements under the same names, so that a statement missing in one is seen here
//! and not by that dialect's users.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

const STORES: &str = "crates/sendoff/src/stores/";

/// Each folder below `stores/` with `.sql` files has the same statements as all others together. Folders further down are left alone: the outbox's
/// statements are in `stores/sql/outbox`, once for every dialect, and what a dialect does better is its own.
/// A statement may be one file (`claim.sql`) or several that run in turn (`claim_1_pick.sql`, `claim_2_mark.sql`).
pub(super) fn same_statements(paths: &[String]) -> Vec<Finding> {
    let mut dialects: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for path in paths {
        let Some((dialect, file)) = path.strip_prefix(STORES).and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        if file.contains('/') {
            continue;
        }
        if let Some(name) = file.strip_suffix(".sql") {
            dialects.entry(dialect).or_default().insert(statement(name));
        }
    }
    let all: BTreeSet<String> = dialects.values().flatten().cloned().collect();
    let mut findings = Vec::new();
    for (dialect, statements) in &dialects {
        for missing in all.difference(statements) {
            let others = dialects.iter().filter(|(_, theirs)| theirs.contains(missing));
            let others: Vec<&str> = others.map(|(name, _)| *name).collect();
            let problem = format!("has no `{missing}.sql`, unlike {}", others.join(", "));
            findings.push(Finding::in_file(&format!("{STORES}{dialect}"), problem));
        }
    }
    findings
}

/// `claim_1_pick` and `claim_2` are parts of `claim`.
fn statement(name: &str) -> String {
    let is_part = |rest: &str| {
        let after = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        after.len() < rest.len() && (after.is_empty() || after.starts_with('_'))
    };
    let cut = name.match_indices('_').find(|(at, _)| is_part(&name[at + 1..]));
    cut.map_or(name, |(at, _)| &name[..at]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::problems;

    fn problems_of(files: &[&str]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|file| format!("{STORES}{file}")).collect();
        let tree: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "SELECT 1;\n")).collect();
        problems(&tree)
    }

    #[test]
    fn what_is_shared_or_a_dialects_own_is_left_alone() {
        assert_eq!(
            problems_of(&[
                "postgres/claim.sql",
                "sqlite/claim.sql",
                "sql/outbox/fence.sql",
                "postgres/outbox/fetch.sql"
            ]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_statement_that_one_dialect_lacks_is_found() {
        assert_eq!(
            problems_of(&[
                "postgres/claim.sql",
                "postgres/settle.sql",
                "sqlite/claim.sql",
                "sqlite/settle.sql",
                "mysql/claim.sql"
            ]),
            ["crates/sendoff/src/stores/mysql: has no `settle.sql`, unlike postgres, sqlite"]
        );
    }

    #[test]
    fn a_statement_in_parts_is_one_statement() {
        assert_eq!(
            problems_of(&["postgres/claim.sql", "mysql/claim_1_pick.sql", "mysql/claim_2_mark.sql"]),
            [""; 0]
        );
    }

    #[test]
    fn folders_without_sql_and_files_beside_are_passed_over() {
        assert_eq!(problems_of(&["postgres/claim.sql", "memory/claim.rs", "memory.rs"]), [""; 0]);
    }

    #[test]
    fn only_a_numbered_part_is_cut() {
        let cut = ["claim_1_pick", "claim_12", "claim_one", "lane_lease_2_mark", "sha_256bit"].map(statement);
        assert_eq!(cut, ["claim", "claim", "claim_one", "lane_lease", "sha_256bit"]);
    }
}
