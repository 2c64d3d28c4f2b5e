//! The operator's commands, one file each: what is asked, how it is shown, and what it means for the exit code.

mod batches;
pub(crate) mod cancel;
pub(crate) mod config;
pub(crate) mod discard;
pub(crate) mod enqueue;
pub(crate) mod explain;
pub(crate) mod inbox;
pub(crate) mod lanes;
mod lines;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod parked;
pub(crate) mod pause;
pub(crate) mod probe;
pub(crate) mod purge;
pub(crate) mod redrive;
pub(crate) mod schemas;
mod selection;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod tasks;
pub(crate) mod workers;

use std::sync::Arc;

use anyhow::Result;
use sendoff::outbox::Inspect;

use crate::args::StoreArgs;
use crate::exit::refuse;
use crate::place::Place;
use crate::site::Site;

/// The outbox, for operators.
async fn open(args: &StoreArgs) -> Result<Arc<dyn Inspect>> {
    Site::of(args).await?.inspect().await
}

/// The same, for what only sendoff's own tables have.
async fn open_own(args: &StoreArgs, command: &str) -> Result<Arc<dyn Inspect>> {
    own_tables(args, command)?;
    open(args).await
}

/// Says what to do instead, where a command is about sendoff's own tables and the configuration maps a host's own.
pub(crate) fn own_tables(args: &StoreArgs, command: &str) -> Result<()> {
    let Some(table) = Place::of(args)?.table else { return Ok(()) };
    let instead = match command {
        "lanes" | "workers" => {
            "rows are claimed one by one, and no worker registers; `sendoff list processing` says who has which"
        }
        "parked" => "rows wait for themselves alone; `sendoff list failed` shows those that wait",
        "explain" => {
            "`sendoff show` and `sendoff list` say where a row stands, who has it and what went wrong"
        }
        "redrive" => {
            "only its owner may set a dead row back: write its word for pending into its status, and 0 into its attempts; where claims are kept beside it, delete the row's claim there as well"
        }
        "pause" | "resume" => "stop the relay, or start it again: rows that it has claimed are given back",
        "enqueue" => "its owner writes its rows, in its own transactions",
        "doctor" => {
            "`sendoff adopt` looks at it, and `sendoff config check --connect` says whether the mapping fits"
        }
        _ => "only its owner may delete rows of it",
    };
    refuse!(
        "`sendoff {command}` is for sendoff's own tables, and the configuration maps {}, which is the host's own: {instead}",
        table.name()
    );
}

/// Who asks, for the record of operations.
fn operator() -> String {
    let name = ["SENDOFF_OPERATOR", "SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    name.map_or_else(|| "sendoff".to_owned(), |name| format!("sendoff, {name}"))
}
