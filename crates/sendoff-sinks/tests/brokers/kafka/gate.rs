//! A gate in front of a line to a broker, so that every connection goes through that line: a client of Kafka connects to where the brokers say that they are, which is changed
//! in their answers to where the gate is.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A gate to this line, behind which there is a broker that says it is at `broker`.
pub(crate) fn open(line: SocketAddr, broker: SocketAddr) -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let gate = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(connect(client, line, said(broker), said(gate)));
        }
    });
    gate
}

/// An address as it stands in an answer: the host, then the port.
fn said(address: SocketAddr) -> Vec<u8> {
    let mut bytes = address.ip().to_string().into_bytes();
    bytes.extend(u32::from(address.port()).to_be_bytes());
    bytes
}

async fn connect(client: TcpStream, line: SocketAddr, from: Vec<u8>, to: Vec<u8>) -> io::Result<()> {
    let server = TcpStream::connect(line).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((mut from_client, to_client), (from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        ended = tokio::io::copy(&mut from_client, &mut to_server) => ended.map(|_| ()),
        ended = answers(from_server, to_client, &from, &to) => ended,
    }
}

/// Answers one by one: each has its length in front.
async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    from: &[u8],
    to: &[u8],
) -> io::Result<()> {
    loop {
        let length = server.read_u32().await?;
        let mut answer = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        server.read_exact(&mut answer).await?;
        let mut at = 0;
        while let Some(found) = answer[at..].windows(from.len()).position(|bytes| bytes == from) {
            answer[at + found..at + found + to.len()].copy_from_slice(to);
            at += found + to.len();
        }
        client.write_u32(length).await?;
        client.write_all(&answer).await?;
    }
}
