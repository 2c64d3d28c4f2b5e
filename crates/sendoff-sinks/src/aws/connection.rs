//! How AWS is reached: the client, its credentials and its region.

use std::fmt;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use tokio::sync::Mutex;

use super::publisher::Service;
use super::sdk::config::SharedHttpClient;
use crate::secret::{self, Secret};

/// A request is tried so often: an idle connection is closed by AWS without further ado, which shows with the next request only.
const TRIES: u32 = 2;

/// Before the second.
const PAUSE: Duration = Duration::from_millis(50);

/// How AWS is reached.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) endpoint_url: Option<String>,
    pub(super) region: Option<String>,
    pub(super) credentials: Option<Credentials>,
    pub(super) timeout: Duration,
}

impl Settings {
    /// Where requests go, for people.
    pub(super) fn place(&self) -> String {
        match (&self.endpoint_url, &self.region) {
            (Some(url), _) => without_password(url),
            (None, Some(region)) => format!("AWS in {region}"),
            (None, None) => "AWS".to_owned(),
        }
    }
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "an endpoint whose URL cannot be read".to_owned();
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}")
}

/// Given by hand.
#[derive(Debug, Clone)]
pub(super) struct Credentials {
    key_id: String,
    secret: Secret,
    token: Option<Secret>,
}

impl Credentials {
    /// # Errors
    /// One is of no use without the other.
    pub(super) fn new(
        key_id: Option<String>,
        secret: Option<Secret>,
        token: Option<Secret>,
    ) -> Result<Option<Self>, String> {
        match (key_id, secret) {
            (Some(key_id), Some(secret)) => Ok(Some(Self { key_id, secret, token })),
            (None, None) if token.is_none() => Ok(None),
            _ => Err("give `access_key_id` and `secret_access_key`, or neither".to_owned()),
        }
    }
}

/// The client of a service, made when it is needed.
pub(super) struct Connection<S> {
    settings: Settings,
    held: Mutex<Held<S>>,
}

struct Held<S> {
    /// It has the credentials, which are kept as long as they are valid.
    config: Option<SdkConfig>,
    client: Option<S>,
}

impl<S> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("region", &self.settings.region).finish_non_exhaustive()
    }
}

impl<S: Service> Connection<S> {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, held: Mutex::new(Held { config: None, client: None }) }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The client: the one there is, or one with new connections.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub(super) async fn client(&self) -> Result<S, String> {
        let mut held = self.held.lock().await;
        if let Some(client) = &held.client {
            return Ok(client.clone());
        }
        let config = match held.config.take() {
            Some(config) => config.into_builder().http_client(connections()).build(),
            None => self.load().await?,
        };
        let client = S::open(&config);
        *held = Held { config: Some(config), client: Some(client.clone()) };
        Ok(client)
    }

    /// Lets go of connections that cannot be trusted any more.
    pub(super) async fn disconnect(&self) {
        self.held.lock().await.client = None;
    }

    /// Lets go of the credentials too.
    pub(super) async fn forget(&self) {
        *self.held.lock().await = Held { config: None, client: None };
    }

    /// What the settings do not say is looked for in the environment.
    async fn load(&self) -> Result<SdkConfig, String> {
        let Settings { endpoint_url, region, credentials, timeout } = &self.settings;
        let timeouts = TimeoutConfig::builder().connect_timeout(*timeout).operation_timeout(*timeout);
        let retries = RetryConfig::standard()
            .with_max_attempts(TRIES)
            .with_initial_backoff(PAUSE)
            .with_max_backoff(PAUSE);
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(connections())
            .timeout_config(timeouts.build())
            .retry_config(retries);
        if let Some(url) = endpoint_url {
            loader = loader.endpoint_url(url);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(Credentials { key_id, secret, token }) = credentials {
            let secret = secret.read("secret_access_key")?;
            let token = secret::read(token.as_ref(), "session_token")?;
            let given = super::sdk::config::Credentials::new(key_id, secret, token, None, "sendoff");
            loader = loader.credentials_provider(given);
        }
        let config = tokio::time::timeout(*timeout, loader.load()).await.ok();
        config
            .filter(|config| config.region().is_some())
            .ok_or_else(|| "no region is known: give `region`, or set AWS_REGION".to_owned())
    }
}

/// Over TLS as everywhere in this program, by ring.
fn connections() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_id_goes_with_its_secret() {
        let (key_id, secret) = (Some("a".to_owned()), Some(Secret::Plain("s3cret".to_owned())));
        assert!(Credentials::new(None, None, None).unwrap().is_none());
        assert!(Credentials::new(key_id.clone(), secret.clone(), None).unwrap().is_some());
        for (key_id, secret, token) in
            [(key_id, None, None), (None, secret.clone(), None), (None, None, secret)]
        {
            let error = Credentials::new(key_id, secret, token).unwrap_err();
            assert!(error.contains("secret_access_key") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("http://127.0.0.1:4566", "http://127.0.0.1:4566"),
            ("https://user:s3cret@host:1/path", "https://host:1"),
            ("user:s3cret@host", "an endpoint whose URL cannot be read"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
