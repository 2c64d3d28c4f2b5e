//! `sendoff workers`: who is registered.

use anyhow::Result;

use crate::args::WorkersArgs;
use crate::exit::Answer;
use crate::output::{Table, moment, print, print_json};

/// Shows them.
pub(crate) async fn run(args: &WorkersArgs) -> Result<Answer> {
    let workers = super::open(&args.store).await?.workers().await?;
    if args.json {
        print_json(&serde_json::json!({ "workers": workers }))?;
        return Ok(Answer::Yes);
    }
    if workers.is_empty() {
        print("no worker is there: `sendoff run` starts one\n")?;
        return Ok(Answer::Yes);
    }
    let mut table = Table::new(&["TARGET", "NAME", "WORKER", "#LANES", "STARTED", "LEASED UNTIL", ""]);
    for worker in &workers {
        table.row([
            worker.target.clone(),
            worker.name.clone(),
            worker.worker.to_string(),
            worker.lanes.to_string(),
            moment(worker.started_at),
            moment(worker.lease_until),
            if worker.expired { "lost".to_owned() } else { String::new() },
        ]);
    }
    table.print()?;
    Ok(Answer::Yes)
}
