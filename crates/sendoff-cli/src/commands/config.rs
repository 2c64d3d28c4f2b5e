//! `sendoff config`: a configuration is written, checked and described.

use std::path::Path;

use anyhow::{Context as _, Result};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;

use crate::admin::Address;
use crate::args::{ConfigArgs, ConfigCommand, StoreArgs};
use crate::config::{Config, STARTER, reference};
use crate::exit::{Answer, Refused};
use crate::output::{print, print_json};
use crate::place::Place;
use crate::site::Site;
use crate::telemetry;
use crate::wire;

/// What was checked, and is right.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    stores: usize,
    targets: usize,
    /// All of them were asked, and answered.
    connected: bool,
}

impl Checked {
    fn text(&self) -> String {
        let count =
            |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let asked = if self.connected { ", and all of them answer" } else { "" };
        format!("right: {}, {}{asked}\n", count(self.stores, "store"), count(self.targets, "target"))
    }
}

/// Does what is asked of it.
pub(crate) async fn run(args: &ConfigArgs) -> Result<Answer> {
    match &args.command {
        ConfigCommand::Init => print(STARTER)?,
        ConfigCommand::Schema => print_json(&schema_for!(Config))?,
        ConfigCommand::Reference => print(&reference::markdown())?,
        ConfigCommand::Check { file, connect, json } => {
            let checked = check(file, *connect).await?;
            if *json { print_json(&checked)? } else { print(&checked.text())? }
        }
    }
    Ok(Answer::Yes)
}

/// All that can be said without a server; with `connect`, each of them is asked too.
async fn check(file: &Path, connect: bool) -> Result<Checked> {
    let config = Config::read(file)?;
    let args = StoreArgs { store: None, names: None, config: Some(file.to_owned()) };
    let places = Place::all(&args, Some(&config))?;
    Address::of(&config.admin, None)?;
    telemetry::check(&config.telemetry)?;
    let mut sinks = Vec::new();
    for (target, sink) in config.targets()? {
        let named = || format!("target {:?}", target.target);
        target.check().map_err(Refused)?;
        sinks.push((target.target.clone(), wire::configured(sink).with_context(named)?));
    }
    if connect {
        for place in &places {
            let named =
                || place.name.as_ref().map_or_else(|| "store".to_owned(), |name| format!("store {name:?}"));
            Site::at(place).await.with_context(named)?.inspect().await.with_context(named)?;
        }
        for (target, sink) in &sinks {
            sink.check().await.with_context(|| format!("target {target:?}"))?;
        }
    }
    Ok(Checked { stores: places.len(), targets: sinks.len(), connected: connect })
}
