//! The line to a server, plain or encrypted.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::server::Server;

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects; encrypted, if it is said how.
///
/// # Errors
/// Why not, and what to do.
pub(super) async fn connect(
    server: &Server,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<Box<dyn Stream>, String> {
    let stream = TcpStream::connect((server.host.as_str(), server.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let name = ServerName::try_from(server.host.clone())
        .map_err(|_| "its name is none that a certificate can have".to_owned())?;
    let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
    Ok(Box::new(connecting.map_err(untrusted)?))
}

pub(super) fn unreachable(error: io::Error) -> String {
    format!("{error}; is it running, and can it be reached from here?")
}

fn untrusted(error: io::Error) -> String {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => {
            format!("{error}; who signed its certificate can be given as `ca_file`")
        }
        Some(_) => format!("{error}; does it speak TLS there?"),
        None => unreachable(error),
    }
}
