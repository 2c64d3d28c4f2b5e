//! Where a server is, and how it is come to.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo as _,
    RedisConnectionInfo, RedisError,
};
use tokio::net::TcpStream;

use super::RedisConfig;
use crate::unusable::{REACHED, Unusable};
use crate::{secret, tls};

#[derive(Debug)]
pub(super) struct Server {
    /// Host and port, for people.
    pub(super) name: String,
    info: ConnectionInfo,
    /// Host and port of one that is spoken to encrypted.
    encrypted: Option<(String, u16)>,
}

impl Server {
    /// # Errors
    /// A URL that is none, and certificates that cannot be read.
    pub(super) fn new(config: &RedisConfig) -> Result<Self, String> {
        // The encryption is not the client's.
        let (url, is_encrypted) = match config.url.trim().split_once("s://") {
            Some((scheme @ ("redis" | "valkey"), rest)) => (format!("{scheme}://{rest}"), true),
            _ => (config.url.clone(), false),
        };
        // Not its text: it may repeat the URL.
        let unread = |_| "its URL cannot be read; give redis://host:6379/0".to_owned();
        let info = url.into_connection_info().map_err(unread)?;
        let files = config.tls_files();
        if is_encrypted {
            files.client().map(drop)?
        } else {
            files.check_unused("rediss")?
        }
        let encrypted = match info.addr() {
            ConnectionAddr::Tcp(host, port) if is_encrypted => Some((host.clone(), *port)),
            _ => None,
        };
        Ok(Self { name: info.addr().to_string(), info, encrypted })
    }

    /// A new connection.
    pub(super) async fn open(&self, config: &RedisConfig) -> Result<MultiplexedConnection, Fault> {
        let info = self.info.clone().set_redis_settings(self.login(config)?);
        let timeout = Some(config.timeout);
        let settings =
            AsyncConnectionConfig::new().set_connection_timeout(timeout).set_response_timeout(timeout);
        let Some((host, port)) = &self.encrypted else {
            return Ok(Client::open(info)?.get_multiplexed_async_connection_with_config(&settings).await?);
        };
        let tls = Arc::new(config.tls_files().client().map_err(|text| Fault::Here(text.into()))?);
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(RedisError::from)?;
        stream.set_nodelay(true).map_err(RedisError::from)?;
        let stream = tls::encrypt(stream, host, tls).await.map_err(Fault::Here)?;
        let (connection, driver) =
            MultiplexedConnection::new_with_config(info.redis_settings(), stream, settings).await?;
        // It ends with the connection.
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Who asks, as the configuration says and the URL for what it does not.
    fn login(&self, config: &RedisConfig) -> Result<RedisConnectionInfo, Fault> {
        let mut settings = self.info.redis_settings().clone();
        if let Some(username) = &config.username {
            settings = settings.set_username(username);
        }
        let password = secret::read(config.password.as_ref(), "password");
        match password.map_err(|text| Fault::Here(text.into()))? {
            Some(password) => Ok(settings.set_password(password)),
            None => Ok(settings),
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    Redis(RedisError),
    /// A file or a variable here, or the encryption; with what to do.
    Here(Unusable),
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl Fault {
    /// What is wrong, and what to do.
    pub(super) fn advice(&self) -> String {
        match self {
            Self::Redis(error) => advice(error),
            Self::Here(unusable) => unusable.to_string(),
        }
    }

    /// The same, and whether it may pass by itself.
    pub(super) fn unusable(&self) -> Unusable {
        match self {
            Self::Here(unusable) => unusable.clone(),
            Self::Redis(error) if is_for_now(error) => Unusable::Away(advice(error)),
            Self::Redis(error) => Unusable::Wrong(advice(error)),
        }
    }
}

pub(super) fn silent() -> RedisError {
    (ErrorKind::Io, "it does not answer").into()
}

/// It is not there, or cannot take anything now.
fn is_for_now(error: &RedisError) -> bool {
    let is_busy = matches!(
        error.code(),
        Some(
            "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "READONLY" | "OOM" | "MISCONF" | "NOREPLICAS"
        )
    );
    is_busy || error.is_io_error() && tls::hint(error).is_none()
}

/// What is wrong, and what to do.
fn advice(error: &RedisError) -> String {
    let hint = match error.code() {
        Some("NOAUTH") => "; give it user and password",
        Some("WRONGPASS") => "; user or password are wrong",
        Some("NOPERM") => "; the user needs XADD, SET, MGET and PING on these keys",
        _ if error.kind() == ErrorKind::AuthenticationFailed => "; user or password are wrong",
        _ if error.is_io_error() => tls::hint(error).unwrap_or(REACHED),
        _ => "",
    };
    format!("{error}{hint}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_configuration_says_who_asks_before_the_url_does() {
        let asks = |username: Option<&str>, password: Option<&str>| {
            let config = RedisConfig {
                username: username.map(str::to_owned),
                password: password.map(|password| Secret::Plain(password.to_owned())),
                ..RedisConfig::new("rediss://u:p%40@h:7/3")
            };
            let server = Server::new(&config).unwrap();
            assert_eq!((server.name.as_str(), &server.encrypted), ("h:7", &Some(("h".to_owned(), 7))));
            let login = server.login(&config).unwrap();
            format!("{}/{}/{}", login.username().unwrap(), login.password().unwrap(), login.db())
        };
        assert_eq!(asks(None, None), "u/p@/3");
        assert_eq!(asks(Some("v"), Some("q")), "v/q/3");
        assert_eq!(asks(None, Some("q")), "u/q/3");
    }
}
