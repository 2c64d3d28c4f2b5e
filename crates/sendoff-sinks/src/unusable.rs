//! Why a server cannot be used: it is away, or something is wrong that somebody has to mend.

use std::fmt;

use sendoff::SinkError;

/// Why a server cannot be used, with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It cannot be reached, or cannot answer now.
    Away(String),
    /// The configuration, the credentials, or what is missing on the server.
    Wrong(String),
}

/// What is said of a server that is not there.
pub(crate) const REACHED: &str = "; is it running, and can it be reached from here?";

impl Unusable {
    /// A server that does not answer.
    pub(crate) fn silent() -> Self {
        Self::Away(format!("it does not answer{REACHED}"))
    }

    /// The same, with this before it.
    pub(crate) fn of(self, name: &str) -> Self {
        match self {
            Self::Away(text) => Self::Away(format!("{name}: {text}")),
            Self::Wrong(text) => Self::Wrong(format!("{name}: {text}")),
        }
    }

    /// As the answer of a sink's check.
    pub(crate) fn error(self, sink: &str) -> SinkError {
        match self {
            Self::Away(text) => SinkError::away(sink, text),
            Self::Wrong(text) => SinkError::new(sink, text),
        }
    }
}

/// What is not said to pass by itself does not.
impl From<String> for Unusable {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

impl From<Unusable> for String {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Away(text) | Unusable::Wrong(text) => text,
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(text) | Self::Wrong(text) => f.write_str(text),
        }
    }
}
