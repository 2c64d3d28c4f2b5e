//! What the demo's workers deliver to: one file that they all append to. Its order is the order of deliveries.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Now and then a call takes so long.
const SLOW: Duration = Duration::from_millis(100);

/// A call that took longer than this found its connection closed: its process must have been frozen.
const CONNECTION_CLOSED: Duration = Duration::from_secs(1);

/// What the file has.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A slow event is on its way.
    Begun {
        pid: u32,
        id: Uuid,
    },
    Delivered(Entry),
}

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The process.
    pub(crate) pid: u32,
    pub(crate) id: Uuid,
    pub(crate) key: String,
    /// Its number in its key, as the producers counted.
    pub(crate) number: u64,
    /// Of the lease under which it was delivered: a later one of its lane has a higher one.
    pub(crate) epoch: i64,
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
    slow_one_of: u64,
}

impl Journal {
    /// A call that has one event of so many in it is slow.
    pub(crate) fn open(path: &Path, slow_one_of: u64) -> Result<Self> {
        let file = OpenOptions::new().append(true).open(path).context("the journal")?;
        Ok(Self { file, pid: std::process::id(), slow_one_of })
    }

    fn delivered(&self, claimed: &Claimed) -> Result<Line> {
        let payload: Payload = serde_json::from_slice(&claimed.event.payload)?;
        let key = claimed.event.key.clone().unwrap_or_default();
        Ok(Line::Delivered(Entry {
            pid: self.pid,
            id: claimed.event.event_id.0,
            key,
            number: payload.number,
            epoch: claimed.token.epoch,
        }))
    }

    fn append(&self, lines: &[Line]) -> Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        Ok((&self.file).write_all(&text)?)
    }

    fn is_slow(&self, id: Uuid) -> bool {
        id.as_u128().is_multiple_of(u128::from(self.slow_one_of.max(1)))
    }

    /// False: it took so long that nothing can be sent any more.
    async fn wait(&self, events: &[Claimed]) -> Result<bool> {
        let ids = events.iter().map(|claimed| claimed.event.event_id.0);
        let slow: Vec<Line> =
            ids.filter(|id| self.is_slow(*id)).map(|id| Line::Begun { pid: self.pid, id }).collect();
        if slow.is_empty() {
            return Ok(true);
        }
        self.append(&slow)?;
        let began = Instant::now();
        tokio::time::sleep(SLOW).await;
        Ok(began.elapsed() < CONNECTION_CLOSED)
    }
}

#[async_trait]
impl Sink for Journal {
    fn capabilities(&self) -> Capabilities {
        Capabilities { keeps_order: true, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let all = |delivery| vec![delivery; events.len()];
        let lines: Vec<Line> = match events.iter().map(|event| self.delivered(event)).collect() {
            Ok(lines) => lines,
            Err(error) => return all(Delivery::reject(error.to_string())),
        };
        match self.wait(events).await {
            Ok(true) => {}
            Ok(false) => return all(Delivery::retry("no answer in time")),
            Err(error) => return all(Delivery::down(error.to_string())),
        }
        match self.append(&lines) {
            Ok(()) => all(Delivery::Delivered),
            Err(error) => all(Delivery::down(error.to_string())),
        }
    }
}

/// Reads what was delivered. A line that a killed process has torn was not delivered.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path).context("the journal")?;
    let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(lines
        .filter_map(|line| match line {
            Line::Delivered(entry) => Some(entry),
            Line::Begun { .. } => None,
        })
        .collect())
}

/// What has been written so far, without reading it twice.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    read: u64,
    pub(crate) deliveries: u64,
    delivered: HashSet<Uuid>,
    /// Slow events that are not delivered, and who has begun with them.
    begun: HashMap<Uuid, Vec<u32>>,
}

impl Tail {
    pub(crate) fn follow(&mut self, path: &Path) -> Result<()> {
        use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
        let mut file = File::open(path).context("the journal")?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut reader = BufReader::new(file);
        let mut text = String::new();
        while reader.read_line(&mut text)? > 0 && text.ends_with('\n') {
            self.read += text.len() as u64;
            match serde_json::from_str(&text) {
                Ok(Line::Begun { pid, id }) => self.begun.entry(id).or_default().push(pid),
                Ok(Line::Delivered(entry)) => {
                    self.deliveries += 1;
                    self.delivered.insert(entry.id);
                    self.begun.remove(&entry.id);
                }
                Err(_) => {}
            }
            text.clear();
        }
        Ok(())
    }

    /// How many different events were delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.len() as u64
    }

    /// A slow event that this process has on its way.
    pub(crate) fn in_hand_of(&self, pid: u32) -> Option<Uuid> {
        self.begun.iter().find(|(_, pids)| pids.last() == Some(&pid)).map(|(id, _)| *id)
    }

    /// What this process had on its way has failed.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.begun.retain(|_, pids| pids.last() != Some(&pid));
    }

    /// It is on its way, by another process than this.
    pub(crate) fn is_with_another(&self, id: Uuid, pid: u32) -> bool {
        self.begun.get(&id).and_then(|pids| pids.last()).is_some_and(|last| *last != pid)
    }

    pub(crate) fn is_delivered(&self, id: Uuid) -> bool {
        self.delivered.contains(&id)
    }
}
