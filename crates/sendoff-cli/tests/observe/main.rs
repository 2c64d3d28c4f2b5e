//! What a running `sendoff run` says of itself: figures, probes, logs; and how it begins while a sink is away.

#![allow(clippy::unwrap_used)]

mod admin;
mod away;
mod logs;
// Those of the other commands, of which not all is used here.
#[allow(dead_code)]
#[path = "../commands/outbox.rs"]
mod outbox;
#[allow(dead_code)]
#[path = "../doctor/private.rs"]
mod private;
mod process;
#[allow(dead_code)]
#[path = "../commands/program.rs"]
mod program;
#[allow(dead_code)]
#[path = "../commands/schema.rs"]
mod schema;
mod store_away;
