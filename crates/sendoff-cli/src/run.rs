//! `sendoff run`: the relay as a program.

use anyhow::{Context as _, Result};
use sendoff_relay::{Relay, TargetConfig};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::RunArgs;
use crate::site::Site;
use crate::wire;

/// A second signal ends it at once, with this.
const INTERRUPTED: i32 = 130;

/// Relays until it is told to stop.
pub(crate) async fn run(args: &RunArgs) -> Result<()> {
    let site = Site::of(&args.store).await?;
    let sink = wire::sink(&args.sink)?;
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
    let repeats = config.repeats(&sink.capabilities());
    let relay = Relay::new(store).target(config, sink);
    let handle = relay.handle();
    let _listening = match args.listen {
        true => Some(site.listen(handle.bell()).await?),
        false => None,
    };
    // Before it is said to run: who hears that may signal at once.
    let stop = stop_signal()?;
    eprintln!("relaying target {:?} to {}", args.target, wire::without_secret(&args.sink));
    eprintln!("{repeats}");
    relay.run(stop).await?;
    for (target, figures) in handle.figures() {
        eprintln!("target {target:?}: {} published, {} given up", figures.published, figures.given_up);
    }
    Ok(())
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
