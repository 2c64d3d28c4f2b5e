//! The one place where a sink is chosen by its URL.

use std::sync::Arc;

use anyhow::{Result, bail};
use sendoff::Sink;
use sendoff_sinks::{File, FileConfig, Null, Stdout};

/// The sinks that this program was built with, as they are given.
fn sinks() -> Vec<&'static str> {
    let mut sinks = vec!["stdout:", "null:", "file:PATH"];
    if cfg!(feature = "nats") {
        sinks.push("nats://HOST:PORT/STREAM");
    }
    if cfg!(feature = "redis") {
        sinks.push("redis://HOST:PORT/0");
    }
    sinks
}

/// The sink of a URL.
pub(crate) fn sink(url: &str) -> Result<Arc<dyn Sink>> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    Ok(match scheme {
        "null" => Arc::new(Null),
        "stdout" => Arc::new(Stdout),
        "file" if !rest.is_empty() => Arc::new(File::new(FileConfig::new(rest))),
        "file" => bail!("a file sink needs a path: file:/var/log/events.jsonl"),
        #[cfg(feature = "nats")]
        "nats" => nats(url)?,
        #[cfg(feature = "redis")]
        "redis" => Arc::new(sendoff_sinks::Redis::new(sendoff_sinks::RedisConfig::new(url))?),
        // Only the scheme: the rest may have a password in it.
        other => bail!("{other:?} is no sink: give {}", sinks().join(", ")),
    })
}

/// The path of the URL is the name of the stream; with `?create=SUBJECT,SUBJECT` it is made if it is not there.
#[cfg(feature = "nats")]
fn nats(url: &str) -> Result<Arc<dyn Sink>> {
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (server, stream) = url.trim_start_matches("nats://").split_once('/').unwrap_or((url, ""));
    if stream.is_empty() {
        bail!("a NATS sink needs the name of its stream: nats://HOST:PORT/STREAM");
    }
    let mut config = sendoff_sinks::NatsConfig::new(format!("nats://{server}"), stream);
    if !query.is_empty() {
        let Some(subjects) = query.strip_prefix("create=") else {
            bail!("a NATS sink has only ?create=SUBJECT,SUBJECT");
        };
        config.stream.create_for = subjects.split(',').map(str::to_owned).collect();
    }
    Ok(Arc::new(sendoff_sinks::Nats::new(config)))
}

/// A URL as people may see it: without user and password.
pub(crate) fn without_secret(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, server))) => format!("{scheme}://{server}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_secret("redis://user:p@ss@host:1/0"), "redis://host:1/0");
        assert_eq!(without_secret("redis://host:1/0"), "redis://host:1/0");
        assert_eq!(without_secret("file:/var/log/a@b.jsonl"), "file:/var/log/a@b.jsonl");
        assert_eq!(without_secret("stdout:"), "stdout:");
    }

    #[test]
    fn an_unknown_sink_is_refused_without_its_secrets() {
        let error = sink("ftp://user:s3cret@host").unwrap_err().to_string();
        assert!(error.starts_with("\"ftp\" is no sink: give stdout:, null:, file:PATH"), "{error}");
        assert!(!error.contains("s3cret"));
    }

    #[cfg(feature = "nats")]
    #[test]
    fn a_nats_sink_needs_a_stream() {
        let error = |url: &str| sink(url).unwrap_err().to_string();
        assert!(error("nats://host:4222").contains("needs the name of its stream"));
        assert!(error("nats://host:4222/s?make=x").contains("only ?create="));
        let made = format!("{:?}", sink("nats://host:4222/orders?create=orders.>,paid").unwrap());
        assert!(made.contains("orders.>") && made.contains("paid"), "{made}");
    }
}
