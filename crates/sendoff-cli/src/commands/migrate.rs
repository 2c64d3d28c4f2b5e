//! `sendoff migrate`: the outbox's tables.

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::stores::SchemaState;
use serde::Serialize;

use crate::args::MigrateArgs;
use crate::exit::Answer;
use crate::output::{print, print_json};
use crate::site::Site;

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

/// Makes them, prints how, or says whether they are as they must be.
pub(crate) async fn run(args: &MigrateArgs) -> Result<Answer> {
    if args.print {
        print(&Site::of_new(&args.store).await?.script().await?)?;
        return Ok(Answer::Yes);
    }
    let site = if args.check { Site::of(&args.store).await? } else { Site::of_new(&args.store).await? };
    if !args.check {
        site.migrate().await?;
    }
    if args.json {
        print_json(&Tables::of(&site.schema_state().await?))?;
    }
    // If they are not as they must be, this says why.
    site.inspect().await?;
    if !args.json {
        print("the outbox's tables are as this program needs them\n")?;
    }
    Ok(Answer::Yes)
}
