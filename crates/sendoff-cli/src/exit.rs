//! How the program ends: what each exit code means, and which error is which.

use std::fmt;
use std::process::ExitCode;

use sendoff::{StoreError, StoreErrorKind};

/// What a command has to say for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done.
    Yes,
    /// Asked and answered: no. There is no such event, a guarantee did not hold.
    No,
}

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Yes => Self::SUCCESS,
            Answer::No => Self::from(1),
        }
    }
}

/// Something that was asked for cannot be, whatever the servers say.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// As `bail!`, for what the caller asked.
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err(anyhow::Error::new($crate::exit::Refused(format!($($text)*))))
    };
}
pub(crate) use refuse;

/// The exit code of an error: 2 wrong arguments, 3 something could not be reached or failed, 4 the tables are not as they must be.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()).map(StoreError::kind);
    match kind {
        Some(StoreErrorKind::Schema) => 4,
        Some(StoreErrorKind::Rejected) => 2,
        Some(_) => 3,
        None if error.chain().any(|cause| cause.is::<Refused>()) => 2,
        None => 3,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn every_error_has_its_code() {
        let store = |kind| anyhow::Error::from(StoreError::new(kind, "claim", "event", "no"));
        assert_eq!(code(&store(StoreErrorKind::Schema)), 4);
        assert_eq!(code(&store(StoreErrorKind::Rejected)), 2);
        assert_eq!(code(&store(StoreErrorKind::Unavailable)), 3);
        let refused = || -> anyhow::Result<()> { refuse!("{} is no store", "x") };
        assert_eq!(code(&refused().context("outer").unwrap_err()), 2);
        assert_eq!(code(&anyhow::anyhow!("a disk is full")), 3);
    }
}
