//! Where a server is, and who asks.

use percent_encoding::percent_decode_str;

/// What is in a URL.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_encrypted: bool,
    /// User and password.
    pub(super) login: Option<(String, String)>,
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

    /// For people.
    pub(super) fn address(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// User and password, as they were before they were written into a URL.
fn credentials(login: &str) -> (String, String) {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    (decoded(user), decoded(password))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let read = |url| {
            let server = Server::read(url).unwrap();
            (server.address(), server.login)
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
}
