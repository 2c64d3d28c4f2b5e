//! The operator's commands, one file each: what is asked, how it is shown, and what it means for the exit code.

pub(crate) mod cancel;
pub(crate) mod config;
pub(crate) mod discard;
pub(crate) mod enqueue;
pub(crate) mod explain;
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
pub(crate) mod workers;

use std::sync::Arc;

use anyhow::Result;
use sendoff::outbox::Inspect;

use crate::args::StoreArgs;
use crate::site::Site;

/// The outbox, for operators.
async fn open(args: &StoreArgs) -> Result<Arc<dyn Inspect>> {
    Site::of(args).await?.inspect().await
}

/// Who asks, for the record of operations.
fn operator() -> String {
    let name = ["SENDOFF_OPERATOR", "SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    name.map_or_else(|| "sendoff".to_owned(), |name| format!("sendoff, {name}"))
}
