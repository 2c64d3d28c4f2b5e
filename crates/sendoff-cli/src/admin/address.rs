//! Where the admin listener is, and who may read what it says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;

use crate::config::AdminConfig;
use crate::exit::refuse;

/// Where the admin listener is, and who may read what it says.
pub(crate) struct Address {
    listen: SocketAddr,
    /// Who shows it may read the figures. None: everybody on this machine.
    pub(crate) token: Option<String>,
}

impl Address {
    /// As the configuration says, and the command line over it. None: nobody asks for it.
    ///
    /// # Errors
    /// A listener for other machines without a token.
    pub(crate) fn of(config: &AdminConfig, flag: Option<SocketAddr>) -> Result<Option<Self>> {
        let Some(listen) = flag.or(config.listen) else { return Ok(None) };
        let token = config.token.as_ref().map(|token| token.read("admin.token")).transpose()?;
        if token.as_ref().is_some_and(String::is_empty) {
            refuse!("`admin.token` is empty: leave it out, or give one");
        }
        if token.is_none() && !listen.ip().is_loopback() {
            refuse!(
                "{listen} can be reached from other machines: give `admin.token`, which a reader of the figures has to show, or listen on 127.0.0.1"
            );
        }
        Ok(Some(Self { listen, token }))
    }

    /// Listens.
    pub(crate) async fn bind(&self) -> Result<TcpListener> {
        TcpListener::bind(self.listen).await.with_context(|| format!("the admin listener on {}", self.listen))
    }
}

/// Where a program on this machine finds a listener.
pub(crate) fn from_here(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
