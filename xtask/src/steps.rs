//! Named steps with their times, so that a reader of a long log knows where it is and what it cost.

use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps that were run.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    finished: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: String,
    elapsed: Duration,
    succeeded: bool,
}

impl Steps {
    /// Announces a step, runs it, and says how it went and how long it took.
    pub(crate) fn run<T>(&mut self, name: &str, action: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("==> {name}");
        let started_at = Instant::now();
        let result = action();
        let elapsed = started_at.elapsed();
        match &result {
            Ok(_) => eprintln!("<== {name}: ok, {:.1} s", elapsed.as_secs_f64()),
            Err(error) => eprintln!("<== {name}: FAILED, {:.1} s: {error:#}", elapsed.as_secs_f64()),
        }
        self.finished.push(Step { name: name.to_owned(), elapsed, succeeded: result.is_ok() });
        result
    }

    /// All steps, one line each.
    pub(crate) fn summary(&self) -> String {
        let width = self.finished.iter().map(|step| step.name.len()).max().unwrap_or_default();
        let line = |step: &Step| {
            let verdict = if step.succeeded { "ok" } else { "FAILED" };
            format!("  {:width$}  {:>7.1} s  {verdict}\n", step.name, step.elapsed.as_secs_f64())
        };
        self.finished.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn the_summary_names_every_step_and_its_verdict() {
        let mut steps = Steps::default();
        steps.run("good", || Ok(())).unwrap();
        let failed: Result<()> = steps.run("not so good", || bail!("no"));
        assert!(failed.is_err());
        let summary = steps.summary();
        let verdicts: Vec<&str> = summary.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(verdicts, ["ok", "FAILED"]);
    }
}
