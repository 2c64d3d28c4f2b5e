//! A connection that can be given up at once, and its channels.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::tcp::RustlsConnector;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Channel, Connection, ConnectionProperties, Error};
use rustls::ClientConfig;

/// Seconds after which the server and this side notice that the other is gone.
const HEARTBEAT: u16 = 10;

/// What a server takes for a frame by itself. One that takes frames of any size would have the client hold buffers of any size.
const FRAME_MAX: u32 = 131_072;

/// Where a server is, and how it is logged in to.
#[derive(Clone)]
pub(super) struct Server {
    /// Host and port, for people.
    pub(super) name: String,
    uri: AMQPUri,
}

impl Server {
    /// # Errors
    /// What is wrong with the URL, without repeating it: it may have a password in it.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let unread = "its URL cannot be read; give amqp://user:password@host:5672/vhost";
        let mut uri: AMQPUri = url.parse().map_err(|_| unread.to_owned())?;
        // An address of IPv6 is left out by the client, which would go to localhost instead.
        let authority =
            url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if let Some((address, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            address.clone_into(&mut uri.authority.host);
        }
        if uri.vhost.is_empty() {
            "/".clone_into(&mut uri.vhost);
        }
        if uri.vhost.len() > 255 {
            return Err("the virtual host in its URL has more than 255 bytes".to_owned());
        }
        uri.query.heartbeat.get_or_insert(HEARTBEAT);
        uri.query.frame_max.get_or_insert(FRAME_MAX);
        let name = match uri.authority.host.as_str() {
            host if host.contains(':') => format!("[{host}]:{}", uri.authority.port),
            host => format!("{host}:{}", uri.authority.port),
        };
        Ok(Self { name, uri })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.uri.scheme == AMQPScheme::AMQPS
    }

    /// With these instead of user and password of the URL.
    pub(super) fn asked_by(&self, username: Option<String>, password: Option<String>) -> Self {
        let mut server = self.clone();
        let userinfo = &mut server.uri.authority.userinfo;
        if let Some(username) = username {
            userinfo.username = username;
        }
        if let Some(password) = password {
            userinfo.password = password;
        }
        server
    }
}

/// The socket of a connection, ended with this. The client has a thread for each connection, which waits for a server that does not answer for ever,
/// even if it was only asked to say goodbye.
#[derive(Default)]
struct Wire(OnceLock<TcpStream>);

impl Wire {
    #[cfg(unix)]
    fn hold(&self, stream: &impl std::os::fd::AsFd) -> std::io::Result<()> {
        let _ = self.0.set(stream.as_fd().try_clone_to_owned()?.into());
        Ok(())
    }

    #[cfg(windows)]
    fn hold(&self, stream: &impl std::os::windows::io::AsSocket) -> std::io::Result<()> {
        let _ = self.0.set(stream.as_socket().try_clone_to_owned()?.into());
        Ok(())
    }

    fn cut(&self) {
        if let Some(stream) = self.0.get() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.cut();
    }
}

/// A connection, with channels that no call uses at the moment.
///
/// A call has a channel to itself: the client hands a message that comes back to whichever call has the next confirmation, not to the call that sent
/// it, which would take it for delivered. A call that is dropped takes its channel along.
pub(super) struct Connected {
    connection: Connection,
    idle: Mutex<Vec<Channel>>,
    is_cut: OnceLock<()>,
    wire: Arc<Wire>,
}

impl Connected {
    /// `tls`: how it is encrypted, if it is.
    pub(super) async fn open(
        server: &Server,
        tls: Option<Arc<ClientConfig>>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let wire = Arc::new(Wire::default());
        let held = Arc::downgrade(&wire);
        let properties = ConnectionProperties::default().with_connection_name("sendoff".into());
        let runtime = lapin::runtime::default_runtime()?;
        let connection = Connection::connector(
            server.uri.clone(),
            runtime,
            async move |uri: AMQPUri, runtime| {
                let aborted = || std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
                let AMQPUri { authority, .. } = uri;
                let dialed = async {
                    let address = runtime.to_socket_addrs((authority.host.clone(), authority.port));
                    let stream = AsyncTcpStream::connect(&runtime, address).await?;
                    let wire = Weak::upgrade(&held).ok_or_else(aborted)?;
                    if let AsyncTcpStream::Plain(plain) = &stream {
                        wire.hold(plain.get_ref())?;
                    }
                    drop(wire);
                    match &tls {
                        None => Ok(stream),
                        Some(tls) => {
                            let connector = RustlsConnector::from(Arc::clone(tls));
                            stream.into_rustls(&connector, &authority.host).await
                        }
                    }
                };
                let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
                Ok(tokio::time::timeout(timeout, dialed).await.map_err(late)??)
            },
            properties,
        )
        .await?;
        Ok(Self { connection, idle: Mutex::default(), is_cut: OnceLock::new(), wire })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.is_cut.get().is_none() && self.connection.status().connected()
    }

    /// The server reads nothing that is published.
    pub(super) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// The most bytes in a frame.
    pub(super) fn frame_max(&self) -> usize {
        usize::try_from(self.connection.configuration().frame_max()).unwrap_or(usize::MAX)
    }

    /// Gives the connection up, for every call that uses it.
    pub(super) fn cut(&self) {
        let _ = self.is_cut.set(());
        self.wire.cut();
    }

    pub(super) async fn new_channel(&self) -> Result<Channel, Error> {
        self.connection.create_channel().await
    }

    /// A channel that confirms what is published on it.
    pub(super) async fn channel(&self) -> Result<Channel, Error> {
        while let Some(channel) = self.pop_idle() {
            if channel.status().connected() {
                return Ok(channel);
            }
        }
        let channel = self.new_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    fn pop_idle(&self) -> Option<Channel> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// For the next call. Nothing that this one has sent may still be waiting for its confirmation.
    pub(super) fn put_back(&self, channel: Channel) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(channel);
    }

    /// Says goodbye. A server that does not answer is none that has to be told.
    pub(super) async fn close(&self, timeout: Duration) {
        let closed = self.connection.close(200, "OK".into());
        let _ = tokio::time::timeout(timeout, closed).await;
        self.cut();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_the_server_is() {
        for (url, name, vhost) in [
            ("amqp://localhost", "localhost:5672", "/"),
            ("amqps://u:p@host/", "host:5671", "/"),
            ("amqp://u:p%40@127.0.0.1:7/a%2Fb", "127.0.0.1:7", "a/b"),
            ("amqp://u:p@[::1]:7/a", "[::1]:7", "a"),
            ("amqp://[fe80::1]?heartbeat=3", "[fe80::1]:5672", "/"),
        ] {
            let server = Server::new(url).unwrap();
            assert_eq!((server.name.as_str(), server.uri.vhost.as_str()), (name, vhost), "{url}");
        }
        assert_eq!(Server::new("amqp://h?heartbeat=3").unwrap().uri.query.heartbeat, Some(3));
        assert_eq!(Server::new("amqp://h").unwrap().uri.query.heartbeat, Some(HEARTBEAT));
        assert!(Server::new(&format!("amqp://h/{}", "v".repeat(256))).is_err());
        assert!(
            Server::new("amqps://h").unwrap().is_encrypted()
                && !Server::new("amqp://h").unwrap().is_encrypted()
        );
    }

    #[test]
    fn a_configuration_says_who_asks_before_the_url_does() {
        let asks = |username: Option<&str>, password: Option<&str>| {
            let server = Server::new("amqp://u:p@h").unwrap();
            let server = server.asked_by(username.map(str::to_owned), password.map(str::to_owned));
            let userinfo = server.uri.authority.userinfo;
            format!("{}/{}", userinfo.username, userinfo.password)
        };
        assert_eq!(asks(None, None), "u/p");
        assert_eq!(asks(Some("v"), Some("q")), "v/q");
        assert_eq!(asks(None, Some("q")), "u/q");
    }
}
