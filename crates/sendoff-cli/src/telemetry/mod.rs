//! What is logged, and how: to standard error, as text or as lines of JSON.

mod limit;

use std::io::{self, Write};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use self::limit::Limit;
use crate::config::{LogFormat, TelemetryConfig};
use crate::exit::{Refused, refuse};
use crate::output::visible;

/// The crates whose lines these are.
const OURS: &str = "sendoff";

/// Whether standard error is for programs.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Logs from now on.
pub(crate) fn start(config: &TelemetryConfig) -> Result<()> {
    let filter = targets(&config.log)?;
    let lines = tracing_subscriber::registry().with(filter).with(Limit::default());
    let set = match config.format {
        LogFormat::Text => {
            let text = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Lines);
            tracing::subscriber::set_global_default(lines.with(text))
        }
        LogFormat::Json => {
            IS_JSON.store(true, Ordering::Relaxed);
            let json = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(io::stderr);
            tracing::subscriber::set_global_default(lines.with(json))
        }
    };
    Ok(set?)
}

/// Whether it says something that can be logged.
pub(crate) fn check(config: &TelemetryConfig) -> Result<()> {
    targets(&config.log).map(drop)
}

/// Says something that is not of any level: to people as it is, to programs as a line of the log.
pub(crate) fn say(line: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        tracing::info!("{line}");
    } else {
        eprintln!("{line}");
    }
}

/// A level is that of our own crates: of others only warnings are logged, since what they say at lower levels may have more in it than it should.
/// With a `=` it is a list of crates and their levels, and counts as it stands.
fn targets(log: &str) -> Result<Targets> {
    // Nothing would be read as `error`.
    if !log.is_empty()
        && let Ok(level) = LevelFilter::from_str(log)
    {
        return Ok(Targets::new().with_default(level.min(LevelFilter::WARN)).with_target(OURS, level));
    }
    if !log.contains('=') {
        refuse!(
            "{log:?} is no log level: give off, error, warn, info, debug or trace, or crates with theirs: sendoff_relay=debug,sqlx=info"
        );
    }
    Ok(Targets::from_str(log)
        .map_err(|error| Refused(format!("the log level {log:?} cannot be read: {error}")))?)
}

/// Standard error, to which each event is one line, whatever is in it: what a broker says may have line breaks in it, and what a terminal obeys.
#[derive(Debug, Clone, Copy)]
struct Lines;

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        *self
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(one_line(line).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn one_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    visible(text.trim_end_matches('\n')) + "\n"
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_that_of_our_own_crates() {
        let info = targets("info").unwrap();
        assert!(info.would_enable("sendoff_relay::claim", &Level::INFO));
        assert!(!info.would_enable("sendoff_relay::claim", &Level::DEBUG));
        assert!(!info.would_enable("sqlx::query", &Level::INFO));
        assert!(info.would_enable("sqlx::query", &Level::WARN));
        assert!(!targets("trace").unwrap().would_enable("async_nats", &Level::DEBUG));
        assert!(!targets("error").unwrap().would_enable("sqlx::query", &Level::WARN));
        assert!(targets("sqlx=debug").unwrap().would_enable("sqlx::query", &Level::DEBUG));
        for wrong in ["loud", "", "sendoff=loud"] {
            assert_eq!(crate::exit::code(&targets(wrong).unwrap_err()), 2, "{wrong}");
        }
    }

    #[test]
    fn an_event_is_one_line() {
        assert_eq!(one_line(b"WARN x\x1b[2J\nforged\n"), "WARN x\\u{1b}[2J\\nforged\n");
    }
}
