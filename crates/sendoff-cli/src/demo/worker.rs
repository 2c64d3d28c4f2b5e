//! One worker process of the demo: a relay that delivers to the journal until its standard input ends.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use sendoff_relay::{Relay, RetryPolicy, TargetConfig};
use tokio::io::AsyncReadExt as _;

use super::journal::Journal;
use super::unfenced::Unfenced;
use crate::args::DemoWorkerArgs;
use crate::site::Site;

/// Short, so that a killed worker's lanes are seen to go over.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// A demo does not wait long.
const RETRY: Duration = Duration::from_millis(200);

pub(crate) async fn run(args: &DemoWorkerArgs) -> Result<()> {
    let site = Site::connect(&args.store, &args.names, 1).await?;
    let config = TargetConfig {
        name: args.name.clone(),
        lease: LEASE,
        batch: 50,
        window: 200,
        concurrency: 1,
        publish_timeout: LEASE,
        retry: RetryPolicy { base: RETRY, ..RetryPolicy::default() },
        ..TargetConfig::default()
    };
    let mut store = site.store().await?;
    if args.without_fence {
        store = Arc::new(Unfenced { store, inspect: site.inspect().await? });
    }
    let sink = Journal::open(&args.journal, args.slow_one_of)?;
    let relay = Relay::new(store).target(config, Arc::new(sink));
    println!("ready");
    std::io::stdout().flush()?;
    let input_ends = async {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    relay.run(input_ends).await?;
    Ok(())
}
