//! Who asks, and why nobody was let in.

use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Auth, AuthError, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;

use super::NatsConfig;
use crate::secret::{self, Secret};
use crate::tls;
use crate::unusable::{REACHED, Unusable};

/// What is tried, as the configuration says and the URL for what it does not.
#[derive(Clone)]
pub(super) struct Login {
    username: Option<String>,
    password: Option<Secret>,
    token: Option<Secret>,
}

impl Login {
    /// User and password of a URL are those of the first that has them: the client does not look at them by itself.
    pub(super) fn new(config: &NatsConfig, servers: &[ServerAddr]) -> Self {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let written = servers.iter().find_map(|server| Some((server.username()?, server.password()?)));
        let (username, password) = written.map(|(user, password)| (decoded(user), decoded(password))).unzip();
        Self {
            username: config.username.clone().or(username),
            password: config.password.clone().or(password.map(Secret::Plain)),
            token: config.token.clone(),
        }
    }

    /// As it is now.
    fn auth(&self) -> Result<Auth, String> {
        let mut auth = Auth::new();
        auth.username.clone_from(&self.username);
        auth.password = secret::read(self.password.as_ref(), "password")?;
        auth.token = secret::read(self.token.as_ref(), "token")?;
        Ok(auth)
    }

    /// The client asks for it with each connection.
    pub(super) fn options(self, trouble: Arc<Trouble>) -> ConnectOptions {
        let heard = Arc::clone(&trouble);
        let login = Arc::new(self);
        let options = ConnectOptions::with_auth_callback(move |_| {
            let (login, trouble) = (Arc::clone(&login), Arc::clone(&trouble));
            async move {
                let auth = login.auth();
                *lock(&trouble.unread) = auth.as_ref().err().cloned();
                auth.map_err(AuthError::new)
            }
        });
        options.event_callback(move |event| {
            let heard = Arc::clone(&heard);
            async move { heard.hear(&event) }
        })
    }
}

/// What the client has met with while it connects again by itself.
#[derive(Default)]
pub(super) struct Trouble {
    /// The last of its tries.
    error: Mutex<Option<String>>,
    /// A secret that was not where it should be.
    unread: Mutex<Option<String>>,
}

impl Trouble {
    fn hear(&self, event: &Event) {
        match event {
            Event::Connected => *lock(&self.error) = None,
            Event::ClientError(error) => *lock(&self.error) = Some(error.to_string()),
            _ => {}
        }
    }

    /// Why there is no connection at the moment, and what to do.
    pub(super) fn reason(&self) -> Unusable {
        if let Some(unread) = &*lock(&self.unread) {
            return Unusable::Wrong(unread.clone());
        }
        match &*lock(&self.error) {
            Some(error) if error.contains("authorization") => {
                Unusable::Wrong(format!("the connection is lost ({error}){LOGIN}"))
            }
            Some(error) => Unusable::Away(format!("the connection is lost ({error})")),
            None => Unusable::Away("the connection is lost".to_owned()),
        }
    }

    /// Why no connection was made, and what to do.
    pub(super) fn unreachable(&self, error: &ConnectError) -> Unusable {
        use ConnectErrorKind as Kind;
        if let Some(unread) = &*lock(&self.unread) {
            return Unusable::Wrong(unread.clone());
        }
        let hint = match error.kind() {
            Kind::Authentication | Kind::AuthorizationViolation => LOGIN,
            Kind::ServerParse => "; give nats://host:4222",
            _ => match tls::hint(error) {
                Some(hint) => hint,
                None => return Unusable::Away(format!("{error}{REACHED}")),
            },
        };
        Unusable::Wrong(format!("{error}{hint}"))
    }
}

const LOGIN: &str = "; are user and password, or the token, right?";

fn lock<T>(held: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_who_asks_before_the_url_does() {
        let asks = |url: &str, username: Option<&str>, password: Option<&str>, token: Option<&str>| {
            let secret = |text: Option<&str>| text.map(|text| Secret::Plain(text.to_owned()));
            let config = NatsConfig {
                username: username.map(str::to_owned),
                password: secret(password),
                token: secret(token),
                ..NatsConfig::new(url, "s")
            };
            let auth = Login::new(&config, &[url.parse().unwrap()]).auth().unwrap();
            [auth.username, auth.password, auth.token].map(Option::unwrap_or_default).join("/")
        };
        assert_eq!(asks("nats://h", None, None, None), "//");
        assert_eq!(asks("nats://u:p%40@h", None, None, None), "u/p@/");
        assert_eq!(asks("nats://u:p@h", None, Some("q"), None), "u/q/");
        assert_eq!(asks("nats://h", Some("v"), Some("q"), None), "v/q/");
        assert_eq!(asks("nats://h", None, None, Some("t")), "//t");
    }

    #[test]
    fn what_stands_in_the_way_is_said() {
        let trouble = Trouble::default();
        assert_eq!(trouble.reason(), Unusable::Away("the connection is lost".to_owned()));
        let refused =
            || Event::ClientError(async_nats::ClientError::Other("authorization violation".to_owned()));
        trouble.hear(&refused());
        assert!(
            matches!(trouble.reason(), Unusable::Wrong(text) if text.ends_with("are user and password, or the token, right?")),
            "{:?}",
            trouble.reason()
        );
        *lock(&trouble.unread) = Some("`token`: the file /x cannot be read".to_owned());
        assert_eq!(trouble.reason().to_string(), "`token`: the file /x cannot be read");
        *lock(&trouble.unread) = None;
        trouble.hear(&Event::Connected);
        assert_eq!(trouble.reason(), Unusable::Away("the connection is lost".to_owned()));
    }
}
