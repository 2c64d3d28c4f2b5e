//! `sendoff man` and `sendoff completions`: from the same source as `--help`.

use anyhow::{Context as _, Result};

use crate::args::{CompletionsArgs, ManArgs, described};
use crate::exit::Answer;
use crate::output::print;

/// A page for the program and one for each command.
pub(crate) fn run(args: &ManArgs) -> Result<Answer> {
    match &args.directory {
        Some(directory) => {
            std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
            clap_mangen::generate_to(described(), directory)
                .with_context(|| directory.display().to_string())?;
        }
        None => print(&page(described())?)?,
    }
    Ok(Answer::Yes)
}

/// What the shell reads.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Answer> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut described(), "sendoff", &mut text);
    print(&String::from_utf8(text)?)?;
    Ok(Answer::Yes)
}

fn page(command: clap::Command) -> Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(String::from_utf8(text)?)
}
