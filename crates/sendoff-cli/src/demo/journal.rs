//! What the demo's workers deliver to: one file that they all append to. Its order is the order of deliveries.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink};
use serde::{Deserialize, Serialize};

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The process.
    pub(crate) pid: u32,
    pub(crate) id: uuid::Uuid,
    pub(crate) key: String,
    /// Its number in its key, as the producers counted.
    pub(crate) number: u64,
}

/// What the producers put into an event.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) number: u64,
}

/// Appends deliveries, each call with one write.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    pid: u32,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().append(true).open(path).context("the journal")?;
        Ok(Self { file, pid: std::process::id() })
    }

    fn line(&self, claimed: &Claimed) -> Result<String, serde_json::Error> {
        let payload: Payload = serde_json::from_slice(&claimed.event.payload)?;
        let key = claimed.event.key.clone().unwrap_or_default();
        let entry = Entry { pid: self.pid, id: claimed.event.event_id.0, key, number: payload.number };
        Ok(serde_json::to_string(&entry)? + "\n")
    }
}

#[async_trait]
impl Sink for Journal {
    fn capabilities(&self) -> Capabilities {
        Capabilities { keeps_order: true, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let lines: Result<String, _> = events.iter().map(|event| self.line(event)).collect();
        let lines = match lines {
            Ok(lines) => lines,
            Err(error) => return vec![Delivery::reject(error.to_string()); events.len()],
        };
        match (&self.file).write_all(lines.as_bytes()) {
            Ok(()) => vec![Delivery::Delivered; events.len()],
            Err(error) => vec![Delivery::down(error.to_string()); events.len()],
        }
    }
}

/// Reads what was delivered. A line that a killed process has torn was not delivered.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path).context("the journal")?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// How many lines there are, without reading them twice.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    read: u64,
    pub(crate) lines: u64,
}

impl Tail {
    pub(crate) fn follow(&mut self, path: &Path) -> Result<()> {
        use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
        let mut file = File::open(path).context("the journal")?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 && line.ends_with('\n') {
            self.read += line.len() as u64;
            self.lines += u64::from(serde_json::from_str::<Entry>(&line).is_ok());
            line.clear();
        }
        Ok(())
    }
}
