//! What `sendoff adopt` found, for people and for programs.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::adopted::Misfit;
use serde::{Serialize, Serializer};

use super::look::{Looked, ROWS_MAX};
use super::propose::{Claims, Proposal};
use super::shadow::ShadowJson;
use crate::args::AdoptArgs;
use crate::output::{Table, print, print_json, visible};

/// What was found, and what is proposed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Adoption {
    table: String,
    #[schemars(extend("enum" = ["PostgreSQL", "SQLite", "MariaDB/MySQL"]))]
    database: &'static str,
    /// Counted up to 100,000.
    rows: u64,
    /// What this role may do with it.
    rights: Vec<&'static str>,
    /// The known shape that it has.
    preset: Option<&'static str>,
    columns: Vec<ColumnJson>,
    indexes: Vec<IndexJson>,
    /// Where claims would be kept: in the table, or beside it; there, whether its status is written at the end or it is only read. Null: it cannot be adopted, or the configuration says it.
    #[schemars(extend("enum" = [Some("table"), Some("beside_writing"), Some("beside_reading"), None::<&str>]))]
    claims: Option<&'static str>,
    /// What has to be done first, each with its statement.
    #[serde(serialize_with = "misfits")]
    #[schemars(with = "Vec<ToDo>")]
    pub(super) to_do: Vec<Misfit>,
    /// What is good to know, and what cannot be had.
    pub(super) notes: Vec<String>,
    /// Why it cannot be adopted.
    obstacles: Vec<String>,
    /// The configuration that is proposed.
    pub(super) config: Option<String>,
    /// What would be delivered, if that was asked.
    pub(super) shadow: Option<ShadowJson>,
    /// It was looked at as a configuration maps it.
    #[serde(skip)]
    pub(super) is_configured: bool,
}

/// A column, and what it was taken for.
#[derive(Debug, Serialize, JsonSchema)]
struct ColumnJson {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    /// Null: it is not needed.
    taken_for: Option<String>,
    #[schemars(extend("enum" = [Some("certain"), Some("likely"), Some("guess"), None::<&str>]))]
    sure: Option<&'static str>,
    why: Option<String>,
}

/// An index.
#[derive(Debug, Serialize, JsonSchema)]
struct IndexJson {
    name: String,
    unique: bool,
    columns: Vec<String>,
}

/// Something that has to be done first.
#[derive(Serialize, JsonSchema)]
struct ToDo {
    what: String,
    /// The statement that does it. Null: it is the mapping that is to be changed.
    run: Option<String>,
}

fn misfits<S: Serializer>(misfits: &[Misfit], serializer: S) -> Result<S::Ok, S::Error> {
    let to_do = |misfit: &Misfit| ToDo { what: misfit.what.clone(), run: misfit.run.clone() };
    serializer.collect_seq(misfits.iter().map(to_do))
}

impl Adoption {
    pub(super) fn of(looked: &Looked, proposal: &Proposal) -> Self {
        let rights = looked.rights;
        let may = [(rights.read, "SELECT"), (rights.write, "UPDATE"), (rights.delete, "DELETE")];
        let column = |column: &super::look::Column| {
            let same = |name: &str| looked.column(name).is_some_and(|known| known.name == column.name);
            let taken: Vec<_> = proposal.taken.iter().filter(|taken| same(&taken.column)).collect();
            let roles: Vec<&str> = taken.iter().map(|taken| taken.role).collect();
            ColumnJson {
                name: column.name.clone(),
                kind: column.kind.clone(),
                taken_for: (!roles.is_empty()).then(|| roles.join(", ")),
                sure: taken.first().map(|taken| taken.sure.word()),
                why: taken.first().map(|taken| taken.why.clone()),
            }
        };
        let index = |index: &super::look::Index| IndexJson {
            name: index.name.clone(),
            unique: index.is_unique,
            columns: index.columns.clone(),
        };
        Self {
            table: looked.name.clone(),
            database: looked.database.word(),
            rows: looked.rows,
            rights: may.iter().filter(|(may, _)| *may).map(|(_, right)| *right).collect(),
            preset: proposal.preset.map(|preset| preset.word()),
            columns: looked.columns.iter().map(column).collect(),
            indexes: looked.indexes.iter().map(index).collect(),
            claims: proposal.claims.map(|claims| match claims {
                Claims::Table => "table",
                Claims::BesideWriting => "beside_writing",
                Claims::BesideReading => "beside_reading",
            }),
            to_do: Vec::new(),
            notes: proposal.notes.clone(),
            obstacles: proposal.obstacles.clone(),
            config: None,
            shadow: None,
            is_configured: false,
        }
    }

    pub(super) fn is_possible(&self) -> bool {
        self.obstacles.is_empty()
    }

    pub(super) fn show(&self, args: &AdoptArgs) -> Result<()> {
        if args.json {
            return print_json(self);
        }
        self.head()?;
        if !self.is_configured {
            self.meanings()?;
        }
        self.tasks(args)?;
        for (index, note) in self.notes.iter().enumerate() {
            let head = if index == 0 { "\nMind:\n" } else { "" };
            print(&format!("{head}{}\n", wrapped(note, "- ", "  ")))?;
        }
        if let Some(shadow) = &self.shadow {
            shadow.print()?;
        }
        self.configuration(args)
    }

    fn head(&self) -> Result<()> {
        let rows = if self.rows == ROWS_MAX {
            format!("{ROWS_MAX} rows or more")
        } else {
            format!("{} rows", self.rows)
        };
        let rights = if self.rights.is_empty() { "nothing".to_owned() } else { self.rights.join(", ") };
        print(&format!(
            "{} on {}: {} columns, {rows}; this role may {rights}\n",
            visible(&self.table),
            self.database,
            self.columns.len()
        ))
    }

    fn meanings(&self) -> Result<()> {
        if let Some(preset) = self.preset {
            print(&format!("It has the shape of preset {preset}: all of its columns are there.\n"))?;
        }
        print("\n")?;
        let mut table = Table::new(&["COLUMN", "TYPE", "TAKEN FOR", "SURE", "WHY"]);
        for column in &self.columns {
            let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
            table.row([
                column.name.clone(),
                column.kind.clone(),
                or_dash(column.taken_for.as_deref()),
                or_dash(column.sure),
                or_dash(column.why.as_deref()),
            ]);
        }
        table.print()?;
        let claims = match self.claims {
            Some("table") => "Claims are columns of the table itself.",
            Some("beside_writing") => {
                "Claims are kept in a table of sendoff's own beside it; the status of its rows is written when they are delivered or given up."
            }
            Some(_) => {
                "Claims are kept in a table of sendoff's own beside it; the host's table is only read."
            }
            None => "",
        };
        if !claims.is_empty() {
            print(&format!("\n{claims}\n"))?;
        }
        for obstacle in &self.obstacles {
            print(&format!("\nIt cannot be adopted as it is:\n{}\n", wrapped(obstacle, "- ", "  ")))?;
        }
        Ok(())
    }

    fn tasks(&self, args: &AdoptArgs) -> Result<()> {
        if self.to_do.is_empty() {
            let fits = self.is_possible() && (self.config.is_some() || self.is_configured);
            return if fits {
                print("\nThe mapping fits: nothing has to be done to the table.\n")
            } else {
                Ok(())
            };
        }
        print("\nTo do first:\n")?;
        for task in &self.to_do {
            print(&format!("{}\n", wrapped(&task.what, "- ", "  ")))?;
            if let Some(run) = &task.run {
                print(&format!("    {};\n", visible(run.trim_end_matches(';'))))?;
                if run.starts_with("CREATE TABLE") {
                    let file = args.write.as_ref().or(args.store.config.as_ref());
                    let file = file.map_or_else(|| "FILE".to_owned(), |file| file.display().to_string());
                    print(&format!("  or: sendoff migrate --config {file}\n"))?;
                }
            }
        }
        Ok(())
    }

    fn configuration(&self, args: &AdoptArgs) -> Result<()> {
        let Some(config) = &self.config else { return Ok(()) };
        match &args.write {
            Some(file) => {
                let file = file.display();
                print(&format!(
                    "\nWritten to {file}. Next: give its targets their sinks; then\n  sendoff config check {file} --connect\n  sendoff adopt --shadow --config {file}\n  sendoff run --config {file}\n"
                ))
            }
            None => print(&format!("\nThe configuration; --write FILE writes it:\n\n{config}")),
        }
    }
}

/// Lines of a readable length.
fn wrapped(text: &str, first: &str, other: &str) -> String {
    const WIDTH: usize = 110;
    let mut lines = vec![first.to_owned()];
    for word in visible(text).split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line + word.chars().count() > WIDTH && line > first.len() {
            lines.push(other.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped() {
        assert_eq!(wrapped("one two", "- ", "  "), "- one two");
        let text = ["word"; 40].join(" ");
        let wrapped = wrapped(&text, "- ", "  ");
        assert!(wrapped.lines().all(|line| line.chars().count() <= 116), "{wrapped}");
        assert_eq!(wrapped.lines().count(), 2, "{wrapped}");
        assert!(wrapped.lines().nth(1).is_some_and(|line| line.starts_with("  word")), "{wrapped}");
    }
}
