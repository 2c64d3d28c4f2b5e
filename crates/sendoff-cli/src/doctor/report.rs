//! All that was found, and how it is shown.

use std::fmt::Write as _;

use anyhow::Result;
use schemars::JsonSchema;
use sendoff::{StoreError, StoreErrorKind};
use serde::Serialize;

use super::finding::{Finding, Severity};
use crate::output::{print, print_json, visible};

/// Lines are this long where there is no terminal to ask.
const WIDTH: usize = 100;

/// Lines are never shorter, whatever the terminal says.
const WIDTH_MIN: usize = 40;

/// What was found, by which checks, and what could not be looked at.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Report {
    findings: Vec<Finding>,
    checks: Vec<&'static str>,
    skipped: Vec<Skipped>,
}

/// A check that could not be made.
#[derive(Debug, Serialize, JsonSchema)]
struct Skipped {
    check: &'static str,
    reason: String,
}

impl Report {
    /// Takes what a check found. One that the database refuses is skipped; a database that is gone ends it all.
    pub(super) fn take(&mut self, check: &'static str, outcome: Result<Vec<Finding>>) -> Result<()> {
        match outcome {
            Ok(found) => {
                self.checks.push(check);
                self.findings.extend(found);
            }
            Err(error) => match refusal(&error) {
                Some(reason) => self.skip(check, reason),
                None => return Err(error),
            },
        }
        Ok(())
    }

    /// Says why a check, or a part of it, was not made.
    pub(super) fn skip(&mut self, check: &'static str, reason: impl Into<String>) {
        self.skipped.push(Skipped { check, reason: reason.into() });
    }

    /// Whether there is anything that should not be.
    pub(super) fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    /// Shows it: the worst first.
    pub(super) fn show(mut self, as_json: bool) -> Result<()> {
        self.findings.sort_by_key(|finding| finding.severity);
        if as_json { print_json(&self) } else { print(&self.text(width())) }
    }

    fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let _ = writeln!(text, "{}  {}", finding.severity.word(), finding.code);
            for (head, body) in [("", &*finding.what), ("Why: ", finding.why), ("Do:  ", &*finding.todo)] {
                wrap(&mut text, head, &visible(body), width);
            }
            text.push('\n');
        }
        for skipped in &self.skipped {
            wrap(&mut text, "", &visible(&format!("skipped {}: {}", skipped.check, skipped.reason)), width);
        }
        let checks = self.checks.len();
        let _ = match self.findings.len() {
            0 => writeln!(text, "nothing found: {checks} checks"),
            count => {
                writeln!(text, "{count} found by {checks} checks; docs/runbook.md has a section for each")
            }
        };
        text
    }
}

/// Why the database did not answer, if it is there and refused to.
fn refusal(error: &anyhow::Error) -> Option<String> {
    if let Some(store) = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()) {
        let cause = std::error::Error::source(store).map(|cause| format!(" ({cause})")).unwrap_or_default();
        return (store.kind() != StoreErrorKind::Unavailable).then(|| format!("{store}{cause}"));
    }
    error.chain().find_map(|cause| match cause.downcast_ref::<sqlx::Error>()? {
        sqlx::Error::Database(refused) => Some(refused.message().to_owned()),
        _ => None,
    })
}

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(WIDTH).max(WIDTH_MIN)
}

/// Adds a text in lines of a width, indented by two, and by its head from the second line on.
fn wrap(to: &mut String, head: &str, body: &str, width: usize) {
    let _ = write!(to, "  {head}");
    let indent = 2 + head.len();
    let mut column = indent;
    for word in body.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            let _ = write!(to, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            to.push(' ');
            column += 1;
        }
        to.push_str(word);
        column += length;
    }
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::super::finding::{DEAD_LETTERS, NO_WORKER};
    use super::*;

    #[test]
    fn findings_are_blocks_and_their_lines_fit() {
        let mut report = Report::default();
        assert_eq!(report.text(WIDTH), "nothing found: 0 checks\n");
        report
            .take("dead-letters", Ok(vec![DEAD_LETTERS.found("One event is dead\x1b[2J.", "Nothing.")]))
            .unwrap();
        assert!(report.is_healthy());
        report.take("workers", Ok(vec![NO_WORKER.found("No worker is there.", "Start one.")])).unwrap();
        report.skip("plan", "no right");
        assert!(!report.is_healthy());
        let expected = "note  dead-letters\n  One event is dead\\u{1b}[2J.\n  Why: They will not be tried again by\n       themselves.\n  Do:  Nothing.\n\n\
                        problem  no-worker\n  No worker is there.\n  Why: Nobody delivers what is waiting.\n  Do:  Start one.\n\n  \
                        skipped plan: no right\n2 found by 2 checks; docs/runbook.md has a section for each\n";
        assert_eq!(report.text(40), expected);
    }

    #[test]
    fn only_a_database_that_is_there_can_refuse() {
        let mut report = Report::default();
        let refused = StoreError::new(StoreErrorKind::Rejected, "inspect", "outbox", "permission denied");
        report.take("lanes", Err(refused).context("looking")).unwrap();
        assert_eq!((report.skipped[0].check, report.checks.len()), ("lanes", 0));
        assert!(report.skipped[0].reason.contains("permission denied"));
        let gone = StoreError::new(StoreErrorKind::Unavailable, "inspect", "outbox", "it is gone");
        assert!(report.take("lanes", Err(gone.into())).is_err());
        assert!(report.take("lanes", Err(sqlx::Error::PoolTimedOut.into())).is_err());
    }
}
