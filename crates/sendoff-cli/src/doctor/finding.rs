//! What can be found: every kind with its code, its weight and its reason, in one table. `docs/runbook.md` has a section for each code.

use schemars::JsonSchema;
use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// A promise is broken, or events stand still.
    Problem,
    /// It will be a problem if nobody looks.
    Warning,
    /// Good to know; the exit code stays 0.
    Note,
}

impl Severity {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Finding {
    /// Stable: runbooks and scripts know it by this.
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// What is so.
    pub(super) what: String,
    /// Why that matters.
    pub(super) why: &'static str,
    /// What to do about it.
    pub(super) todo: String,
}

impl Finding {
    /// The same, of another weight than is usual.
    pub(super) fn at(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

/// A kind of finding.
#[derive(Debug)]
pub(super) struct Kind {
    code: &'static str,
    severity: Severity,
    why: &'static str,
}

impl Kind {
    pub(super) fn found(&self, what: impl Into<String>, todo: impl Into<String>) -> Finding {
        Finding {
            code: self.code,
            severity: self.severity,
            what: what.into(),
            why: self.why,
            todo: todo.into(),
        }
    }
}

macro_rules! kinds {
    ($($name:ident: $code:literal, $severity:ident, $why:literal;)*) => {
        $(pub(super) const $name: Kind = Kind { code: $code, severity: Severity::$severity, why: $why };)*

        /// All of them.
        #[cfg(test)]
        const ALL: &[&Kind] = &[$(&$name),*];
    };
}

kinds! {
    SCHEMA_MISSING: "schema-missing", Problem, "Without its tables there is no outbox: nothing can be written or delivered.";
    SCHEMA_STALE: "schema-stale", Problem, "This program and the tables are of two versions; it refuses to work with them.";
    SCHEMA_NEWER: "schema-newer", Problem, "A newer program has changed the tables; this one does not know what they mean, and refuses to work with them.";
    SCHEMA_DAMAGED: "schema-damaged", Problem, "Statements that need what is missing fail, and with them delivery or the operator's commands.";
    MISSING_INDEX: "missing-index", Problem, "Statements that the index serves read the whole table instead: delivery slows down as the backlog grows.";
    INVALID_INDEX: "invalid-index", Problem, "The server keeps the index up to date and never reads it: all of its cost and none of its use.";
    FETCH_NOT_BY_INDEX: "fetch-not-by-index", Warning, "Every fetch reads and sorts what is waiting, so that its cost grows with the backlog, when speed is needed most.";
    PINNED_XMIN: "pinned-xmin", Warning, "While it is open, no row deleted since can be removed, in any table. sendoff's fetch steps over them; the disk fills, and everything else slows down.";
    PREPARED_TRANSACTION: "prepared-transaction", Problem, "It survives every restart and keeps deleted rows and its locks until somebody ends it; a coordinator that has forgotten it never will.";
    REPLICATION_SLOT: "replication-slot", Problem, "A slot that nobody reads keeps deleted rows and write-ahead log for its reader, until the disk is full.";
    STANDBY_FEEDBACK: "standby-feedback", Warning, "A long query on a standby with hot_standby_feedback keeps deleted rows on this server, as a transaction here would.";
    SEQUENCE_CACHE: "sequence-cache", Problem, "Sessions take positions in blocks, so that a later transaction may get a lower one: the order along a key is gone.";
    AUTOVACUUM_OFF: "autovacuum-off", Problem, "Every event is inserted and deleted. Without vacuum its row stays for ever, and the table only grows.";
    DEAD_ROWS: "dead-rows", Warning, "Vacuum does not keep up: the table and its indexes grow, and what reads them without a floor slows down.";
    ISOLATION: "isolation", Warning, "Sessions begin with this level. sendoff's own set READ COMMITTED where another would do harm; the host's transactions have this.";
    CLOCK_DIFFERENCE: "clock-difference", Note, "Leases do not depend on it, they are kept in the database's time. Log lines and created_at cannot be compared.";
    NOT_DURABLE: "not-durable", Note, "A commit that was answered may be gone after a crash of the server: an event of it is lost, or is delivered again.";
    TABLE_ENGINE: "table-engine", Problem, "Only InnoDB has transactions: an event in this table is there although the host's transaction was rolled back.";
    BINLOG_FORMAT: "binlog-format", Problem, "InnoDB refuses to write at READ COMMITTED, as sendoff does, while the binary log is one of statements: workers cannot claim or settle (error 1665).";
    AUTO_INCREMENT_STEPS: "auto-increment-steps", Note, "With several servers that are written to, positions of two servers do not follow time: the order along a key holds only for what is written on one.";
    NOT_STRICT: "not-strict", Warning, "A text that is too long is cut off with a warning only, and a key that is cut off is another key: its order is gone.";
    LONG_TRANSACTION: "long-transaction", Warning, "While its snapshot is kept, InnoDB cannot purge what was deleted since, and every fetch steps over it; what it has written stays locked.";
    JOURNAL_MODE: "journal-mode", Problem, "Without a write-ahead log every reader holds up the writers and every writer the readers: the host's transactions and the relay stop each other.";
    NETWORK_FILE: "network-file", Problem, "SQLite's locks and its shared memory do not hold across machines: the file can be damaged, and two workers can have one lane.";
    INTEGRITY: "integrity", Problem, "The file is damaged: reads may fail or be wrong.";
    NO_WORKER: "no-worker", Problem, "Nobody delivers what is waiting.";
    SILENT_WORKER: "silent-worker", Warning, "It neither stopped in good order nor renewed its lease: it crashed, is frozen, or cannot reach the database.";
    SAME_NAME: "same-name", Note, "Usual for one relay with several workers and for copies of one deployment. It is no danger, lanes have one owner; but if only one was meant to run, another is.";
    SAME_RANGE: "same-range", Warning, "The lanes were to be one relay's. It is no danger, a lane has one owner at a time; but a deployment runs that should not, or one has another's range.";
    EXCLUSIVE_BESIDE: "exclusive-beside", Warning, "Exclusive relays stand by only for each other, and for the same lanes: more than one relay has lanes of this target.";
    UNCOVERED_LANES: "uncovered-lanes", Problem, "Events of these lanes stand still: every worker that is there was started for others.";
    WORKER_COUNT: "worker-count", Warning, "Fewer than expected: some did not start or are lost. More: a deployment runs that should not.";
    RETRIES_AFTER_SCALE_OUT: "retries-after-scale-out", Warning, "More workers send more at once: the sink may not bear it, or the new worker cannot deliver. It may be chance as well: something else may have begun then.";
    CAREFUL_LANE: "careful-lane", Warning, "Its owners were lost several times in a row: an event of it may be killing its workers. Until that is known, such lanes are worked one event at a time.";
    LANE_SKEW: "lane-skew", Warning, "Events of one key go one after the other, and one worker has the lane: more workers do not make it faster.";
    LATE: "late", Warning, "Workers are there, and it has not been delivered all the same: the sink is down or slow, or there are too few workers.";
    LATE_KEY: "late-key", Warning, "It fails again and again, and all later events of its key wait for it.";
    BLOCKED_KEYS: "blocked-keys", Warning, "Their attempts ran out and their policy is to block: nothing more of these keys is delivered until somebody decides.";
    DEAD_LETTERS: "dead-letters", Note, "They will not be tried again by themselves.";
    PAUSED: "paused", Warning, "Nothing of it is delivered, wherever its workers run, until somebody resumes it.";
    REUSED_EVENT_ID: "reused-event-id", Warning, "Consumers know a second copy by the event's id: they take the second event for a copy of the first, and drop it.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_its_section_in_the_runbook_and_none_is_left_over() {
        let runbook = include_str!("../../../../docs/runbook.md");
        let sections: Vec<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let codes: Vec<&str> = ALL.iter().map(|kind| kind.code).collect();
        let distinct: BTreeSet<&str> = codes.iter().copied().collect();
        assert_eq!(distinct.len(), codes.len(), "a code is there twice");
        assert_eq!(sections.iter().copied().collect::<BTreeSet<_>>(), distinct);
        assert_eq!(sections.len(), codes.len(), "a section is there twice");
    }

    #[test]
    fn codes_are_words_with_hyphens() {
        for kind in ALL {
            assert!(
                kind.code.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'),
                "{}",
                kind.code
            );
            assert!(kind.why.ends_with('.'), "{}", kind.code);
        }
    }
}
