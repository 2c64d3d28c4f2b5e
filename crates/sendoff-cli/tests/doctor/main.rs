//! `sendoff doctor` against databases that are in the state that it is to find, and against healthy ones.

#![allow(clippy::unwrap_used)]

mod mariadb;
// That of the other commands, of which not all is used here.
#[allow(dead_code)]
#[path = "../commands/outbox.rs"]
mod outbox;
mod postgres;
#[allow(dead_code)]
mod private;
#[allow(dead_code)]
#[path = "../commands/program.rs"]
mod program;
mod report;
#[path = "../commands/schema.rs"]
mod schema;
mod sqlite;
mod waiting;
