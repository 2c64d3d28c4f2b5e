//! `sendoff parked`: the keys that wait.

use anyhow::Result;

use crate::args::ParkedArgs;
use crate::exit::Answer;
use crate::output::{Table, failure, moment, print, print_json};

/// Shows them.
pub(crate) async fn run(args: &ParkedArgs) -> Result<Answer> {
    let keys = super::open(&args.store).await?.parked_keys(&args.target, args.limit).await?;
    if args.json {
        print_json(&serde_json::json!({ "target": args.target, "keys": keys }))?;
        return Ok(Answer::Yes);
    }
    if keys.is_empty() {
        print(&format!("no key of target {:?} waits\n", args.target))?;
        return Ok(Answer::Yes);
    }
    let mut table = Table::new(&["KEY", "WHY", "#POSITION", "#BEHIND", "DUE", "ERROR"]);
    for key in &keys {
        table.row([
            key.key.clone().unwrap_or_else(|| "-".to_owned()),
            key.reason.word().to_owned(),
            key.position.to_string(),
            key.behind.to_string(),
            key.due_at.map_or_else(|| "when told to".to_owned(), moment),
            failure(key.failure.as_ref()),
        ]);
    }
    table.print()?;
    Ok(Answer::Yes)
}
