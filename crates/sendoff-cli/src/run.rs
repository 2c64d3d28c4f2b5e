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
    // Before it is said to run: who hears that may signal at once.
    let stop = stop_signal()?;
    eprintln!("relaying target {:?} to {}", args.target, args.sink);
    relay.run(stop).await?;
    for (target, figures) in handle.figures() {
        eprintln!("target {target:?}: {} published, {} given up", figures.published, figures.given_up);
    }
    Ok(())
}

fn sink(url: &str) -> Result<Arc<dyn Sink>> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    Ok(match scheme {
        "null" => Arc::new(Null),
        "stdout" => Arc::new(Stdout),
        "file" if !rest.is_empty() => Arc::new(File::new(FileConfig::new(rest))),
        "file" => bail!("a file sink needs a path: file:/var/log/events.jsonl"),
        // Only the scheme: the rest may have a password in it.
        other => bail!("{other:?} is no sink: give stdout:, null: or file:PATH"),
    })
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
