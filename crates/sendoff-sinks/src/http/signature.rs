//! Signatures as [Standard Webhooks](https://www.standardwebhooks.com) has them.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sendoff::SinkError;
use serde::Deserialize;
use sha2::Sha256;

use crate::secret::Secret;

/// What a receiver's secrets begin with.
const PREFIX: &str = "whsec_";

/// How many bytes a secret may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that requests are signed with, as the receiver has it: `whsec_` and base64. It may be in a file or a variable, and is read anew for each call then.
///
/// ```
/// use sendoff_sinks::{Secret, SigningSecret};
///
/// let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
/// assert_eq!(format!("{secret:?}"), "SigningSecret(Secret(..))");
/// let in_a_file = SigningSecret::from(Secret::File("/run/secrets/webhook".into()));
/// assert_eq!(format!("{in_a_file:?}"), "SigningSecret(Secret(file /run/secrets/webhook))");
/// ```
#[derive(Debug, Clone, Deserialize)]
pub struct SigningSecret(Secret);

impl From<Secret> for SigningSecret {
    fn from(secret: Secret) -> Self {
        Self(secret)
    }
}

impl FromStr for SigningSecret {
    type Err = SinkError;

    /// Reads it, so that one that is none is known at the start.
    fn from_str(text: &str) -> Result<Self, SinkError> {
        let secret = Self(Secret::Plain(text.to_owned()));
        secret.key().map(|_| secret).map_err(|error| SinkError::new("http", error))
    }
}

impl SigningSecret {
    /// As it is now.
    ///
    /// # Errors
    /// Where it should be and is not, or what it has that is wrong.
    pub(super) fn key(&self) -> Result<Key, String> {
        let wrong = |detail: &str| format!("a signing secret {detail}");
        let text = self.0.read("secrets")?;
        let encoded = text.strip_prefix(PREFIX).ok_or_else(|| wrong("begins with `whsec_`"))?;
        // Not its text: it may repeat the secret.
        let key = STANDARD.decode(encoded).map_err(|_| wrong("is base64 behind its `whsec_`"))?;
        if !BYTES.contains(&key.len()) {
            return Err(wrong("has 24 to 64 bytes"));
        }
        Hmac::new_from_slice(&key).map(Key).map_err(|_| wrong("has 24 to 64 bytes"))
    }
}

/// What requests are signed with.
#[derive(Clone)]
pub(super) struct Key(Hmac<Sha256>);

/// A signature by each key, with spaces between them: a receiver takes any that it knows, so that secrets can be changed.
pub(super) fn sign(keys: &[Key], id: &str, timestamp: u64, body: &[u8]) -> String {
    let mut signatures = Vec::with_capacity(keys.len());
    for Key(mac) in keys {
        let mut mac = mac.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        signatures.push(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
    }
    signatures.join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let key = |text: &str| text.parse::<SigningSecret>().unwrap().key().unwrap();
        let secret = key(SECRET);
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        let signed = sign(std::slice::from_ref(&secret), id, 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let other = key(&format!("whsec_{}", STANDARD.encode([7; 32])));
        let both = sign(&[other, secret], id, 1_614_265_330, body);
        assert_eq!(both.split(' ').count(), 2);
        assert!(both.ends_with(&format!(" {signed}")), "{both}");
    }

    #[test]
    fn a_secret_that_is_none_is_refused_and_not_shown() {
        for (text, error) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "http: a signing secret begins with `whsec_`"),
            ("whsec_s3cret!", "http: a signing secret is base64 behind its `whsec_`"),
            ("whsec_c2VjcmV0", "http: a signing secret has 24 to 64 bytes"),
        ] {
            assert_eq!(text.parse::<SigningSecret>().unwrap_err().to_string(), error);
        }
    }
}
