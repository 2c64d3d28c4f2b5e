//! What the demo shows while it runs: bars on a terminal, a line a second elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Lines come so often.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Bars, or lines. On standard error: the verdict alone goes to standard output.
#[derive(Debug)]
pub(crate) struct Progress {
    bars: Option<Bars>,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Bars {
    all: MultiProgress,
    committed: ProgressBar,
    delivered: ProgressBar,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) wanted: u64,
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    pub(crate) delivered: u64,
}

impl Progress {
    pub(crate) fn new(wanted: u64) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let style = ProgressStyle::with_template("{prefix:>10} {bar:40} {pos:>8}  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = |name: &'static str| {
                let bar = all.add(ProgressBar::new(wanted));
                bar.set_style(style.clone());
                bar.set_prefix(name);
                bar
            };
            Bars { committed: bar("committed"), delivered: bar("delivered"), all: all.clone() }
        });
        Self { bars, told: None }
    }

    /// Something happened.
    pub(crate) fn say(&self, text: &str) {
        match &self.bars {
            Some(bars) => {
                let _ = bars.all.println(text);
            }
            None => eprintln!("{text}"),
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        if let Some(bars) = &self.bars {
            for bar in [&bars.committed, &bars.delivered] {
                bar.set_length(step.wanted.max(step.committed));
            }
            bars.committed.set_position(step.committed);
            bars.committed.set_message(format!("and {} rolled back", step.rolled_back));
            bars.delivered.set_position(step.delivered);
            return;
        }
        if self.told.is_none_or(|told| told.elapsed() >= LINE_EVERY) {
            self.told = Some(Instant::now());
            let Step { committed, rolled_back, delivered, .. } = step;
            eprintln!("committed {committed:>7}   rolled back {rolled_back:>6}   delivered {delivered:>7}");
        }
    }

    pub(crate) fn end(self) {
        if let Some(bars) = self.bars {
            bars.committed.finish();
            bars.delivered.finish();
        }
    }
}
