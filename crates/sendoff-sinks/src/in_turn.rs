//! Events one after the other, each key up to its first failure.

use std::collections::HashSet;

use sendoff::Delivery;
use sendoff::outbox::Claimed;

/// Publishes each event with `publish`, but none of a key after one that was not delivered, and none at all after the sink went down.
pub(crate) async fn in_turn<'a, F, Fut>(events: &'a [Claimed], mut publish: F) -> Vec<Delivery>
where
    F: FnMut(&'a Claimed) -> Fut,
    Fut: Future<Output = Delivery>,
{
    let mut stopped: HashSet<&str> = HashSet::new();
    let mut deliveries = Vec::with_capacity(events.len());
    for event in events {
        let key = event.event.key.as_deref();
        if key.is_some_and(|key| stopped.contains(key)) {
            deliveries.push(Delivery::Untried);
            continue;
        }
        let delivery = publish(event).await;
        if delivery != Delivery::Delivered {
            stopped.extend(key);
        }
        let is_down = matches!(delivery, Delivery::Down { .. });
        deliveries.push(delivery);
        if is_down {
            break;
        }
    }
    deliveries
}
