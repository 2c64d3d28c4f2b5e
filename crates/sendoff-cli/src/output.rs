//! What people and programs are shown: tables that align, times that can be read, JSON.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use sendoff::outbox::Failure;
use serde::Serialize;

/// Rows under a head. What is in a cell cannot end its line or move the cursor.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Column {
    name: &'static str,
    is_number: bool,
}

impl Table {
    /// The names of the columns; those of numbers, which stand at the right, begin with `#`.
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let column = |name: &&'static str| Column {
            name: name.trim_start_matches('#'),
            is_number: name.starts_with('#'),
        };
        Self { columns: names.iter().map(column).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell)).collect());
    }

    /// The whole of it; `is_plain` leaves out what only a terminal understands.
    fn text(&self, is_plain: bool) -> String {
        let width = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
            cells.chain([self.columns[index].name.len()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &[String]| {
            let mut line = String::new();
            for ((cell, column), width) in cells.iter().zip(&self.columns).zip(&widths) {
                let width = *width;
                let _ = match column.is_number {
                    true => write!(line, "{cell:>width$}  "),
                    false => write!(line, "{cell:<width$}  "),
                };
            }
            line.trim_end().to_owned()
        };
        let head = line(&self.columns.iter().map(|column| column.name.to_owned()).collect::<Vec<_>>());
        let mut text = if is_plain { head } else { format!("\x1b[1m{head}\x1b[0m") };
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(row));
            text.push('\n');
        }
        text
    }

    pub(crate) fn print(&self) -> Result<()> {
        let is_plain = !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some();
        print(&self.text(is_plain))
    }
}

/// Text that stays in its place: what would move the cursor is written out.
pub(crate) fn visible(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|letter| {
            let escaped: String =
                if letter.is_control() { letter.escape_default().collect() } else { letter.to_string() };
            escaped.chars().collect::<Vec<_>>()
        })
        .collect()
}

/// At most so many letters of a text.
pub(crate) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// So much of an error fits a line.
pub(crate) const ERROR_SHOWN: usize = 60;

/// What went wrong, as far as a line has room for it.
pub(crate) fn failure(failure: Option<&Failure>) -> String {
    let shown =
        |failure: &Failure| short(&format!("{}: {}", failure.cause.word(), failure.error), ERROR_SHOWN);
    failure.map_or_else(|| "-".to_owned(), shown)
}

/// A count that goes no further than `most`.
pub(crate) fn count(count: u64, most: u64) -> String {
    if count >= most { format!("{most}+") } else { count.to_string() }
}

/// A moment, from microseconds since 1970.
pub(crate) fn moment(micros: i64) -> String {
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
    match SystemTime::UNIX_EPOCH.checked_add(since) {
        Some(time) => humantime::format_rfc3339_millis(time).to_string(),
        None => format!("{micros} µs after 1970"),
    }
}

/// How long, to the second from a second on.
pub(crate) fn span(duration: Duration) -> String {
    let rounded = match duration.as_secs() {
        0 => Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or_default()),
        seconds => Duration::from_secs(seconds),
    };
    humantime::format_duration(rounded).to_string()
}

/// Prints to standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Prints one JSON value and a newline.
pub(crate) fn print_json<T: Serialize>(value: &T) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("JSON")?;
    text.push('\n');
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_stay_in_their_lines() {
        let mut table = Table::new(&["NAME", "#COUNT"]);
        table.row(["é".to_owned(), "7".to_owned()]);
        table.row(["a\nb\x1b[2J".to_owned(), "1200".to_owned()]);
        let expected = "NAME           COUNT\né                  7\na\\nb\\u{1b}[2J   1200\n";
        assert_eq!(table.text(true), expected);
        assert!(table.text(false).starts_with("\x1b[1mNAME"));
    }

    #[test]
    fn times_can_be_read() {
        assert_eq!(moment(1_700_000_000_123_456), "2023-11-14T22:13:20.123Z");
        assert_eq!(span(Duration::from_millis(3_723_400)), "1h 2m 3s");
        assert_eq!(span(Duration::from_micros(12_700)), "12ms");
        assert_eq!((short("abcé", 3), short("abc", 3)), ("abc…".to_owned(), "abc".to_owned()));
    }
}
