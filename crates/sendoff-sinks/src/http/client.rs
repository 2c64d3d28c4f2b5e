//! The client that sends the requests.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy, redirect};
use rustls::ClientConfig;

use super::HttpConfig;
use super::endpoint::Endpoint;
use super::guard::{PublicOnly, check_literal};
use crate::tls::{self, Trust};

/// Shorter than receivers usually keep a connection that nobody uses: one that they are about to close is not used again.
const IDLE: Duration = Duration::from_secs(4);

/// What clients are made of.
pub(super) struct Clients {
    tls: ClientConfig,
    proxy: Option<Proxy>,
    is_guarded: bool,
}

impl Clients {
    /// # Errors
    /// What the configuration has that no client can be made of.
    pub(super) fn new(config: &HttpConfig, endpoints: &[&Endpoint]) -> Result<Self, String> {
        if !config.allow_private {
            for endpoint in endpoints {
                check_literal(endpoint.base()).map_err(|error| format!("{}: {error}", endpoint.server()))?;
            }
        }
        let proxy = config.proxy.as_deref().map(Proxy::all).transpose();
        // Not its text: it may repeat the URL.
        let proxy = proxy.map_err(|_| "its proxy's URL cannot be read; give http://host:3128")?;
        let needs_tls = endpoints.iter().any(|endpoint| endpoint.base().scheme() == "https");
        let is_secure_proxy = config.proxy.as_deref().is_some_and(|url| url.starts_with("https:"));
        let files = config.tls_files();
        let mut tls = match files.trust() {
            Trust::System if !needs_tls && !is_secure_proxy => tls::client(Trust::Nobody, files.identity()?)?,
            _ => files.client()?,
        };
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A proxy looks names up by itself; the one name that is looked up here is its own.
        let is_guarded = !config.allow_private && proxy.is_none();
        Ok(Self { tls, proxy, is_guarded })
    }

    /// A client with connections of its own.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn client(&self, timeout: Duration, keeps_connections: bool) -> Result<Client, String> {
        let mut builder = Client::builder()
            .user_agent(concat!("sendoff/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            // Neither where the environment says nor where an answer says.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .timeout(timeout)
            .connect_timeout(timeout)
            .http2_keep_alive_interval(timeout)
            .http2_keep_alive_timeout(timeout)
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(if keeps_connections { usize::MAX } else { 0 });
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(proxy.clone());
        }
        if self.is_guarded {
            builder = builder.dns_resolver(Arc::new(PublicOnly));
        }
        builder.build().map_err(|error| error.without_url().to_string())
    }
}
