//! Standard output.

use std::io::Write as _;

use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink};

use crate::json_line::json_line;

/// Prints each event as a line of JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stdout;

#[async_trait]
impl Sink for Stdout {
    fn capabilities(&self) -> Capabilities {
        Capabilities { keeps_order: true, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let text: Vec<u8> = events.iter().flat_map(json_line).collect();
        // A reader that is slow must not stop the relay's other work.
        let written = tokio::task::spawn_blocking(move || {
            let mut out = std::io::stdout().lock();
            out.write_all(&text).and_then(|()| out.flush())
        });
        let delivery = match written.await {
            Ok(Ok(())) => Delivery::Delivered,
            Ok(Err(error)) => Delivery::down(format!("standard output: {error}")),
            Err(error) => Delivery::down(format!("standard output: {error}")),
        };
        vec![delivery; events.len()]
    }
}
