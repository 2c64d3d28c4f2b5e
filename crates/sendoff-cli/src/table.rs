//! A host's own outbox table, as the configuration maps it: opened for a relay or for an operator, checked, and given its table for claims.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use sendoff::adopted::{Adopted, Beside, Mapping, Misfit, Shadow, Targets};
use sendoff::outbox::{LaneSet, OnExhausted};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::{Pooler, PostgresDatabase};
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::{DEFAULT_TARGET, StoreError, StoreErrorKind};
use sendoff_relay::TargetConfig;

use crate::config::{Config, TableConfig};
use crate::exit::{Refused, refuse};
use crate::site::{Host, Site};

/// A host's table, with the targets that its rows are for.
#[derive(Debug, Clone)]
pub(crate) struct HostTable {
    config: Arc<TableConfig>,
    targets: Vec<String>,
}

/// Where its database is, opened once.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    Postgres(PostgresDatabase),
    Sqlite(SqliteDatabase),
    Mysql(MysqlDatabase),
}

/// The same for every database.
macro_rules! with {
    ($opened:expr, $database:ident => $do:expr) => {
        match $opened {
            Opened::Postgres($database) => $do,
            Opened::Sqlite($database) => $do,
            Opened::Mysql($database) => $do,
        }
    };
}

impl Opened {
    /// By the connections of the host, for somebody who only looks.
    pub(crate) async fn of_host(site: &Site) -> Result<Self> {
        Ok(match &site.host {
            Host::Postgres(pool) => {
                Self::Postgres(PostgresDatabase::from_pool(pool.clone(), Pooler::None).await?)
            }
            Host::Sqlite(pool) => Self::Sqlite(SqliteDatabase::from_pool(pool.clone()).await?),
            Host::Mysql(pool) => Self::Mysql(MysqlDatabase::from_pool(pool.clone()).await?),
        })
    }

    /// By connections of its own, for workers.
    pub(crate) async fn of_workers(site: &Site) -> Result<Self> {
        Ok(match &site.host {
            Host::Postgres(_) => Self::Postgres(PostgresDatabase::connect(&site.url).await?),
            Host::Sqlite(_) => Self::Sqlite(SqliteDatabase::connect(&site.url).await?),
            Host::Mysql(_) => Self::Mysql(MysqlDatabase::connect(&site.url).await?),
        })
    }

    async fn open(&self, mapping: Mapping, beside: Option<&Beside>) -> Result<Adopted, StoreError> {
        with!(self, database => match beside {
            Some(beside) => Adopted::beside(database, mapping, beside).await,
            None => Adopted::open(database, mapping).await,
        })
    }

    /// What keeps a mapping from fitting.
    pub(crate) async fn misfits(
        &self,
        mapping: &Mapping,
        beside: Option<&Beside>,
    ) -> Result<Vec<Misfit>, StoreError> {
        with!(self, database => Adopted::misfits(database, mapping, beside).await)
    }

    /// What would be delivered.
    pub(crate) async fn shadow(
        &self,
        mapping: &Mapping,
        beside: Option<&Beside>,
        first: u32,
        most: u64,
    ) -> Result<Shadow, StoreError> {
        with!(self, database => Adopted::shadow(database, mapping, beside, first, most).await)
    }
}

/// Whether the rows of a host's table can be served so.
pub(crate) fn serves(target: &TargetConfig) -> Result<(), String> {
    let name = &target.target;
    let wrong = [
        (target.lanes != LaneSet::ALL, "has no lanes to be limited to: leave out `lanes`"),
        (target.exclusive, "has no lanes that one relay could have alone: leave out `exclusive`"),
        (
            target.on_exhausted != OnExhausted::Skip,
            "skips what is given up: `on_exhausted` is \"skip\"; block and divert need sendoff's own tables",
        ),
    ];
    match wrong.iter().find(|(is_so, _)| *is_so) {
        Some((_, wrong)) => Err(format!("target {name:?}: [table] is claimed by rows, and {wrong}")),
        None => Ok(()),
    }
}

impl HostTable {
    /// The one that a configuration maps, with its targets.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let table = config.table.as_ref()?;
        Some(Self { config: Arc::new(table.clone()), targets: config.targets.keys().cloned().collect() })
    }

    /// For these targets.
    pub(crate) fn for_targets(&self, targets: &[&TargetConfig]) -> Result<Self> {
        for target in targets {
            serves(target).map_err(Refused)?;
        }
        let targets = targets.iter().map(|target| target.target.clone()).collect();
        Ok(Self { config: Arc::clone(&self.config), targets })
    }

    pub(crate) fn name(&self) -> &str {
        self.config.name()
    }

    /// The names of its targets; one that has none in its configuration has the usual.
    pub(crate) fn targets(&self) -> Result<Vec<String>> {
        match (self.targets.len(), self.config.has_target()) {
            (0, true) => {
                refuse!("[table] has its rows by target: give the configuration its [targets.NAME]")
            }
            (0, false) => Ok(vec![DEFAULT_TARGET.to_owned()]),
            (1, _) | (_, true) => Ok(self.targets.clone()),
            (_, false) => refuse!(
                "[table] does not say which target a row is for: name the column with `target`, or give one target only"
            ),
        }
    }

    pub(crate) fn mapped(&self) -> Result<(Mapping, Option<Beside>)> {
        Ok(self.config.mapped().map_err(Refused)?)
    }

    /// Opens it. What does not fit is refused with the statement that mends it.
    pub(crate) async fn open(&self, opened: &Opened) -> Result<Targets> {
        let (mapping, beside) = self.mapped()?;
        let mut rows = Vec::new();
        for target in self.targets()? {
            let of_target = mapping.clone().of_target(&target);
            match opened.open(of_target.clone(), beside.as_ref()).await {
                Ok(adopted) => rows.push((target, adopted)),
                Err(error) => return Err(refused(opened, error, &of_target, beside.as_ref()).await),
            }
        }
        Ok(Targets::new(self.name(), rows))
    }

    /// Makes the table beside it, if claims are kept there; whether they are.
    pub(crate) async fn migrate(&self, opened: &Opened) -> Result<bool> {
        let (mapping, Some(beside)) = self.mapped()? else { return Ok(false) };
        with!(opened, database => Adopted::make_beside(database, &mapping, &beside).await)
            .with_context(|| format!("{} could not be made", beside.table()))?;
        Ok(true)
    }

    /// How the table beside it is made, as SQL; none: claims are kept in it.
    pub(crate) async fn script(&self, opened: &Opened) -> Result<Option<String>> {
        let (mapping, Some(beside)) = self.mapped()? else { return Ok(None) };
        Ok(Some(with!(opened, database => Adopted::beside_script(database, &mapping, &beside).await)?))
    }

    /// Whether the table beside it is there, if one is needed.
    pub(crate) async fn is_ready(&self, opened: &Opened) -> Result<bool> {
        let (mapping, Some(beside)) = self.mapped()? else { return Ok(true) };
        Ok(with!(opened, database => Adopted::has_beside(database, &mapping, &beside).await)?)
    }
}

/// A mapping that does not fit is the configuration's fault; a table for claims that was not made yet is a migration that was not run.
async fn refused(
    opened: &Opened,
    error: StoreError,
    mapping: &Mapping,
    beside: Option<&Beside>,
) -> anyhow::Error {
    if error.kind() != StoreErrorKind::Schema {
        return anyhow::Error::from(error);
    }
    let is_unmade = match opened.misfits(mapping, beside).await.as_deref() {
        Ok([only]) => only.run.as_ref().is_some_and(|run| run.starts_with("CREATE TABLE")),
        _ => false,
    };
    match is_unmade {
        true => anyhow::Error::from(error)
            .context("the table for claims is not there (`sendoff migrate` makes it)"),
        false => anyhow::Error::new(Refused(error.to_string())),
    }
}
