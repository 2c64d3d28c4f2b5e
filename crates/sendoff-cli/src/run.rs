//! `sendoff run` and `sendoff migrate`: the relay as a program.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use sendoff::Sink;
use sendoff_relay::{Relay, TargetConfig};
use sendoff_sinks::{File, FileConfig, Null, Stdout};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{MigrateArgs, RunArgs};
use crate::site::Site;

/// A second signal ends it at once, with this.
const INTERRUPTED: i32 = 130;

/// Makes the outbox's tables.
pub(crate) async fn migrate(args: &MigrateArgs) -> Result<()> {
    Site::connect_usual(&args.store).await?.migrate().await
}

/// Relays until it is told to stop.
pub(crate) async fn run(args: &RunArgs) -> Result<()> {
    let site = Site::connect_usual(&args.store).await?;
    let sink = sink(&args.sink)?;
    sink.check().await?;
    let config = TargetConfig {
        target: args.target.clone(),
        name: args.name.clone(),
        lease: args.lease.into(),
        workers: args.workers.into(),
        ..TargetConfig::default()
    };
    let store =
        site.store().await.context("the outbox could not be opened (`sendoff migrate` makes its tables)")?;
    let relay = Relay::new(store).target(config, sink);
    let handle = relay.handle();
    let _listening = match args.listen {
        true => Some(site.listen(handle.bell()).await?),
        false => None,
    };
    // Before it is said to run: who hears that may signal at once.
    let stop = stop_signal()?;
    eprintln!("relaying target {:?} to {}", args.target, without_secret(&args.sink));
    relay.run(stop).await?;
    for (target, figures) in handle.figures() {
        eprintln!("target {target:?}: {} published, {} given up", figures.published, figures.given_up);
    }
    Ok(())
}

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

fn sink(url: &str) -> Result<Arc<dyn Sink>> {
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

/// The path of the URL is the name of the stream.
#[cfg(feature = "nats")]
fn nats(url: &str) -> Result<Arc<dyn Sink>> {
    let (server, stream) = url.trim_start_matches("nats://").split_once('/').unwrap_or((url, ""));
    if stream.is_empty() {
        bail!("a NATS sink needs the name of its stream: nats://HOST:PORT/STREAM");
    }
    let config = sendoff_sinks::NatsConfig::new(format!("nats://{server}"), stream);
    Ok(Arc::new(sendoff_sinks::Nats::new(config)))
}

/// A URL as people may see it: without user and password.
fn without_secret(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, server))) => format!("{scheme}://{server}"),
        _ => url.to_owned(),
    }
}

/// Ready with the first SIGTERM or SIGINT. The second ends the process.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let (first, stopped) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            match first.take() {
                Some(first) => {
                    eprintln!("stopping: finishing what is in flight; a second signal quits at once");
                    let _ = first.send(());
                }
                None => std::process::exit(INTERRUPTED),
            }
        }
    });
    Ok(async { stopped.await.unwrap_or_default() })
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
}
