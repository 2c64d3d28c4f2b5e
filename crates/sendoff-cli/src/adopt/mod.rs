//! `sendoff adopt`: looks at a host's own outbox table, says what its columns mean and how sure that is, what is missing and how it is mended, and writes the
//! configuration. It changes nothing in the database.
//!
//! `look` asks the database, `propose` decides, `written` is the configuration, `report` what is shown.

mod look;
mod names;
mod propose;
mod report;
mod shadow;
mod written;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use sendoff::adopted::{Mapping, Misfit};
use sendoff::{DEFAULT_TARGET, StoreErrorKind};

use self::look::Looked;
use self::propose::Proposal;
pub(crate) use self::report::Adoption;
use crate::args::AdoptArgs;
use crate::config::{Config, TableConfig};
use crate::exit::{Answer, Refused, refuse};
use crate::place::Place;
use crate::site::Site;
use crate::table::Opened;

/// Looks at a table; no, if it cannot be adopted as it is.
pub(crate) async fn run(args: &AdoptArgs) -> Result<Answer> {
    if let Some(file) = args.write.as_deref().filter(|file| file.exists() && !args.force) {
        refuse!("{} is there already: --force writes over it", file.display());
    }
    let place = Place::of(&args.store)?;
    let site = Site::untouched_at(&place).await?;
    let adoption = match &args.table {
        Some(name) => proposed(args, &place, &site, name).await?,
        None => configured(args, &site).await?,
    };
    let answer = if adoption.is_possible() { Answer::Yes } else { Answer::No };
    adoption.show(args)?;
    Ok(answer)
}

/// A table that is looked at for the first time.
async fn proposed(args: &AdoptArgs, place: &Place, site: &Site, name: &str) -> Result<Adoption> {
    let looked = look::look(site, name).await?;
    let words = match propose::status(&looked).filter(|_| looked.rights.read) {
        Some(status) => look::words(site, &looked, &status.name).await?,
        None => Vec::new(),
    };
    let proposal = propose::propose(&looked, &words);
    let targets = targets(site, &looked, &proposal).await?;
    let mut adoption = Adoption::of(&looked, &proposal);
    if proposal.claims.is_none() {
        return Ok(adoption);
    }
    let text = proposal.written.text(name, &store_as_written(&place.url), &targets);
    let table = table_of(&text)?;
    let (mapping, beside) = table.mapped().map_err(Refused)?;
    let opened = Opened::of_host(site).await?;
    match opened.misfits(&of_one(&mapping, &targets), beside.as_ref()).await {
        Ok(misfits) => adoption.to_do = misfits,
        Err(error) if error.kind() == StoreErrorKind::Schema => {
            adoption.to_do = vec![Misfit { what: error.to_string(), run: None }];
        }
        Err(error) => return Err(error.into()),
    }
    if args.shadow {
        adoption.shadow = Some(shadow::look(&opened, &table, &targets, args).await?);
    }
    if let Some(file) = &args.write {
        write(file, &text, args.force)?;
    }
    adoption.config = Some(text);
    Ok(adoption)
}

/// The table that the configuration maps, as it does.
async fn configured(args: &AdoptArgs, site: &Site) -> Result<Adoption> {
    let config = args.store.config.as_deref().map(Config::read).transpose()?;
    let Some((table, config)) = config.as_ref().and_then(|config| Some((config.table.as_ref()?, config)))
    else {
        refuse!("which table? Give its name, or --config FILE with a [table]");
    };
    let looked = look::look(site, table.name()).await?;
    let (mapping, beside) = table.mapped().map_err(Refused)?;
    let opened = Opened::of_host(site).await?;
    let mut adoption = Adoption::of(&looked, &Proposal::default());
    adoption.is_configured = true;
    let targets: Vec<String> = config.targets.keys().cloned().collect();
    match opened.misfits(&of_one(&mapping, &targets), beside.as_ref()).await {
        Ok(misfits) => adoption.to_do = misfits,
        Err(error) if error.kind() == StoreErrorKind::Schema || error.kind() == StoreErrorKind::Rejected => {
            adoption.to_do = vec![Misfit { what: error.to_string(), run: None }];
        }
        // A role that may only read cannot ask for the plan of a claim; it can look all the same.
        Err(error) if args.shadow => {
            adoption.notes.push(format!("Whether the mapping fits could not be asked: {error}"))
        }
        Err(error) => return Err(error.into()),
    }
    if args.shadow {
        adoption.shadow = Some(shadow::look(&opened, table, &targets, args).await?);
    }
    Ok(adoption)
}

/// As the workers of a target claim: what they need of an index is the same for each.
fn of_one(mapping: &Mapping, targets: &[String]) -> Mapping {
    mapping.clone().of_target(targets.first().map_or(DEFAULT_TARGET, String::as_str))
}

/// The names of its targets: the values of the column that says it, or the usual one.
async fn targets(site: &Site, looked: &Looked, proposal: &Proposal) -> Result<Vec<String>> {
    let mut targets = match &proposal.target {
        Some(column) => look::words(site, looked, column).await?,
        None => Vec::new(),
    };
    targets.retain(|target| !target.is_empty());
    targets.sort();
    Ok(if targets.is_empty() { vec![DEFAULT_TARGET.to_owned()] } else { targets })
}

/// A file is named; what may have a password in it is not.
fn store_as_written(url: &str) -> String {
    match url.starts_with("sqlite:") {
        true => written::quoted(url),
        false => "{ env = \"SENDOFF_STORE\" }    # or { file = \"/run/secrets/database\" }".to_owned(),
    }
}

/// The table of a configuration, read as it would be.
fn table_of(text: &str) -> Result<TableConfig> {
    let table = Config::of_text(text).context("the configuration that was to be proposed")?.table;
    table.context("the configuration that was to be proposed has no [table]")
}

fn write(path: &Path, text: &str, force: bool) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| path.display().to_string())
}
