//! Users whom a server knows by their keys: by a seed alone, or by credentials, which are a JWT and the seed of its user.

use std::time::{SystemTime, UNIX_EPOCH};

use async_nats::Auth;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::{KeyPair, KeyPairType};
use serde::Deserialize;

/// A user, who can sign.
pub(super) struct UserKey {
    pair: KeyPair,
    /// What an account says of the user, for servers that know accounts and not their users.
    jwt: Option<Jwt>,
}

struct Jwt {
    text: String,
    claims: Claims,
}

/// Of all that a JWT says, what may be why it is not taken.
#[derive(Deserialize)]
struct Claims {
    /// The user's public key.
    sub: String,
    /// In seconds since 1970; none or nought: for good.
    #[serde(default)]
    exp: u64,
}

impl UserKey {
    /// # Errors
    /// Not what a .creds file has, and what to give. Nothing of the text is in it.
    pub(super) fn of_credentials(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "`credentials`: {what}; give all that a .creds file has, as `nsc generate creds` writes it"
            )
        };
        // Some editors begin a file with it.
        let text = text.trim_start_matches('\u{feff}');
        let jwt = section(text, "JWT").ok_or_else(|| wrong("there is no JWT of a user in it"))?;
        let claims = claims(jwt).ok_or_else(|| wrong("the JWT in it cannot be read"))?;
        let seed = section(text, "SEED").ok_or_else(|| wrong("there is no seed of a user in it"))?;
        let pair = user(seed).map_err(|what| wrong(&what))?;
        Ok(Self { pair, jwt: Some(Jwt { text: jwt.to_owned(), claims }) })
    }

    /// # Errors
    /// Not the seed of a user, and what to give. Nothing of the text is in it.
    pub(super) fn of_seed(text: &str) -> Result<Self, String> {
        let wrong = |what: String| {
            format!("`nkey`: {what}; give a seed, SU…, and what a .creds file has as `credentials`")
        };
        Ok(Self { pair: user(text.trim()).map_err(wrong)?, jwt: None })
    }

    /// Who asks, proven by a signature under what the server has just made up.
    ///
    /// # Errors
    /// It could not be signed.
    pub(super) fn auth(&self, nonce: &[u8]) -> Result<Auth, String> {
        let mut auth = Auth::new();
        auth.signature = Some(self.pair.sign(nonce).map_err(|error| error.to_string())?);
        match &self.jwt {
            Some(jwt) => auth.jwt = Some(jwt.text.clone()),
            None => auth.nkey = Some(self.pair.public_key()),
        }
        Ok(auth)
    }

    /// What to look at if a server does not let it in: it never says why. One that has expired is tried all the same, since it is the server's clock that counts.
    pub(super) fn hint(&self) -> String {
        let key = self.pair.public_key();
        match &self.jwt {
            None => format!("; is {key}, whose seed `nkey` is, one of its users?"),
            Some(jwt) if jwt.claims.sub != key => {
                "; the seed in `credentials` is not that of its JWT: give both of one .creds file".to_owned()
            }
            Some(jwt) if jwt.claims.has_expired() => {
                format!("; the JWT of {key} in `credentials` has expired: give new credentials")
            }
            Some(_) => format!("; does it know the account of `credentials`, and was {key} not revoked?"),
        }
    }
}

impl Claims {
    /// By this machine's clock.
    fn has_expired(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.exp != 0 && self.exp <= now.as_secs()
    }
}

/// What stands between `-----BEGIN … WHAT-----` and the line that ends it.
fn section<'t>(text: &'t str, what: &str) -> Option<&'t str> {
    let is_mark = |line: &str| line.starts_with("---");
    let begins =
        |line: &str| is_mark(line) && line.contains("BEGIN") && line.trim_end_matches('-').ends_with(what);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.find(|line| begins(line))?;
    lines.next().filter(|line| !is_mark(line))
}

fn claims(jwt: &str) -> Option<Claims> {
    let mut parts = jwt.split('.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// # Errors
/// What it is instead.
fn user(seed: &str) -> Result<KeyPair, String> {
    // Not the error's text: it may have something of the seed.
    let pair = KeyPair::from_seed(seed).map_err(|_| match KeyPair::from_public_key(seed) {
        Ok(_) => "it is a public key, and no seed".to_owned(),
        Err(_) => "the seed cannot be read".to_owned(),
    })?;
    match pair.key_pair_type() {
        KeyPairType::User => Ok(pair),
        KeyPairType::Account => Err("the seed is that of an account, and not of a user".to_owned()),
        KeyPairType::Operator => Err("the seed is that of an operator, and not of a user".to_owned()),
        _ => Err("the seed is not that of a user".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jwt(claims: &serde_json::Value) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let header = part(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
        format!("{header}.{}.{}", part(&claims.to_string()), part("s1gnature"))
    }

    /// As `nsc` writes it.
    fn file(jwt: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\
             NKEY Seed printed below can be used to sign and prove identity.\n\
             NKEYs are sensitive and should be treated as secrets.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n\n\
             *************************************************************\n"
        )
    }

    fn refused(read: Result<UserKey, String>) -> String {
        read.err().unwrap_or_default()
    }

    #[test]
    fn credentials_are_read_however_their_lines_end() {
        let user = KeyPair::new_user();
        let jwt = jwt(&json!({ "sub": user.public_key() }));
        let text = file(&jwt, &user.seed().unwrap());
        let spaced = text.replace('\n', " \n\n\t");
        for text in [text.trim(), &text, &text.replace('\n', "\r\n"), &spaced, &format!("\u{feff}{text}")] {
            let auth = UserKey::of_credentials(text).unwrap().auth(b"nonce").unwrap();
            assert_eq!(auth.jwt.as_deref(), Some(&*jwt), "{text:?}");
            assert_eq!(auth.nkey, None);
            user.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        }
    }

    #[test]
    fn a_seed_alone_is_a_user() {
        let user = KeyPair::new_user();
        let auth = UserKey::of_seed(&format!(" {}\r", user.seed().unwrap())).unwrap().auth(b"nonce").unwrap();
        assert_eq!((auth.nkey, auth.jwt), (Some(user.public_key()), None));
        user.verify(b"nonce", &auth.signature.unwrap()).unwrap();
    }

    #[test]
    fn what_is_missing_from_credentials_is_said() {
        let user = KeyPair::new_user();
        let (seed, jwt) = (user.seed().unwrap(), jwt(&json!({ "sub": user.public_key() })));
        let whole = file(&jwt, &seed);
        let half = whole.split_once("\n\n").unwrap().0;
        let account = KeyPair::new_account().seed().unwrap();
        for (text, expected) in [
            ("", "there is no JWT of a user in it"),
            (&seed, "there is no JWT of a user in it"),
            (&file("", &seed), "there is no JWT of a user in it"),
            (half, "there is no seed of a user in it"),
            (&file(&jwt, ""), "there is no seed of a user in it"),
            (&file("s3cret", &seed), "the JWT in it cannot be read"),
            (&file("e30.s3cret.x", &seed), "the JWT in it cannot be read"),
            (&file(&jwt, &seed[..50]), "the seed cannot be read"),
            (&file(&jwt, &seed.replace(&seed[20..22], "s3")), "the seed cannot be read"),
            (&file(&jwt, &account), "the seed is that of an account"),
        ] {
            let error = refused(UserKey::of_credentials(text));
            assert!(error.starts_with("`credentials`: ") && error.contains(expected), "{error}");
            assert!(error.contains("give all that a .creds file has"), "{error}");
            for hidden in ["s3cret", &jwt, &seed[2..20], &account[2..20]] {
                assert!(!error.contains(hidden), "{error}");
            }
        }
    }

    #[test]
    fn what_is_not_the_seed_of_a_user_is_said() {
        let user = KeyPair::new_user();
        for (text, expected) in [
            (KeyPair::new_account().seed().unwrap(), "that of an account"),
            (KeyPair::new_operator().seed().unwrap(), "that of an operator"),
            (KeyPair::new_server().seed().unwrap(), "not that of a user"),
            (user.public_key(), "it is a public key"),
            (file(&jwt(&json!({ "sub": user.public_key() })), &user.seed().unwrap()), "cannot be read"),
            ("s3cret".to_owned(), "cannot be read"),
            ("ß".repeat(29), "cannot be read"),
        ] {
            let error = refused(UserKey::of_seed(&text));
            assert!(error.starts_with("`nkey`: ") && error.contains(expected), "{error}");
            assert!(error.contains("give a seed, SU…") && !error.contains(&text), "{error}");
        }
    }

    #[test]
    fn why_it_may_not_be_let_in_is_guessed() {
        let user = KeyPair::new_user();
        let (key, seed) = (user.public_key(), user.seed().unwrap());
        assert!(UserKey::of_seed(&seed).unwrap().hint().contains(&format!("is {key}, whose seed `nkey` is")));
        let hint = |claims| UserKey::of_credentials(&file(&jwt(&claims), &seed)).unwrap().hint();
        assert!(hint(json!({ "sub": key, "exp": 1 })).contains("has expired: give new credentials"));
        assert!(hint(json!({ "sub": KeyPair::new_user().public_key() })).contains("is not that of its JWT"));
        for exp in [0, 1_u64 << 40] {
            assert!(hint(json!({ "sub": key, "exp": exp })).contains("does it know the account"), "{exp}");
        }
    }
}
