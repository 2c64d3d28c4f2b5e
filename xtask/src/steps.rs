//! Named steps with their times, so that a reader of a long log knows where it is and what it cost.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps that were run, some of them side by side.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    finished: Mutex<Vec<Step>>,
}

#[derive(Debug)]
struct Step {
    name: String,
    elapsed: Duration,
    succeeded: bool,
}

impl Steps {
    /// Announces a step, runs it, and says how it went and how long it took.
    pub(crate) fn run<T>(&self, name: &str, action: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("==> {name}");
        let started_at = Instant::now();
        let result = action();
        let elapsed = started_at.elapsed();
        match &result {
            Ok(_) => eprintln!("<== {name}: ok, {:.1} s", elapsed.as_secs_f64()),
            Err(error) => eprintln!("<== {name}: FAILED, {:.1} s: {error:#}", elapsed.as_secs_f64()),
        }
        self.finished().push(Step { name: name.to_owned(), elapsed, succeeded: result.is_ok() });
        result
    }

    /// All steps in the order they ended, one line each.
    pub(crate) fn summary(&self) -> String {
        let finished = self.finished();
        let width = finished.iter().map(|step| step.name.len()).max().unwrap_or_default();
        let line = |step: &Step| {
            let verdict = if step.succeeded { "ok" } else { "FAILED" };
            format!("  {:width$}  {:>7.1} s  {verdict}\n", step.name, step.elapsed.as_secs_f64())
        };
        finished.iter().map(line).collect()
    }

    fn finished(&self) -> MutexGuard<'_, Vec<Step>> {
        // A list is whole even if the thread that held it panicked.
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn the_summary_names_every_step_and_its_verdict() {
        let steps = Steps::default();
        steps.run("good", || Ok(())).unwrap();
        let failed: Result<()> = steps.run("not so good", || bail!("no"));
        assert!(failed.is_err());
        let summary = steps.summary();
        let verdicts: Vec<&str> = summary.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(verdicts, ["ok", "FAILED"]);
    }
}
