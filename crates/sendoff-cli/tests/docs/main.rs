//! The documents as a reader uses them: every command, statement, program and configuration in them is run, every quotation is of code that is compiled,
//! every link leads somewhere. A document that is added is found by itself.
//!
//! What a block is run as stands in its info string: `sh`, `toml`, `sql` and `python` on SQLite, `sql postgres`, `sql mariadb`, `python postgres`, `python mariadb` on those servers, if they are
//! there. The blocks of a document share a directory and an outbox, and are run in their order. `no-run` behind the language, and a comment `<!-- no-run: why -->` before the block, leave it out.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod commands;
mod document;
mod examples;
mod itself;
mod links;
mod place;
// That of another test, of which not all is used here.
#[allow(dead_code)]
#[path = "../doctor/private.rs"]
mod private;
mod promises;
mod quotations;
mod run;
mod stand_in;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use self::document::Document;
use self::place::Server;

// What `private` starts its servers for.
#[allow(dead_code)]
#[path = "../commands/outbox.rs"]
mod outbox;
#[allow(dead_code)]
#[path = "../commands/program.rs"]
mod program;
#[path = "../commands/schema.rs"]
mod schema;

fn main() -> ExitCode {
    if let Some(code) = stand_in::run_if_asked() {
        return code;
    }
    let documents: Arc<Vec<Document>> = Arc::new(Document::all());
    let mut trials = itself::trials();
    for index in 0..documents.len() {
        let path = documents[index].path.clone();
        let mut add = |name: &str, check: fn(&[Document], &Document) -> Vec<String>| {
            let documents = Arc::clone(&documents);
            let name = format!("{path}::{name}");
            trials.push(Trial::test(name, move || none(&check(&documents, &documents[index]))));
        };
        add("its_blocks_are_known", |_, document| document.problems.clone());
        add("its_links_lead_somewhere", links::check);
        add("its_quotations_are_right", |_, document| quotations::check(document));
        add("what_it_says_of_commands_is_so", |_, document| commands::check(document));
        if path == promises::PAGE {
            add("its_tests_are_there", |_, document| promises::check(document));
        }
        for server in Server::ALL.into_iter().filter(|server| documents[index].is_for(*server)) {
            let documents = Arc::clone(&documents);
            let name = format!("{path}::it_runs_on_{}", server.name());
            let trial = Trial::test(name, move || Ok(run::all(&documents[index], server)?));
            trials.push(trial.with_ignored_flag(server.is_missing()));
        }
    }
    for (name, last) in examples::ALL {
        let run = move || {
            examples::run(name, last);
            Ok(())
        };
        trials.push(Trial::test(format!("examples::{name}"), run));
    }
    let every = Arc::clone(&documents);
    trials.push(Trial::test("every_document_is_in_an_index", move || none(&links::check_indexes(&every))));
    report(&documents);
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Nothing is wrong.
fn none(problems: &[String]) -> Result<(), Failed> {
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// How many blocks there are, and how many are left out.
fn report(documents: &[Document]) {
    let blocks: Vec<_> = documents.iter().flat_map(|document| &document.blocks).collect();
    let left_out = blocks.iter().filter(|block| block.no_run().is_some()).count();
    let plain = blocks
        .iter()
        .filter(|block| matches!(block.language.as_str(), "" | "text" | "json" | "yaml"))
        .count();
    let run = blocks.len() - left_out - plain;
    let _ = writeln!(
        std::io::stderr(),
        "{} documents: {run} blocks are run or compiled, {left_out} left out with a reason, {plain} are pictures or data",
        documents.len()
    );
}
