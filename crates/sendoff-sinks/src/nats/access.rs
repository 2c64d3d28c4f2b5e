//! Who asks, and why nobody was let in.

use std::sync::{Arc, Mutex, PoisonError};

use async_nats::{Auth, AuthError, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;

use super::NatsConfig;
use super::forbidden::Forbidden;
use super::user_key::UserKey;
use crate::secret::{self, Secret};
use crate::tls;
use crate::unusable::{REACHED, Unusable};

/// What is tried, as the configuration says and the URL for what it does not.
#[derive(Clone)]
pub(super) struct Login {
    username: Option<String>,
    password: Option<Secret>,
    token: Option<Secret>,
    credentials: Option<Secret>,
    nkey: Option<Secret>,
}

impl Login {
    /// User and password of a URL are those of the first that has them: the client does not look at them by itself.
    ///
    /// # Errors
    /// What does not go together: a server would look at one of them, and nobody knew at which.
    pub(super) fn new(config: &NatsConfig, servers: &[ServerAddr]) -> Result<Self, String> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let written = servers.iter().find_map(|server| Some((server.username()?, server.password()?)));
        let (username, password) = written.map(|(user, password)| (decoded(user), decoded(password))).unzip();
        let login = Self {
            username: config.username.clone().or(username),
            password: config.password.clone().or(password.map(Secret::Plain)),
            token: config.token.clone(),
            credentials: config.credentials.clone(),
            nkey: config.nkey.clone(),
        };
        let is_in_url = servers.iter().any(|server| server.username().is_some());
        let is_by_password =
            is_in_url || login.username.is_some() || login.password.is_some() || login.token.is_some();
        let ways = [is_by_password, login.credentials.is_some(), login.nkey.is_some()];
        if ways.into_iter().filter(|is_given| *is_given).count() > 1 {
            let ways = "user and password or a token, `credentials`, and `nkey` are three ways to be let in";
            return Err(format!("{ways}, and more than one is given, here or in its URL; give one of them"));
        }
        Ok(login)
    }

    /// Who signs, if that is how it is let in.
    fn key(&self) -> Result<Option<UserKey>, String> {
        if let Some(text) = secret::read(self.credentials.as_ref(), "credentials")? {
            return UserKey::of_credentials(&text).map(Some);
        }
        let seed = secret::read(self.nkey.as_ref(), "nkey")?;
        seed.map(|seed| UserKey::of_seed(&seed)).transpose()
    }

    /// As it is now, with what to look at if the server does not take it; `nonce`: what the server wants to have signed.
    fn auth(&self, nonce: &[u8]) -> Result<(Auth, String), String> {
        if let Some(key) = self.key()? {
            return Ok((key.auth(nonce)?, key.hint()));
        }
        let mut auth = Auth::new();
        auth.username.clone_from(&self.username);
        auth.password = secret::read(self.password.as_ref(), "password")?;
        auth.token = secret::read(self.token.as_ref(), "token")?;
        Ok((auth, "; are user and password, or the token, right?".to_owned()))
    }

    /// The client asks for it with each connection.
    pub(super) fn options(self, trouble: Arc<Trouble>) -> ConnectOptions {
        let heard = Arc::clone(&trouble);
        let login = Arc::new(self);
        let options = ConnectOptions::with_auth_callback(move |nonce| {
            let (login, trouble) = (Arc::clone(&login), Arc::clone(&trouble));
            async move { trouble.note(login.auth(&nonce)).map_err(AuthError::new) }
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
    /// A secret that was not where it should be, or is none.
    unread: Mutex<Option<String>>,
    /// What to look at if the last login is not taken.
    hint: Mutex<String>,
    /// What it may not do, though it was let in.
    pub(super) forbidden: Forbidden,
}

impl Trouble {
    /// What is about to be tried.
    fn note(&self, login: Result<(Auth, String), String>) -> Result<Auth, String> {
        *lock(&self.unread) = login.as_ref().err().cloned();
        let (auth, hint) = login?;
        *lock(&self.hint) = hint;
        Ok(auth)
    }

    fn hear(&self, event: &Event) {
        self.forbidden.hear(event);
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
                Unusable::Wrong(format!("the connection is lost ({error}){}", lock(&self.hint)))
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
            Kind::Authentication | Kind::AuthorizationViolation => &*lock(&self.hint),
            Kind::ServerParse => "; give nats://host:4222",
            _ => match tls::hint(error) {
                Some(hint) => hint,
                None => return Unusable::Away(format!("{error}{REACHED}")),
            },
        };
        Unusable::Wrong(format!("{error}{hint}"))
    }
}

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
            let (auth, _) = Login::new(&config, &[url.parse().unwrap()]).unwrap().auth(b"").unwrap();
            [auth.username, auth.password, auth.token].map(Option::unwrap_or_default).join("/")
        };
        assert_eq!(asks("nats://h", None, None, None), "//");
        assert_eq!(asks("nats://u:p%40@h", None, None, None), "u/p@/");
        assert_eq!(asks("nats://u:p@h", None, Some("q"), None), "u/q/");
        assert_eq!(asks("nats://h", Some("v"), Some("q"), None), "v/q/");
        assert_eq!(asks("nats://h", None, None, Some("t")), "//t");
    }

    #[test]
    fn a_key_goes_with_nothing_else() {
        let secret = || Some(Secret::Plain("s3cret".to_owned()));
        let plain = || NatsConfig::new("nats://h", "s");
        let made = |config: NatsConfig| Login::new(&config, &[config.url.parse().unwrap()]).map(drop);
        for config in [
            NatsConfig { credentials: secret(), password: secret(), ..plain() },
            NatsConfig { credentials: secret(), token: secret(), ..plain() },
            NatsConfig { credentials: secret(), nkey: secret(), ..plain() },
            NatsConfig { credentials: secret(), ..NatsConfig::new("nats://u:s3cret@h", "s") },
            NatsConfig { nkey: secret(), username: Some("u".to_owned()), ..plain() },
            NatsConfig { nkey: secret(), ..NatsConfig::new("nats://s3cret@h", "s") },
        ] {
            let error = made(config).unwrap_err();
            assert!(error.contains("give one of them") && !error.contains("s3cret"), "{error}");
        }
        made(NatsConfig { credentials: secret(), ..plain() }).unwrap();
        made(NatsConfig { nkey: secret(), ..plain() }).unwrap();
    }

    #[test]
    fn what_stands_in_the_way_is_said() {
        let trouble = Trouble::default();
        assert_eq!(trouble.reason(), Unusable::Away("the connection is lost".to_owned()));
        let refused =
            || Event::ClientError(async_nats::ClientError::Other("authorization violation".to_owned()));
        trouble.hear(&refused());
        trouble.note(Ok((Auth::new(), "; is it right?".to_owned()))).unwrap();
        let reason = Unusable::Wrong(
            "the connection is lost (nats: authorization violation); is it right?".to_owned(),
        );
        assert_eq!(trouble.reason(), reason);
        trouble.note(Err("`token`: the file /x cannot be read".to_owned())).err().unwrap();
        assert_eq!(trouble.reason().to_string(), "`token`: the file /x cannot be read");
        trouble.note(Ok((Auth::new(), String::new()))).unwrap();
        trouble.hear(&Event::Connected);
        assert_eq!(trouble.reason(), Unusable::Away("the connection is lost".to_owned()));
    }
}
