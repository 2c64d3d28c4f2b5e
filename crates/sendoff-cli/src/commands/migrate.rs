//! `sendoff migrate`: the outbox's tables; and those of tasks and the inbox.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::stores::SchemaState;
use serde::Serialize;

use crate::args::MigrateArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};
use crate::part::Part;
use crate::place::Place;
use crate::site::Site;
use crate::table::{HostTable, Opened};

/// How the tables stand to this program.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tables {
    #[schemars(extend("enum" = ["current", "missing", "stale", "newer", "unreadable"]))]
    tables: &'static str,
    /// The version that they have, if it is another than this program's.
    found: Option<i64>,
    /// The version that this program speaks then.
    spoken: Option<i64>,
}

impl Tables {
    fn of(state: &SchemaState) -> Self {
        let (tables, versions) = match state {
            SchemaState::Current => ("current", None),
            SchemaState::Missing => ("missing", None),
            SchemaState::Stale { found, spoken } => ("stale", Some((*found, *spoken))),
            SchemaState::Newer { found, spoken } => ("newer", Some((*found, *spoken))),
            _ => ("unreadable", None),
        };
        Self { tables, found: versions.map(|(found, _)| found), spoken: versions.map(|(_, spoken)| spoken) }
    }
}

/// The same for a host's own table: only what is beside it is made.
async fn beside(args: &MigrateArgs, table: &HostTable) -> Result<Answer> {
    let site = Site::of(&args.store).await?;
    let opened = Opened::of_host(&site).await?;
    if args.print {
        let script = table.script(&opened).await?;
        print(
            &script.unwrap_or_else(|| "-- nothing: claims are columns of the host's own table\n".to_owned()),
        )?;
        return Ok(Answer::Yes);
    }
    let is_beside =
        if args.check { table.script(&opened).await?.is_some() } else { table.migrate(&opened).await? };
    if args.json {
        let is_ready = table.is_ready(&opened).await?;
        let state = if is_ready { SchemaState::Current } else { SchemaState::Missing };
        print_json(&Tables::of(&state))?;
    }
    // If it is not as it must be, this says why.
    table.open(&opened).await?;
    if !args.json {
        let made = if is_beside {
            "the table for claims is as this program needs it, and"
        } else {
            "nothing is made:"
        };
        print(&format!("{made} the mapping fits {}\n", table.name()))?;
    }
    Ok(Answer::Yes)
}

/// Makes them, prints how, or says whether they are as they must be.
pub(crate) async fn run(args: &MigrateArgs) -> Result<Answer> {
    if let Some(table) = Place::of(&args.store)?.table {
        return beside(args, &table).await;
    }
    of(args, Part::Outbox).await
}

/// The same for one part.
pub(crate) async fn of(args: &MigrateArgs, part: Part) -> Result<Answer> {
    // Beside a host's own table its file is there, and stays as it is.
    let is_hosts = Place::of(&args.store)?.table.is_some();
    let site = match args.check || is_hosts {
        true => Site::of_part(&args.store, part).await?,
        false => Site::of_new(&args.store).await?,
    };
    if args.print {
        print(&site.script(part).await?)?;
        return Ok(Answer::Yes);
    }
    if !args.check {
        site.migrate(part).await?;
    }
    if args.json {
        print_json(&Tables::of(&site.schema_state(part).await?))?;
    }
    // If they are not as they must be, this says why.
    site.check(part).await?;
    if !args.json {
        print(&format!("{} tables are as this program needs them\n", part.owner()))?;
    }
    Ok(Answer::Yes)
}
