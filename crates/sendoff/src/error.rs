//! What can go wrong in a store. The kind of an error is its next step: a caller matches on
//! [`StoreErrorKind`] and knows what to do without reading the text.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// What to do about a [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Others were faster for the whole time allowed. Nothing was changed: try again, with jitter.
    Contended,
    /// The database cannot be reached or broke off. Back off, then reconnect. Whether the last
    /// statement took effect is unknown; a claim that did is given back when its lease ends.
    Unavailable,
    /// The table or the connection is not what it must be: stop, and do what the text says.
    Schema,
    /// The caller asked for something that cannot be: an unknown column, a value of the wrong type,
    /// a bad name. The same call fails again.
    Rejected,
    /// A row holds something that cannot be read as the type asked for.
    Corrupt,
}

impl StoreErrorKind {
    /// The kind in one word, as it appears in error texts and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Contended => "contended",
            Self::Unavailable => "unavailable",
            Self::Schema => "schema",
            Self::Rejected => "rejected",
            Self::Corrupt => "corrupt",
        }
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A failed store operation: what was tried, on what, why it failed and what to do next.
///
/// No value that a caller gave appears in the text, nor does a connection URL; the database's own message,
/// which is quoted, may name a key it met.
pub struct StoreError {
    kind: StoreErrorKind,
    op: &'static str,
    subject: String,
    detail: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// An error of `kind` met while doing `op` ("claim", "open table") on `subject` (a table's name).
    pub fn new(
        kind: StoreErrorKind,
        op: &'static str,
        subject: impl Into<String>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { kind, op, subject: subject.into(), detail: detail.into(), source: None }
    }

    /// Keeps the driver's own error as the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A caller's mistake.
    pub fn rejected(
        op: &'static str,
        subject: impl Into<String>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(StoreErrorKind::Rejected, op, subject, detail)
    }

    /// A table or connection that is not as it must be.
    pub fn schema(
        op: &'static str,
        subject: impl Into<String>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(StoreErrorKind::Schema, op, subject, detail)
    }

    /// What to do about it.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The operation that failed.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// What it failed on: a table, or the database.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}: {}: {}", self.op, self.subject, self.kind, self.detail)
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause: Option<&dyn StdError> = self.source.as_deref().map(|e| e as &dyn StdError);
        while let Some(error) = cause {
            write!(f, "\n  caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_failed_on_what_and_why() {
        let error = StoreError::rejected("claim", "orders", "no column `staus`; did you mean `status`?");
        assert_eq!(error.to_string(), "claim on orders: rejected: no column `staus`; did you mean `status`?");
    }

    #[test]
    fn debug_tells_the_whole_story() {
        let error = StoreError::new(StoreErrorKind::Unavailable, "claim", "orders", "connection lost")
            .caused_by(std::io::Error::other("broken pipe"));
        assert!(format!("{error:?}").ends_with("caused by: broken pipe"));
    }
}
