//! `sendoff schemas`: what `--json` prints, as JSON schemas. Made from the types that are printed.

use std::path::Path;

use anyhow::{Context as _, Result};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::{
    cancel, config, discard, enqueue, explain, inbox, lanes, list, migrate, parked, pause, purge, redrive,
    show, status, tasks, workers,
};
use crate::args::SchemasArgs;
use crate::exit::Answer;
use crate::{adopt, bench, demo, doctor};

/// Writes a file for each command.
pub(crate) fn run(args: &SchemasArgs) -> Result<Answer> {
    std::fs::create_dir_all(&args.directory).with_context(|| args.directory.display().to_string())?;
    for (name, schema) in all() {
        write(&args.directory.join(format!("{name}.json")), &schema)?;
    }
    Ok(Answer::Yes)
}

fn write(path: &Path, schema: &Schema) -> Result<()> {
    std::fs::write(path, text(schema)?).with_context(|| path.display().to_string())
}

fn text(schema: &Schema) -> Result<String> {
    Ok(serde_json::to_string_pretty(schema).context("JSON")? + "\n")
}

/// The schemas, by the commands that print so.
fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("adopt", of::<adopt::Adoption>()),
        ("bench", of::<bench::Report>()),
        ("cancel", of::<cancel::CancelShape>()),
        ("config-check", of::<config::Checked>()),
        ("demo", of::<demo::Verdict>()),
        ("discard", of::<discard::DiscardShape>()),
        ("doctor", of::<doctor::Report>()),
        ("enqueue", of::<enqueue::Written>()),
        ("explain", of::<explain::Explained>()),
        ("inbox-migrate", of::<migrate::Tables>()),
        ("inbox-purge", of::<purge::PurgeShape>()),
        ("inbox-stats", of::<inbox::StatsShape<'_>>()),
        ("lanes", of::<lanes::Lanes<'_>>()),
        ("list", of::<list::Page<'_>>()),
        ("migrate", of::<migrate::Tables>()),
        ("parked", of::<parked::Parked<'_>>()),
        ("pause", of::<pause::PauseShape<'_>>()),
        ("purge", of::<purge::PurgeShape>()),
        ("redrive", of::<redrive::RedriveShape>()),
        ("resume", of::<pause::PauseShape<'_>>()),
        ("show", of::<show::Shown<'_>>()),
        ("status", of::<status::Status<'_>>()),
        ("tasks-cancel", of::<tasks::change::Changed>()),
        ("tasks-limit", of::<tasks::limit::Limits<'_>>()),
        ("tasks-list", of::<tasks::list::TaskPage<'_>>()),
        ("tasks-migrate", of::<migrate::Tables>()),
        ("tasks-purge", of::<purge::PurgeShape>()),
        ("tasks-retry", of::<tasks::change::Changed>()),
        ("tasks-show", of::<tasks::show::TaskShown<'_>>()),
        ("tasks-stats", of::<tasks::stats::TaskStatsShape<'_>>()),
        ("workers", of::<workers::Workers<'_>>()),
    ]
}

/// As it is written, not as it would be read.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_files_are_what_the_types_say() {
        let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas"));
        if std::env::var_os("SENDOFF_UPDATE_SNAPSHOTS").is_some() {
            run(&SchemasArgs { directory: directory.to_owned() }).unwrap();
        }
        let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name());
        let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
        let names = all().iter().map(|(name, _)| format!("{name}.json")).collect();
        assert_eq!(files, names, "SENDOFF_UPDATE_SNAPSHOTS=1 writes them anew");
        for (name, schema) in all() {
            let known = std::fs::read_to_string(directory.join(format!("{name}.json"))).unwrap();
            assert_eq!(
                known,
                text(&schema).unwrap(),
                "{name}.json is old: SENDOFF_UPDATE_SNAPSHOTS=1 writes it anew"
            );
        }
    }

    #[test]
    fn every_command_with_json_has_a_schema() {
        let described = crate::args::described();
        let mut printing = BTreeSet::new();
        for command in described.get_subcommands() {
            let below: Vec<_> = command
                .get_subcommands()
                .map(|below| (format!("{}-{}", command.get_name(), below.get_name()), below))
                .collect();
            for (name, command) in below.into_iter().chain([(command.get_name().to_owned(), command)]) {
                if command.get_arguments().any(|argument| argument.get_long() == Some("json")) {
                    printing.insert(name);
                }
            }
        }
        let names: BTreeSet<String> = all().iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(printing, names);
    }
}
