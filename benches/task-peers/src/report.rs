//! What is printed.

use std::fmt::Write as _;

use anyhow::Result;

use crate::measure::Measured;
use crate::systems::System;
use crate::tally::Faults;

const HEADINGS: [&str; 9] = [
    "workers",
    "system",
    "enqueued/s",
    "of sendoff's",
    "run/s",
    "lowest to highest",
    "of sendoff's",
    "missed/repeated/unsettled",
    "failed",
];
/// The lock file that this was built with.
const LOCK: &str = include_str!("../Cargo.lock");

/// What was measured of one system with so many workers, round by round.
#[derive(Debug)]
pub(crate) struct Row {
    workers: u32,
    package: &'static str,
    rounds: Vec<Option<Measured>>,
    errors: Vec<String>,
}

impl Row {
    pub(crate) fn new(workers: u32, package: &'static str) -> Self {
        Self { workers, package, rounds: Vec::new(), errors: Vec::new() }
    }

    pub(crate) fn add(&mut self, measured: Result<Measured>) {
        match measured {
            Ok(measured) => self.rounds.push(Some(measured)),
            Err(error) => {
                self.rounds.push(None);
                self.errors.push(format!("{error:#}"));
            }
        }
    }

    /// Everything was measured, and every task run and settled, once.
    pub(crate) fn is_sound(&self) -> bool {
        self.rounds.iter().all(|round| round.is_some_and(|round| round.faults == Faults::default()))
    }

    fn figures(&self, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
        self.rounds.iter().flatten().map(figure).collect()
    }

    /// To the other's in the same round.
    fn ratios(&self, other: &Self, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.filter_map(|(own, other)| Some(figure(own.as_ref()?) / figure(other.as_ref()?))).collect()
    }

    fn cells(&self, other: &Self) -> [String; 9] {
        let whole = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.0}"));
        let ratio = |ratios| median(ratios).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let run = self.figures(|round| round.run);
        let (lowest, highest) = (run.iter().copied().reduce(f64::min), run.iter().copied().reduce(f64::max));
        let sum = |fault: fn(&Faults) -> u64| -> u64 {
            self.rounds.iter().flatten().map(|round| fault(&round.faults)).sum()
        };
        let faults = [
            sum(|faults| u64::from(faults.missed)),
            sum(|faults| u64::from(faults.repeated)),
            sum(|faults| faults.unsettled),
        ];
        [
            self.workers.to_string(),
            named(self.package),
            whole(median(self.figures(|round| round.enqueued))),
            ratio(self.ratios(other, |round| round.enqueued)),
            whole(median(run)),
            format!("{} to {}", whole(lowest), whole(highest)),
            ratio(self.ratios(other, |round| round.run)),
            faults.map(|fault| fault.to_string()).join("/"),
            self.errors.len().to_string(),
        ]
    }
}

/// With its version.
fn named(package: &str) -> String {
    format!("{package} {}", version(LOCK, package).unwrap_or("of an unknown version"))
}

fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let line = lock.lines().skip_while(|line| *line != name).nth(1)?;
    line.strip_prefix("version = \"")?.strip_suffix('"')
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

pub(crate) fn print_settings(systems: &[Box<dyn System>]) {
    for system in systems {
        println!(
            "{}: enqueued by {}; settings: {}",
            named(system.package()),
            system.enqueues_by(),
            system.settings()
        );
    }
}

/// A table that aligns, for people and for Markdown; below it, what went wrong.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    for row in rows {
        // The first of so many workers is what the others are compared with.
        let first = rows.iter().find(|other| other.workers == row.workers).unwrap_or(row);
        lines.push(row.cells(first));
    }
    let width = |column: usize| lines.iter().map(|cells| cells[column].len()).max().unwrap_or_default();
    let widths: [usize; 9] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, cells) in lines.iter().enumerate() {
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            // Names to the left, numbers to the right.
            let _ = if column == 1 {
                write!(text, "| {cell:<width$} ")
            } else {
                write!(text, "| {cell:>width$} ")
            };
        }
        text.push_str("|\n");
        if index == 0 {
            let rule = |(column, width): (usize, &usize)| {
                format!("|{}{}", "-".repeat(width + 1), if column == 1 { "-" } else { ":" })
            };
            text.extend(widths.iter().enumerate().map(rule));
            text.push_str("|\n");
        }
    }
    for row in rows {
        for error in &row.errors {
            let _ = writeln!(text, "{}, {} workers: {error}", row.package, row.workers);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(enqueued: f64, run: f64) -> Result<Measured> {
        Ok(Measured { enqueued, run, faults: Faults::default() })
    }

    #[test]
    fn ratios_are_of_the_same_round_and_lines_align() {
        let (mut own, mut other) = (Row::new(1, "sendoff"), Row::new(1, "awa"));
        for run in [100.0, 1_000.0, 200.0] {
            own.add(measured(10.0, run));
            other.add(measured(5.0, run / 4.0));
        }
        other.add(Err(anyhow::anyhow!("no such table")));
        assert!(own.is_sound() && !other.is_sound());
        let table = table(&[own, other]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[..4].iter().all(|line| line.len() == lines[0].len()), "{table}");
        assert!(lines[3].contains(" 0.50 ") && lines[3].contains(" 0.25 "), "{table}");
        assert!(lines[3].contains(" 25 to 250 "), "{table}");
        assert_eq!(lines[4], "awa, 1 workers: no such table");
    }

    #[test]
    fn a_version_is_the_one_of_the_lock_file() {
        let lock = "[[package]]\nname = \"awake\"\nversion = \"9\"\n\n[[package]]\nname = \"awa\"\nversion = \"0.6.9\"\n";
        assert_eq!(version(lock, "awa"), Some("0.6.9"));
        assert_eq!(version(lock, "none"), None);
    }
}
