//! Every test server there is. To add one, write its file and name it in [`ALL`].

mod faketime;
mod fauxqs;
mod galera;
mod kafka;
mod mariadb;
mod mariadb_node;
mod mosquitto;
mod nats;
mod pgbouncer;
mod postgres15;
mod postgres18;
mod postgres_cluster;
mod python;
mod rabbitmq;
mod redis;
mod tansu;

use anyhow::{Context, Result};

use crate::server::Server;

/// All of them, a server after the one it stands in front of.
pub(crate) static ALL: [&dyn Server; 13] = [
    &postgres15::Postgres15,
    &postgres18::Postgres18,
    &mariadb::MariaDb,
    &galera::Galera,
    &pgbouncer::PgBouncer,
    &faketime::FakeTime,
    &python::Python,
    &redis::Redis,
    &nats::Nats,
    &rabbitmq::RabbitMq,
    &mosquitto::Mosquitto,
    &fauxqs::Fauxqs,
    &kafka::Kafka,
];

/// Those that take so long to be had that only `--with` brings them.
pub(crate) static ON_REQUEST: [&dyn Server; 1] = [&tansu::Tansu];

/// Those without which not everything can be built, whatever is tested against.
pub(crate) static TO_BUILD: [&dyn Server; 1] = [&kafka::Kafka];

/// The names that `--only` takes.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|server| server.name()).collect()
}

/// The names that `--with` takes.
pub(crate) fn names_on_request() -> Vec<&'static str> {
    ON_REQUEST.iter().map(|server| server.name()).collect()
}

/// The named servers, or all when none is named, with the servers they stand in front of added, and those on request.
pub(crate) fn select(only: &[String], with: &[String]) -> Result<Vec<&'static dyn Server>> {
    let mut wanted: Vec<&str> = only.iter().map(String::as_str).collect();
    for name in only {
        let server = ALL
            .iter()
            .find(|server| server.name() == name)
            .with_context(|| format!("there is no server called {name}; there are {}", names().join(", ")))?;
        wanted.extend(server.upstream());
    }
    let requested = ON_REQUEST.into_iter().filter(|server| with.iter().any(|name| name == server.name()));
    let requested: Vec<&'static dyn Server> = requested.collect();
    if !only.is_empty() {
        wanted.extend(requested.iter().filter_map(|server| server.upstream()));
    }
    let selected = ALL.into_iter().filter(|server| wanted.is_empty() || wanted.contains(&server.name()));
    Ok(selected.chain(requested).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(only: &[&str]) -> Vec<&'static str> {
        let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
        select(&only, &[]).unwrap().iter().map(|server| server.name()).collect()
    }

    #[test]
    fn no_name_means_all() {
        assert_eq!(selected(&[]), names());
    }

    #[test]
    fn a_server_brings_along_the_one_it_stands_in_front_of() {
        assert_eq!(selected(&["pgbouncer", "mariadb"]), ["postgres15", "mariadb", "pgbouncer"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let Err(error) = select(&["oracle".to_owned()], &[]) else { panic!("oracle was accepted") };
        assert!(error.to_string().contains("postgres15, postgres18"));
    }

    #[test]
    fn what_takes_long_comes_on_request_and_with_what_it_needs() {
        assert!(!names().contains(&"tansu"));
        let selected = select(&["mariadb".to_owned()], &["tansu".to_owned()]).unwrap();
        let names: Vec<&str> = selected.iter().map(|server| server.name()).collect();
        assert_eq!(names, ["mariadb", "kafka", "tansu"]);
    }

    #[test]
    fn every_server_has_upstream_an_earlier_one() {
        for (index, server) in ALL.iter().enumerate() {
            if let Some(before) = server.upstream() {
                assert!(names()[..index].contains(&before), "{} must come after {before}", server.name());
            }
        }
    }
}
