//! A function of this process.

use std::fmt;

use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Event, Sink};

use crate::in_turn::in_turn;

/// Hands events to a function, one after the other in each call. The relay's `concurrency` says how many calls run at a time.
///
/// ```
/// use sendoff::{Delivery, Event};
/// use sendoff_sinks::Handler;
///
/// let sink = Handler::new(|event: Event| async move {
///     match send_mail(&event.payload).await {
///         Ok(()) => Delivery::Delivered,
///         Err(error) => Delivery::retry(error),
///     }
/// });
/// # async fn send_mail(_: &[u8]) -> Result<(), String> { Ok(()) }
/// ```
pub struct Handler<F> {
    function: F,
}

impl<F, Fut> Handler<F>
where
    F: Fn(Event) -> Fut + Send + Sync,
    Fut: Future<Output = Delivery> + Send,
{
    /// A sink of this function. It may be given the same event twice: it should know its id.
    pub fn new(function: F) -> Self {
        Self { function }
    }
}

impl<F> fmt::Debug for Handler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

#[async_trait]
impl<F, Fut> Sink for Handler<F>
where
    F: Fn(Event) -> Fut + Send + Sync,
    Fut: Future<Output = Delivery> + Send,
{
    fn capabilities(&self) -> Capabilities {
        // Few to a call, so that the calls can run side by side.
        Capabilities { events: 16, keeps_order: true, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        in_turn(events, |claimed| (self.function)(claimed.event.clone())).await
    }
}
