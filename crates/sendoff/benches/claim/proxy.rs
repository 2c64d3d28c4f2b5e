//! A proxy on loopback that counts trips: how often the client speaks after the server has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Default)]
pub(crate) struct Proxy {
    trips: Arc<AtomicU32>,
    bytes: Arc<AtomicU64>,
}

impl Proxy {
    /// A proxy before the server of this URL, and the URL that leads through it.
    pub(crate) async fn before(url: &str) -> (Self, String) {
        let (head, tail) = url.rsplit_once(':').unwrap();
        let (port, path) = tail.split_once('/').unwrap();
        let server: u16 = port.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let proxy = Self::default();
        let counting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counting.connect(client, server).await;
            }
        });
        (proxy, format!("{head}:{own}/{path}"))
    }

    async fn connect(&self, client: TcpStream, server: u16) {
        let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        // The server has had its say; what the client sends now begins a trip.
        let answered = Arc::new(AtomicBool::new(true));
        let (proxy, asked) = (self.clone(), Arc::clone(&answered));
        tokio::spawn(async move {
            let on_bytes = || {
                if asked.swap(false, Ordering::SeqCst) {
                    proxy.trips.fetch_add(1, Ordering::SeqCst);
                }
            };
            copy(from_client, to_server, &proxy.bytes, on_bytes).await;
        });
        let proxy = self.clone();
        tokio::spawn(async move {
            copy(from_server, to_client, &proxy.bytes, || answered.store(true, Ordering::SeqCst)).await;
        });
    }

    pub(crate) fn trips(&self) -> u32 {
        self.trips.load(Ordering::SeqCst)
    }

    /// Waits until nothing has passed for a while.
    pub(crate) async fn quiet(&self) {
        loop {
            let before = self.bytes.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.bytes.load(Ordering::SeqCst) == before {
                return;
            }
        }
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, bytes: &AtomicU64, on_bytes: impl Fn()) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        on_bytes();
        bytes.fetch_add(count as u64, Ordering::SeqCst);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
