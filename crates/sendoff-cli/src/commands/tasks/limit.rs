//! `sendoff tasks limit`: how many tasks of a kind run at a time.

use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::TaskLimitArgs;
use crate::exit::Answer;
use crate::output::{Table, print, print_json, visible};

/// The limits that there are; of one kind, if one was asked about.
#[derive(Serialize, JsonSchema)]
pub(in crate::commands) struct Limits<'l> {
    limits: Vec<LimitShape<'l>>,
}

/// How many tasks of a kind run at a time.
#[derive(Serialize, JsonSchema)]
struct LimitShape<'l> {
    kind: &'l str,
    /// 0: none begins.
    most: u32,
}

/// Sets one, if that is asked, and shows how they stand.
pub(in crate::commands) async fn run(args: &TaskLimitArgs) -> Result<Answer> {
    let inspect = super::open(&args.store).await?;
    if let (Some(kind), true) = (&args.kind, args.most.is_some() || args.remove) {
        inspect.set_limit(kind, args.most).await?;
    }
    let mut limits = inspect.limits().await?;
    limits.retain(|limit| args.kind.as_ref().is_none_or(|kind| limit.kind == *kind));
    if args.json {
        let shapes = limits.iter().map(|limit| LimitShape { kind: &limit.kind, most: limit.most });
        print_json(&Limits { limits: shapes.collect() })?;
        return Ok(Answer::Yes);
    }
    match (&args.kind, &limits[..]) {
        (None, []) => print("no kind has a limit\n")?,
        (None, limits) => {
            let mut table = Table::new(&["KIND", "#AT MOST"]);
            for limit in limits {
                table.row([limit.kind.clone(), limit.most.to_string()]);
            }
            table.print()?;
        }
        (Some(kind), []) => print(&format!("{} has no limit\n", visible(kind)))?,
        (Some(kind), [limit, ..]) => {
            let most = match limit.most {
                0 => "no task begins".to_owned(),
                1 => "one task runs at a time".to_owned(),
                most => format!("at most {most} tasks run at a time"),
            };
            print(&format!("{}: {most}\n", visible(kind)))?;
        }
    }
    Ok(Answer::Yes)
}
