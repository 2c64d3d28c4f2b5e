//! `sendoff migrate`: the outbox's tables.

use anyhow::Result;

use crate::args::MigrateArgs;
use crate::exit::Answer;
use crate::output::print;
use crate::site::Site;

/// Makes them, prints how, or says whether they are as they must be.
pub(crate) async fn run(args: &MigrateArgs) -> Result<Answer> {
    if args.check {
        Site::of(&args.store).await?.inspect().await?;
        print("the outbox's tables are as this program needs them\n")?;
    } else if args.print {
        print(&Site::of_new(&args.store).await?.script().await?)?;
    } else {
        Site::of_new(&args.store).await?.migrate().await?;
    }
    Ok(Answer::Yes)
}
