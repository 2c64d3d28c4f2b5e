//! Where an outbox is: as the command line says, or its configuration.

use anyhow::Result;

use crate::args::StoreArgs;
use crate::config::{Config, StoreConfig};
use crate::exit::refuse;
use crate::site::Settling;
use crate::table::HostTable;

/// Where an outbox is.
#[derive(Clone)]
pub(crate) struct Place {
    /// What it is called, where there are several.
    pub(crate) name: Option<String>,
    pub(crate) url: String,
    /// What its tables are called, if somebody says.
    pub(crate) names: Option<String>,
    /// The host's own table whose rows are meant, and not sendoff's own tables.
    pub(crate) table: Option<HostTable>,
    /// Hear of commits that the host announces.
    pub(crate) listen: bool,
    /// Settlements do not wait for the disk.
    pub(crate) settle_asynchronously: bool,
}

impl Place {
    /// The one outbox that a command is about.
    pub(crate) fn of(args: &StoreArgs) -> Result<Self> {
        let config = args.config.as_deref().map(Config::read).transpose()?;
        let mut places = Self::all(args, config.as_ref())?;
        match (places.pop(), places.is_empty()) {
            (Some(place), true) => Ok(place),
            (Some(last), false) => {
                let names: Vec<String> =
                    places.into_iter().chain([last]).filter_map(|place| place.name).collect();
                refuse!(
                    "the configuration has several stores: say which with --store {}",
                    names.join(", --store ")
                )
            }
            (None, _) => refuse!("the configuration has no store"),
        }
    }

    /// All outboxes that are meant.
    pub(crate) fn all(args: &StoreArgs, config: Option<&Config>) -> Result<Vec<Self>> {
        let with_names = |place: Self| Self { names: args.names.clone().or(place.names), ..place };
        // A name has no colon, and every URL has.
        let wanted = args.store.as_deref();
        if let Some(url) = wanted.filter(|text| text.contains(':') || config.is_none()) {
            let place = Self {
                name: None,
                url: url.to_owned(),
                names: None,
                table: config.and_then(HostTable::of),
                listen: false,
                settle_asynchronously: false,
            };
            return Ok(vec![with_names(place)]);
        }
        let Some(config) = config else {
            refuse!("which outbox? Give --store URL, or --config FILE (or SENDOFF_STORE, SENDOFF_CONFIG)");
        };
        let mut places = Vec::new();
        let mut known = Vec::new();
        for (name, store) in config.outboxes()? {
            known.extend(name);
            if wanted.is_none_or(|wanted| name == Some(wanted)) {
                let table = HostTable::of(config);
                places.push(with_names(Self { table, ..Self::configured(name, store)? }));
            }
        }
        if places.is_empty() {
            refuse!(
                "there is no store {:?} in the configuration; it has {}",
                wanted.unwrap_or_default(),
                known.join(", ")
            );
        }
        Ok(places)
    }

    fn configured(name: Option<&str>, store: &StoreConfig) -> Result<Self> {
        let key = name.map_or_else(|| "store.url".to_owned(), |name| format!("stores.{name}.url"));
        let url = store.url.read(&key)?;
        Settling { is_asynchronous: store.settle_asynchronously, ..Settling::default() }.check(&url)?;
        Ok(Self {
            name: name.map(str::to_owned),
            url,
            names: store.names.clone(),
            table: None,
            listen: store.listen,
            settle_asynchronously: store.settle_asynchronously,
        })
    }
}
