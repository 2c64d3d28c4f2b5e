//! The server of that sink, which can be killed and held, and asked what it has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Sink;
use sendoff::testkit::{Received, SinkHarness};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::sink::{LineConfig, LineSink};

/// What was taken, and whether answers are held back. Both survive a crash.
#[derive(Clone)]
struct Disk {
    received: Arc<Mutex<Vec<Received>>>,
    frozen: watch::Receiver<bool>,
}

pub(crate) struct Broker {
    address: SocketAddr,
    disk: Disk,
    freeze: watch::Sender<bool>,
    /// Its tasks: dropped, they end, and so do their connections.
    running: tokio::sync::Mutex<JoinSet<()>>,
}

impl Broker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (freeze, frozen) = watch::channel(false);
        let disk = Disk { received: Arc::default(), frozen };
        let broker = Self { address, disk, freeze, running: tokio::sync::Mutex::default() };
        broker.listen(listener).await;
        broker
    }

    async fn listen(&self, listener: TcpListener) {
        let disk = self.disk.clone();
        self.running.lock().await.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, disk.clone()));
            }
        });
    }
}

async fn serve(stream: TcpStream, mut disk: Disk) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if disk.frozen.wait_for(|frozen| !frozen).await.is_err() {
            return;
        }
        if line != "ping" {
            disk.received.lock().unwrap().push(received(&line));
        }
        if lines.get_mut().write_all(b"ok\n").await.is_err() {
            return;
        }
    }
}

fn received(line: &str) -> Received {
    let Value::Object(mut event) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
    let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    let payload = STANDARD.decode(text(event.remove("data_base64")).unwrap()).unwrap();
    let (id, key) = (text(event.remove("id")).unwrap(), text(event.remove("sendoffkey")));
    let own: BTreeMap<String, String> = serde_json::from_value(event.remove("headers").unwrap()).unwrap();
    let attributes = event.into_iter().map(|(name, value)| (name, text(Some(value)).unwrap()));
    Received { id, key, payload, headers: own.into_iter().chain(attributes).collect() }
}

impl SinkHarness for Broker {
    fn sink_at(&self, address: SocketAddr) -> Arc<dyn Sink> {
        Arc::new(LineSink::new(LineConfig { address, timeout: Duration::from_secs(2) }))
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    async fn received(&self) -> Vec<Received> {
        self.disk.received.lock().unwrap().clone()
    }

    async fn kill(&self) {
        self.running.lock().await.shutdown().await;
    }

    async fn restart(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.listen(listener).await;
    }

    async fn freeze(&self, frozen: bool) {
        self.freeze.send_replace(frozen);
    }
}
