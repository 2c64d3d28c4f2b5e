//! A function of this process.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Event, Sink};

use crate::in_turn::in_turn;

/// Hands events to a function, one after the other in each call. The relay's `concurrency` says how many calls run at a time. A panic is a failed try of the event that the function was given.
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
        in_turn(events, |claimed| async {
            // Not before this is polled: the function itself may panic, and not only its future.
            let call = async { (self.function)(claimed.event.clone()).await };
            let ended = AssertUnwindSafe(call).catch_unwind().await;
            ended.unwrap_or_else(|panic| Delivery::retry(format!("the handler panicked: {}", words(&*panic))))
        })
        .await
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::testkit::claimed;

    #[tokio::test]
    async fn a_panic_is_a_failed_try_of_its_event_alone() {
        let sink = Handler::new(|event: Event| {
            assert!(event.payload != b"before", "on purpose");
            async move {
                assert!(event.payload != b"within", "number {}", 2);
                Delivery::Delivered
            }
        });
        let events: Vec<Claimed> = [("a", "1"), ("b", "before"), ("c", "within"), ("b", "2"), ("d", "3")]
            .iter()
            .zip(1..)
            .map(|((key, payload), position)| claimed(position, Some(key), *payload))
            .collect();
        let failed = |text: &str| Delivery::retry(format!("the handler panicked: {text}"));
        let expected = [
            Delivery::Delivered,
            failed("on purpose"),
            failed("number 2"),
            Delivery::Untried,
            Delivery::Delivered,
        ];
        assert_eq!(sink.publish(&events).await, expected);
    }
}
