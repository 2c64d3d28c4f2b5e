//! Where a server is, and who asks.

use percent_encoding::percent_decode_str;

use super::MqttConfig;
use crate::secret;

/// What is in a URL.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_encrypted: bool,
    /// As the URL has it.
    login: Option<Login>,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl Server {
    /// `mqtt://user:password@host:1883`, or `mqtts://`. None: it is no such URL.
    pub(super) fn read(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let (is_encrypted, usual) = match scheme {
            "mqtt" => (false, 1883),
            "mqtts" => (true, 8883),
            _ => return None,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // A password may have the mark in it, a host may not.
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, rest),
        };
        let (host, port) = match address.rsplit_once(':') {
            // An IPv6 address ends with its bracket, if it has no port.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (address, usual),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '[', ']']);
        let has_room = bare.is_some() || !host.contains(':');
        (is_host && has_room).then(|| Self {
            host: host.to_owned(),
            port,
            is_encrypted,
            login: login.map(credentials),
        })
    }

    /// Who asks, as the configuration says and the URL for what it does not.
    ///
    /// # Errors
    /// Where the password should be and is not.
    pub(super) fn login(&self, config: &MqttConfig) -> Result<Option<Login>, String> {
        let password = secret::read(config.password.as_ref(), "password")?;
        let user = config.username.clone();
        if user.is_none() && password.is_none() {
            return Ok(self.login.clone());
        }
        let written = self.login.clone().unwrap_or(Login { user: String::new(), password: String::new() });
        let user = user.unwrap_or(written.user);
        Ok(Some(Login { user, password: password.unwrap_or(written.password) }))
    }

    /// For people.
    pub(super) fn address(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// User and password, as they were before they were written into a URL.
fn credentials(login: &str) -> Login {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    Login { user: decoded(user), password: decoded(password) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_url_is_taken_apart() {
        let read = |url| {
            let server = Server::read(url).unwrap();
            (server.address(), server.login.map(|login| (login.user, login.password)))
        };
        let login = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(read("mqtt://broker"), ("broker:1883".to_owned(), None));
        assert_eq!(read("mqtts://broker"), ("broker:8883".to_owned(), None));
        assert!(Server::read("mqtts://broker").unwrap().is_encrypted);
        assert!(!Server::read("mqtt://broker").unwrap().is_encrypted);
        assert_eq!(read("mqtt://broker:99/"), ("broker:99".to_owned(), None));
        assert_eq!(read("mqtt://u:p%40%2F@broker"), ("broker:1883".to_owned(), login("u", "p@/")));
        assert_eq!(read("mqtt://u:a:b@broker:1"), ("broker:1".to_owned(), login("u", "a:b")));
        assert_eq!(read("mqtt://u@[::1]"), ("[::1]:1883".to_owned(), login("u", "")));
        assert_eq!(read("mqtt://[::1]:7"), ("[::1]:7".to_owned(), None));
        for wrong in
            ["broker:1883", "http://broker", "mqtt://", "mqtt://:1", "mqtt://b:x", "mqtt://::1", "mqtt://b/t"]
        {
            assert!(Server::read(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_configuration_says_who_asks_before_the_url_does() {
        let asks = |url: &str, username: Option<&str>, password: Option<&str>| {
            let config = MqttConfig {
                username: username.map(str::to_owned),
                password: password.map(|password| Secret::Plain(password.to_owned())),
                ..MqttConfig::new(url)
            };
            let login = Server::read(url).unwrap().login(&config).unwrap();
            login.map(|Login { user, password }| format!("{user}/{password}"))
        };
        assert_eq!(asks("mqtt://h", None, None), None);
        assert_eq!(asks("mqtt://u:p@h", None, None).unwrap(), "u/p");
        assert_eq!(asks("mqtt://u:p@h", None, Some("q")).unwrap(), "u/q");
        assert_eq!(asks("mqtt://u:p@h", Some("v"), Some("q")).unwrap(), "v/q");
        assert_eq!(asks("mqtt://h", Some("v"), None).unwrap(), "v/");
    }
}
