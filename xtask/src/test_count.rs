//! Totals over all test binaries, read from what they print.

use std::fmt;
use std::ops::AddAssign;

/// Tests that passed, failed and were skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestCount {
    /// Ran, and held.
    pub(crate) passed: u64,
    /// Ran, and did not hold.
    pub(crate) failed: u64,
    /// Did not run, and said so.
    pub(crate) skipped: u64,
}

impl TestCount {
    /// Adds what a line of output reports, if it is a result line:
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
    /// Returns whether it is.
    pub(crate) fn add_line(&mut self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let Some(result) = line.trim().strip_prefix("test result: ") else { return false };
        let Some((_verdict, counts)) = result.split_once(". ") else { return false };
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let (Some(number), Some(what)) =
                (words.next().and_then(|word| word.parse::<u64>().ok()), words.next())
            else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
        true
    }
}

impl AddAssign for TestCount {
    fn add_assign(&mut self, other: TestCount) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for TestCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_added_up_and_all_others_passed_over() {
        let mut count = TestCount::default();
        for line in [
            "running 4 tests\n",
            "test claim ... ok\n",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s\n",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s\n",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "the test result: ok. 9 passed\n",
            "test result: gibberish\n",
        ] {
            count.add_line(line.as_bytes());
        }
        assert_eq!(count, TestCount { passed: 18, failed: 2, skipped: 1 });
        assert_eq!(count.to_string(), "18 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn nothing_is_said_about_skipped_tests_when_there_are_none() {
        assert_eq!(TestCount { passed: 1, failed: 0, skipped: 0 }.to_string(), "1 passed, 0 failed");
    }
}
