//! What each request is sent with, as it is at the moment.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

use super::HttpConfig;
use super::endpoint::Endpoint;
use super::request::fixed_headers;
use super::signature::Key;
use crate::secret;

/// What a call is made with.
pub(super) struct Credentials {
    /// Headers of every request.
    pub(super) headers: HeaderMap,
    /// Each request is signed with all of these.
    pub(super) keys: Vec<Key>,
    /// What no answer may be shown with.
    pub(super) secrets: Vec<String>,
}

impl Credentials {
    /// Without what is read anew: what cannot work at all is known at the start.
    ///
    /// # Errors
    /// A header that is none, or one that is given twice.
    pub(super) fn check(config: &HttpConfig, endpoint: &Endpoint) -> Result<(), String> {
        let headers = fixed_headers(&config.headers)?;
        if config.authorization.is_some()
            && (headers.contains_key(AUTHORIZATION) || endpoint.base().password().is_some())
        {
            return Err("`authorization` is given twice: also in its headers or its URL".to_owned());
        }
        Ok(())
    }

    /// As they are now.
    ///
    /// # Errors
    /// What should be in a file or a variable and is not.
    pub(super) fn read(config: &HttpConfig, endpoint: &Endpoint) -> Result<Self, String> {
        let mut headers = fixed_headers(&config.headers)?;
        let mut secrets = secrets(config, endpoint);
        if let Some(text) = secret::read(config.authorization.as_ref(), "authorization")? {
            let mut value = HeaderValue::from_bytes(text.as_bytes())
                .map_err(|_| "`authorization` has line breaks or control characters")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
            add(&mut secrets, text);
        }
        let keys = config.secrets.iter().map(|secret| secret.key()).collect::<Result<_, _>>()?;
        Ok(Self { headers, keys, secrets })
    }
}

/// With and without the scheme in front of a credential.
fn add(secrets: &mut Vec<String>, value: String) {
    secrets.extend(value.split_once(' ').map(|(_, credential)| credential.to_owned()));
    secrets.push(value);
    secrets.retain(|secret| !secret.trim().is_empty());
    // The whole before its parts.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
}

/// What a receiver may repeat and nobody else may see: headers, and the password of the URL.
fn secrets(config: &HttpConfig, endpoint: &Endpoint) -> Vec<String> {
    let mut secrets = Vec::new();
    for (_, value) in &config.headers {
        add(&mut secrets, value.clone());
    }
    if let Some(password) = endpoint.base().password() {
        let user = endpoint.base().username();
        add(&mut secrets, password.to_owned());
        add(&mut secrets, STANDARD.encode(format!("{user}:{password}")));
    }
    secrets
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn read(config: &HttpConfig) -> Result<Credentials, String> {
        let endpoint = Endpoint::parse(&config.url).unwrap();
        Credentials::check(config, &endpoint)?;
        Credentials::read(config, &endpoint)
    }

    #[test]
    fn what_is_in_a_file_is_read_for_each_call() {
        let directory = tempfile::tempdir().unwrap();
        let [authorization, signing] = ["authorization", "signing"].map(|name| directory.path().join(name));
        let config = HttpConfig {
            authorization: Some(Secret::File(authorization.clone())),
            secrets: vec![Secret::File(signing.clone()).into()],
            ..HttpConfig::new("https://h/")
        };
        let error = read(&config).err().unwrap();
        assert!(
            error.starts_with(&format!("`authorization`: the file {}", authorization.display())),
            "{error}"
        );
        std::fs::write(&authorization, "Bearer s3cret\n").unwrap();
        let error = read(&config).err().unwrap();
        assert!(error.starts_with(&format!("`secrets`: the file {}", signing.display())), "{error}");
        std::fs::write(&signing, "s3cret").unwrap();
        assert_eq!(read(&config).err().unwrap(), "a signing secret begins with `whsec_`");
        std::fs::write(&signing, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let credentials = read(&config).unwrap();
        assert_eq!(
            (credentials.headers["authorization"].as_bytes(), credentials.keys.len()),
            (&b"Bearer s3cret"[..], 1)
        );
        assert_eq!(credentials.secrets, ["Bearer s3cret", "s3cret"]);
        assert!(!format!("{:?} {config:?}", credentials.headers).contains("s3cret"));
        std::fs::write(&authorization, "Bearer changed").unwrap();
        assert_eq!(read(&config).unwrap().headers["authorization"].as_bytes(), b"Bearer changed");
        std::fs::write(&authorization, "Bearer s3cret\u{1}").unwrap();
        assert_eq!(read(&config).err().unwrap(), "`authorization` has line breaks or control characters");
    }

    #[test]
    fn a_credential_is_given_once() {
        let config = |url: &str| HttpConfig {
            authorization: Some(Secret::Plain("Bearer s3cret".to_owned())),
            ..HttpConfig::new(url)
        };
        let headers = vec![("Authorization".to_owned(), "Basic s3cret".to_owned())];
        for config in [HttpConfig { headers, ..config("https://h/") }, config("https://u:s3cret@h/")] {
            let error = read(&config).err().unwrap();
            assert!(error.contains("given twice") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_a_receiver_may_repeat_is_known() {
        let config = HttpConfig {
            headers: vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())],
            ..HttpConfig::new("https://user:s3cret@h/")
        };
        let known = read(&config).unwrap().secrets;
        for secret in ["Bearer s3cret", "s3cret", "dXNlcjpzM2NyZXQ="] {
            assert!(known.iter().any(|known| known == secret), "{secret}");
        }
    }
}
