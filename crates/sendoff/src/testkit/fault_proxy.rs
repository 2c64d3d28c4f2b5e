//! A line to a server that can be cut, held and slowed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the line is.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// Connections of an earlier number are cut.
    number: u64,
    /// Nobody is there.
    is_shut: bool,
    /// Nothing gets through, either way.
    is_held: bool,
    /// Whatever gets through takes so long.
    delay: Duration,
}

/// A proxy on the loopback that leads to one server. Connections end with it.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// A line to this server, without faults.
    ///
    /// # Errors
    /// No port is to be had.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (line, watched) = watch::channel(Line::default());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !watched.borrow().is_shut {
                    tokio::spawn(connect(client, server, watched.clone()));
                }
            }
        });
        Ok(Self { address, line, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection there is. New ones are taken.
    pub fn cut(&self) {
        self.line.send_modify(|line| line.number += 1);
    }

    /// As if the server had ended: every connection ends, and so does each new one until this is called again.
    pub fn shut(&self, is_shut: bool) {
        self.line.send_modify(|line| line.is_shut = is_shut);
        if is_shut {
            self.cut();
        }
    }

    /// A black hole: connections are taken and stay, and nothing gets through until this is called again.
    pub fn hold(&self, is_held: bool) {
        self.line.send_modify(|line| line.is_held = is_held);
    }

    /// Whatever is sent takes this much longer.
    pub fn slow(&self, delay: Duration) {
        self.line.send_modify(|line| line.delay = delay);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

/// One connection, until it ends or is cut.
async fn connect(client: TcpStream, server: SocketAddr, mut line: watch::Receiver<Line>) {
    let number = line.borrow().number;
    let (there, back) = (line.clone(), line.clone());
    let connected = async {
        until_free(&mut there.clone()).await;
        let upstream = TcpStream::connect(server).await?;
        client.set_nodelay(true)?;
        upstream.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) =
            (client.into_split(), upstream.into_split());
        tokio::select! {
            ended = pump(from_client, to_server, there) => ended,
            ended = pump(from_server, to_client, back) => ended,
        }
    };
    let cut = line.wait_for(|line| line.number != number);
    tokio::select! {
        _ = connected => {}
        _ = cut => {}
    }
}

/// Passes on what comes, as the line is at that time.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let delay = line.borrow().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        until_free(&mut line).await;
        to.write_all(&buffer[..count]).await?;
    }
}

async fn until_free(line: &mut watch::Receiver<Line>) {
    // It has gone when its proxy has, and then so has this.
    let _ = line.wait_for(|line| !line.is_held).await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A server that sends back what it gets.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = client.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        address
    }

    async fn ask(stream: &mut TcpStream) -> io::Result<u8> {
        stream.write_all(b"x").await?;
        stream.read_u8().await
    }

    #[tokio::test]
    async fn a_line_is_held_slowed_and_cut() {
        let proxy = FaultProxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await.unwrap(), b'x');
        proxy.hold(true);
        let held = tokio::time::timeout(Duration::from_millis(50), ask(&mut stream)).await;
        assert!(held.is_err(), "nothing gets through");
        proxy.hold(false);
        assert_eq!(stream.read_u8().await.unwrap(), b'x', "it was held, not lost");
        proxy.slow(Duration::from_millis(30));
        let began = Instant::now();
        assert_eq!(ask(&mut stream).await.unwrap(), b'x');
        assert!(began.elapsed() >= Duration::from_millis(60), "there and back");
        proxy.slow(Duration::ZERO);
        proxy.cut();
        assert!(ask(&mut stream).await.is_err(), "it is cut");
        proxy.shut(true);
        let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(ask(&mut refused).await.is_err(), "nobody is there");
        proxy.shut(false);
        let mut again = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(ask(&mut again).await.unwrap(), b'x');
    }
}
