//! What these tests are to find, they find.

use libtest_mimic::Trial;

use crate::document::Document;
use crate::place::Server;
use crate::{commands, links, none, promises, quotations, run};

/// A document, and what is to be said of it.
type Case = (&'static str, &'static str, fn(&Document) -> Vec<String>, &'static str);

const CASES: [Case; 16] = [
    (
        "an_unknown_language",
        "```cobol\nSTOP RUN.\n```\n",
        |found| found.problems.clone(),
        "nobody knows how to run \"cobol\"",
    ),
    (
        "an_unknown_mark",
        "```sql oracle\nSELECT 1;\n```\n",
        |found| found.problems.clone(),
        "\"oracle\" means nothing",
    ),
    (
        "no_reason",
        "```sh no-run\nrm -rf /\n```\n",
        |found| found.problems.clone(),
        "no comment before it says why",
    ),
    ("no_end", "```sh\ntrue\n", |found| found.problems.clone(), "has no end"),
    ("a_link_to_nowhere", "[a](missing.md)", |found| links::check(&[], found), "there is no docs/missing.md"),
    ("an_anchor_to_nowhere", "# One two\n[a](#one-too)", |found| links::check(&[], found), "[\"one-two\"]"),
    ("rust_of_nowhere", "```rust\nfn main() {}\n```\n", quotations::check, "no quotation"),
    (
        "rust_that_was_changed",
        "<!-- quote: examples/orders.rs -->\n```rust\nlet mut transaction = pool.begin().await?;\n// …\nnever.was();\n```\n",
        quotations::check,
        "examples/orders.rs does not have these lines one after the other:\nnever.was();",
    ),
    ("an_unknown_command", "`sendoff frobnicate`", commands::check, "there is no such command"),
    ("an_unknown_command_below", "`sendoff tasks frobnicate`", commands::check, "there is no such command"),
    ("an_unknown_flag_below", "`sendoff tasks list --stauts x`", commands::check, "it has no --stauts"),
    ("an_unknown_flag", "`sendoff status --wach`", commands::check, "it has no --wach"),
    (
        "a_test_that_is_not_there",
        concat!("`outbox::no_", "such_test_is_there`"),
        promises::check,
        "there is no test",
    ),
    ("a_command_that_fails", "```sh\nsendoff status\ntrue\n```\n", failure, "exit status: 3"),
    ("a_wrong_configuration", "```toml\n[relay]\nlaese = \"1s\"\n```\n", failure, "did you mean `lease`?"),
    ("a_wrong_statement", "```sql\nSELECT nowhere_at_all;\n```\n", failure, "no such column"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, text, check, said): Case| {
        Trial::test(format!("itself::{name}"), move || {
            let found = check(&Document::new("docs/made_up.md", text)).join("\n");
            if found.contains(said) { Ok(()) } else { none(&[format!("{said:?} is not in {found:?}")]) }
        })
    };
    CASES.into_iter().map(trial).collect()
}

fn failure(document: &Document) -> Vec<String> {
    run::all(document, Server::Sqlite).err().into_iter().collect()
}
