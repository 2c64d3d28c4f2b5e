//! How long to wait before a store that failed is asked again.

use std::time::Duration;

/// The pause before a store that failed is asked again: it grows, up to a second.
#[derive(Debug)]
pub(crate) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl Pause {
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(1));
    }
}
