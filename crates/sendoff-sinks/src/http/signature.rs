//! Signatures as [Standard Webhooks](https://www.standardwebhooks.com) has them.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sendoff::SinkError;
use sha2::Sha256;

/// What a receiver's secrets begin with.
const PREFIX: &str = "whsec_";

/// How many bytes a secret may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that requests are signed with, as the receiver has it: `whsec_` and base64.
///
/// ```
/// use sendoff_sinks::SigningSecret;
///
/// let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
/// assert_eq!(format!("{secret:?}"), "SigningSecret(..)");
/// ```
#[derive(Clone)]
pub struct SigningSecret {
    mac: Hmac<Sha256>,
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(..)")
    }
}

impl FromStr for SigningSecret {
    type Err = SinkError;

    fn from_str(text: &str) -> Result<Self, SinkError> {
        let wrong = |detail: &str| SinkError::new("http", format!("a signing secret {detail}"));
        let encoded = text.strip_prefix(PREFIX).ok_or_else(|| wrong("begins with `whsec_`"))?;
        // Not its text: it may repeat the secret.
        let key = STANDARD.decode(encoded).map_err(|_| wrong("is base64 behind its `whsec_`"))?;
        if !BYTES.contains(&key.len()) {
            return Err(wrong("has 24 to 64 bytes"));
        }
        let mac = Hmac::new_from_slice(&key).map_err(|_| wrong("has 24 to 64 bytes"))?;
        Ok(Self { mac })
    }
}

/// A signature by each secret, with spaces between them: a receiver takes any that it knows, so that secrets can be changed.
pub(super) fn sign(secrets: &[SigningSecret], id: &str, timestamp: u64, body: &[u8]) -> String {
    let mut signatures = Vec::with_capacity(secrets.len());
    for secret in secrets {
        let mut mac = secret.mac.clone();
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
        let secret: SigningSecret = SECRET.parse().unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        let signed = sign(std::slice::from_ref(&secret), id, 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let other = format!("whsec_{}", STANDARD.encode([7; 32])).parse().unwrap();
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
