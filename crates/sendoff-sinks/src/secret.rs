//! Where a secret is.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// A password, a token or the like, or where it is. It is read anew whenever it is needed, so that one that changes needs no restart.
///
/// In a configuration it is a text, `{ file = "/run/secrets/redis" }` or `{ env = "REDIS_PASSWORD" }`. It is shown nowhere; where it is may be.
///
/// ```
/// use sendoff_sinks::Secret;
///
/// assert_eq!(format!("{:?}", Secret::Plain("t1ger".to_owned())), "Secret(..)");
/// assert_eq!(format!("{:?}", Secret::File("/run/secrets/redis".into())), "Secret(file /run/secrets/redis)");
/// ```
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub enum Secret {
    /// The secret itself.
    Plain(String),
    /// A file that has it, and nothing else but a line break at its end.
    File(PathBuf),
    /// An environment variable that has it.
    Env(String),
}

/// A secret as it stands in a configuration.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "a text, { file = \"…\" } or { env = \"…\" }")]
enum Written {
    Plain(String),
    File { file: PathBuf },
    Env { env: String },
}

impl From<Written> for Secret {
    fn from(written: Written) -> Self {
        match written {
            Written::Plain(text) => Self::Plain(text),
            Written::File { file } => Self::File(file),
            Written::Env { env } => Self::Env(env),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("Secret(..)"),
            Self::File(file) => write!(f, "Secret(file {})", file.display()),
            Self::Env(name) => write!(f, "Secret(env {name})"),
        }
    }
}

impl Secret {
    /// What it is now; `field`: what it is for.
    ///
    /// # Errors
    /// Where it should be and is not.
    pub fn read(&self, field: &str) -> Result<String, String> {
        let (text, place) = match self {
            Self::Plain(text) => return Ok(text.clone()),
            Self::File(file) => {
                let place = format!("the file {}", file.display());
                let read = std::fs::read_to_string(file);
                (read.map_err(|error| format!("`{field}`: {place} cannot be read: {error}"))?, place)
            }
            Self::Env(name) => {
                let place = format!("the environment variable {name}");
                let set = std::env::var_os(name).ok_or_else(|| format!("`{field}`: {place} is not set"))?;
                // Without the error, which has the value.
                (set.into_string().map_err(|_| format!("`{field}`: {place} is no text"))?, place)
            }
        };
        let secret =
            text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
        if secret.is_empty() { Err(format!("`{field}`: {place} is empty")) } else { Ok(secret.to_owned()) }
    }
}

/// What it is now, if there is one.
///
/// # Errors
/// Where it should be and is not.
#[cfg_attr(not(any(feature = "_aws", feature = "_tls")), allow(dead_code))]
pub(crate) fn read(secret: Option<&Secret>, field: &str) -> Result<Option<String>, String> {
    secret.map(|secret| secret.read(field)).transpose()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_read_anew_from_where_it_is() {
        assert_eq!(Secret::Plain("a\n".to_owned()).read("password").unwrap(), "a\n");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        let secret = Secret::File(file.clone());
        for (text, expected) in [("a", "a"), ("b\n", "b"), ("c\r\n", "c"), (" d \n\n", " d \n")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(secret.read("password").unwrap(), expected);
        }
        let path = std::env::var("PATH").unwrap();
        assert_eq!(Secret::Env("PATH".to_owned()).read("token").unwrap(), path);
    }

    #[test]
    fn where_a_secret_should_be_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("s3cret");
        let named = |text: &str| format!("`password`: the file {} {text}", file.display());
        let secret = Secret::File(file.clone());
        assert!(secret.read("password").unwrap_err().starts_with(&named("cannot be read: No such file")));
        for text in ["", "\n"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(secret.read("password").unwrap_err(), named("is empty"));
        }
        std::fs::write(&file, b"h1dden\xff").unwrap();
        let error = secret.read("password").unwrap_err();
        assert!(error.starts_with(&named("cannot be read")) && !error.contains("h1dden"), "{error}");
        let unset = Secret::Env("SENDOFF_NO_SUCH_VARIABLE".to_owned());
        let error = "`token`: the environment variable SENDOFF_NO_SUCH_VARIABLE is not set";
        assert_eq!(unset.read("token").unwrap_err(), error);
    }

    #[test]
    fn a_configuration_says_where_it_is() {
        let of = |json| serde_json::from_value::<Secret>(json);
        assert_eq!(of(json!("s3cret")).unwrap(), Secret::Plain("s3cret".to_owned()));
        assert_eq!(of(json!({ "file": "/a" })).unwrap(), Secret::File("/a".into()));
        assert_eq!(of(json!({ "env": "A" })).unwrap(), Secret::Env("A".to_owned()));
        for wrong in
            [json!(7), json!({}), json!({ "file": "/a", "env": "s3cret" }), json!({ "plain": "s3cret" })]
        {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("a text, { file") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn only_where_a_secret_is_is_shown() {
        let shown = |secret: Secret| format!("{secret:?}");
        assert_eq!(shown(Secret::Plain("s3cret".to_owned())), "Secret(..)");
        assert_eq!(shown(Secret::File("/run/secrets/x".into())), "Secret(file /run/secrets/x)");
        assert_eq!(shown(Secret::Env("X".to_owned())), "Secret(env X)");
    }
}
