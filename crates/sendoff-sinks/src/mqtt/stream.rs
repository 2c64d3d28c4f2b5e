//! The line to a server, plain or encrypted.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::server::Server;
use crate::tls;
use crate::unusable::{REACHED, Unusable};

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects; encrypted, if it is said how.
///
/// # Errors
/// Why not, and what to do.
pub(super) async fn connect(
    server: &Server,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Box<dyn Stream>, Unusable> {
    let stream = TcpStream::connect((server.host.as_str(), server.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    Ok(Box::new(tls::encrypt(stream, &server.host, tls).await?))
}

pub(super) fn unreachable(error: io::Error) -> Unusable {
    match tls::hint(&error) {
        Some(hint) => Unusable::Wrong(format!("{error}{hint}")),
        None => Unusable::Away(format!("{error}{REACHED}")),
    }
}
