//! Whether the tables and indexes are those that the migration makes.

use std::collections::HashSet;

use super::finding::{Finding, INVALID_INDEX, MISSING_INDEX, SCHEMA_DAMAGED};

/// What the database has.
#[derive(Debug, Default)]
pub(super) struct Present {
    pub(super) tables: HashSet<String>,
    pub(super) indexes: Vec<Index>,
}

/// An index that the database has.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) table: String,
    /// None: the primary key, whatever it is called.
    pub(super) name: Option<String>,
    /// How to mend it, if it cannot be used.
    pub(super) mend: Option<String>,
}

/// An index that the migration makes.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    table: String,
    name: Option<String>,
    mend: String,
}

/// Compares what is there with what the migration's script makes.
pub(super) fn compare(script: &str, present: &Present) -> Vec<Finding> {
    let (tables, indexes) = expected(script);
    let mut found = Vec::new();
    for table in tables.iter().filter(|table| !present.tables.contains(*table)) {
        let what = format!("The table {table} is not there.");
        let todo =
            "`sendoff migrate --print` prints how it is made; its statements leave alone what is there.";
        found.push(SCHEMA_DAMAGED.found(what, todo));
    }
    for index in indexes.iter().filter(|index| present.tables.contains(&index.table)) {
        let is_it = |other: &&Index| other.table == index.table && other.name == index.name;
        let called = match &index.name {
            Some(name) => format!("The index {name} of the table {}", index.table),
            None => format!("The primary key of the table {}", index.table),
        };
        match present.indexes.iter().find(is_it) {
            None => found.push(MISSING_INDEX.found(format!("{called} is not there."), index.mend.clone())),
            Some(Index { mend: Some(mend), .. }) => {
                found.push(INVALID_INDEX.found(format!("{called} is there but not valid."), mend.clone()));
            }
            Some(_) => {}
        }
    }
    found
}

/// The tables and indexes of a migration's script: one statement for each index, or a line of its table.
fn expected(script: &str) -> (Vec<String>, Vec<Expected>) {
    let (mut tables, mut indexes) = (Vec::new(), Vec::new());
    let mut current: Option<(String, String)> = None;
    for whole in script.lines() {
        let line = whole.trim();
        if let Some((full, bare, _)) = line.strip_prefix("CREATE TABLE IF NOT EXISTS ").and_then(name) {
            tables.push(bare.clone());
            current = Some((full, bare));
        } else if let Some(rest) = line
            .strip_prefix("CREATE INDEX IF NOT EXISTS ")
            .or_else(|| line.strip_prefix("CREATE UNIQUE INDEX IF NOT EXISTS "))
        {
            let Some((_, index, rest)) = name(rest) else { continue };
            let Some((_, table, _)) = rest.strip_prefix(" ON ").and_then(name) else { continue };
            indexes.push(Expected { table, name: Some(index), mend: line.to_owned() });
        } else if whole.starts_with(')') {
            // Not one that ends a part of the table: those are indented.
            current = None;
        } else if let Some((full, table)) = &current
            && let Some((index, part)) = part_of_table(line)
        {
            indexes.push(Expected {
                table: table.clone(),
                name: index,
                mend: format!("ALTER TABLE {full} ADD {part};"),
            });
        }
    }
    (tables, indexes)
}

/// The index that a line of a table makes, and how it is added later.
fn part_of_table(line: &str) -> Option<(Option<String>, String)> {
    if line.starts_with("--") {
        return None;
    }
    let line = line.trim_end_matches(',');
    if line.starts_with("PRIMARY KEY (") {
        return Some((None, line.to_owned()));
    }
    if let Some(rest) = line.strip_prefix("KEY ").or_else(|| line.strip_prefix("UNIQUE KEY ")) {
        return Some((rest.split_whitespace().next().map(str::to_owned), line.to_owned()));
    }
    let column = line.split_whitespace().next()?;
    line.contains(" PRIMARY KEY").then(|| (None, format!("PRIMARY KEY ({column})")))
}

/// A quoted name at the beginning of a text: as it stands there, its last part alone, and what follows.
fn name(text: &str) -> Option<(String, String, &str)> {
    let mut rest = text;
    loop {
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '`'))?;
        let mut bare = String::new();
        let mut letters = rest.char_indices().skip(1).peekable();
        let end = loop {
            let (at, letter) = letters.next()?;
            if letter != quote {
                bare.push(letter);
            } else if letters.next_if(|(_, next)| *next == quote).is_some() {
                bare.push(quote);
            } else {
                break at + 1;
            }
        };
        rest = &rest[end..];
        match rest.strip_prefix('.') {
            Some(next) => rest = next,
            None => return Some((text[..text.len() - rest.len()].to_owned(), bare, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"CREATE TABLE IF NOT EXISTS "a""b"."event" (
    -- CACHE 1: KEY
    lane smallint GENERATED ALWAYS AS (
        id & 63
    ) STORED,
    PRIMARY KEY (target, lane, id)
) WITH (fillfactor = 20);
CREATE UNIQUE INDEX IF NOT EXISTS "event_by_event_id" ON "a""b"."event" (event_id);
CREATE TABLE IF NOT EXISTS `x_worker` (
    worker BINARY(16) NOT NULL PRIMARY KEY,
    KEY by_lane (target, lane, id),
    UNIQUE KEY by_event_id (event_id)
) ENGINE = InnoDB;
"#;

    #[test]
    fn a_script_is_read_for_what_it_makes() {
        let (tables, indexes) = expected(SCRIPT);
        assert_eq!(tables, ["event", "x_worker"]);
        let mends: Vec<&str> = indexes.iter().map(|index| &*index.mend).collect();
        assert_eq!(
            mends,
            [
                r#"ALTER TABLE "a""b"."event" ADD PRIMARY KEY (target, lane, id);"#,
                r#"CREATE UNIQUE INDEX IF NOT EXISTS "event_by_event_id" ON "a""b"."event" (event_id);"#,
                "ALTER TABLE `x_worker` ADD PRIMARY KEY (worker);",
                "ALTER TABLE `x_worker` ADD KEY by_lane (target, lane, id);",
                "ALTER TABLE `x_worker` ADD UNIQUE KEY by_event_id (event_id);",
            ]
        );
        assert_eq!(indexes[3].name.as_deref(), Some("by_lane"));
    }

    #[test]
    fn what_is_missing_or_not_valid_is_found() {
        let index = |table: &str, name: Option<&str>| Index {
            table: table.to_owned(),
            name: name.map(str::to_owned),
            mend: None,
        };
        let mut present = Present {
            tables: ["event", "x_worker"].map(str::to_owned).into(),
            indexes: vec![
                index("event", None),
                index("event", Some("event_by_event_id")),
                index("x_worker", None),
                index("x_worker", Some("by_lane")),
                index("x_worker", Some("by_event_id")),
            ],
        };
        assert_eq!(compare(SCRIPT, &present), []);
        present.indexes[0].mend = Some("REINDEX".to_owned());
        present.indexes.remove(3);
        let codes =
            |present: &Present| compare(SCRIPT, present).iter().map(|one| one.code).collect::<Vec<_>>();
        assert_eq!(codes(&present), ["invalid-index", "missing-index"]);
        present.tables.remove("x_worker");
        assert_eq!(codes(&present), ["schema-damaged", "invalid-index"]);
    }
}
