//! What the sink suite needs of a broker.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::sink::Sink;

/// An event as it came out of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The event id, wherever the broker has it.
    pub id: String,
    /// The key.
    pub key: Option<String>,
    /// The payload.
    pub payload: Vec<u8>,
    /// Everything beside it, by the names that the broker has them under.
    pub headers: BTreeMap<String, String>,
}

/// A sink, a broker of its own, and another way to look at what has come there.
pub trait SinkHarness: Send + Sync + 'static {
    /// A sink that delivers to this broker. Each call makes another one.
    fn sink(&self) -> Arc<dyn Sink> {
        self.sink_at(self.address())
    }

    /// The same, but the broker is reached at another address: that of a proxy which leads to it.
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink>;

    /// Where the broker listens.
    fn address(&self) -> SocketAddr;

    /// What has arrived so far, in the order of its arrival, read by a client that is not the sink's.
    fn received(&self) -> impl Future<Output = Vec<Received>> + Send;

    /// Ends the broker at once, as a crash does; what it has acknowledged survives if it promises that.
    fn kill(&self) -> impl Future<Output = ()> + Send;

    /// Starts it again at the same address, and returns when it can be used.
    fn restart(&self) -> impl Future<Output = ()> + Send;

    /// Holds the broker so that it takes connections and answers nothing, or lets it go on.
    fn freeze(&self, frozen: bool) -> impl Future<Output = ()> + Send;
}
