//! A file of JSON lines, set aside when it is large enough.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink, SinkError};

use crate::json_line::json_line;

/// Where and how a [`File`] is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConfig {
    /// The file.
    pub path: PathBuf,
    /// When it has so many bytes it is set aside as `<path>.1`, and what was `.1` as `.2`; none: it grows.
    pub rotate_bytes: Option<u64>,
    /// So many that were set aside are kept.
    pub keep: u32,
    /// Events count as delivered only when they are on the disk.
    pub sync: bool,
}

impl FileConfig {
    /// This file; it grows, and waits for the disk.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), rotate_bytes: None, keep: 5, sync: true }
    }
}

/// Appends each event to a file as a line of JSON. Several processes may write to the same one, if it is not rotated.
#[derive(Debug)]
pub struct File {
    config: FileConfig,
    open: Arc<Mutex<Option<fs::File>>>,
}

impl File {
    /// A sink of this file, which is made with the first event.
    pub fn new(config: FileConfig) -> Self {
        Self { config, open: Arc::default() }
    }
}

#[async_trait]
impl Sink for File {
    fn capabilities(&self) -> Capabilities {
        Capabilities { keeps_order: true, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let text: Vec<u8> = events.iter().flat_map(json_line).collect();
        let (config, open) = (self.config.clone(), Arc::clone(&self.open));
        let written = tokio::task::spawn_blocking(move || append(&config, &open, &text)).await;
        let delivery = match written {
            Ok(Ok(())) => Delivery::Delivered,
            // A full disk or a missing directory has nothing to do with these events.
            Ok(Err(error)) => Delivery::down(format!("{}: {error}", self.config.path.display())),
            Err(error) => Delivery::down(format!("{}: {error}", self.config.path.display())),
        };
        vec![delivery; events.len()]
    }

    async fn check(&self) -> Result<(), SinkError> {
        let path = self.config.path.clone();
        let opened = tokio::task::spawn_blocking(move || open_file(&path).map(drop)).await;
        let name = self.config.path.display().to_string();
        match opened {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(SinkError::new(name, error.to_string())),
            Err(error) => Err(SinkError::new(name, error.to_string())),
        }
    }
}

fn append(config: &FileConfig, open: &Mutex<Option<fs::File>>, text: &[u8]) -> io::Result<()> {
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    let mut file = match open.take() {
        Some(file) => file,
        None => open_file(&config.path)?,
    };
    // One write: lines of several processes do not mix.
    file.write_all(text)?;
    if config.sync {
        file.sync_data()?;
    }
    if config.rotate_bytes.is_some_and(|most| file.metadata().is_ok_and(|known| known.len() >= most)) {
        drop(file);
        return rotate(&config.path, config.keep);
    }
    // Kept only if all went well: after an error it is opened anew, and a line that was torn is ended.
    *open = Some(file);
    Ok(())
}

/// Opens it for appending. A line that a crash has torn off is ended, so that the next one stands by itself.
fn open_file(path: &Path) -> io::Result<fs::File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

fn rotate(path: &Path, keep: u32) -> io::Result<()> {
    let aside = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    if keep == 0 {
        return fs::remove_file(path);
    }
    for number in (1..keep).rev() {
        if aside(number).exists() {
            fs::rename(aside(number), aside(number + 1))?;
        }
    }
    fs::rename(path, aside(1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    #[tokio::test]
    async fn a_torn_line_is_ended_before_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        fs::write(&path, b"{\"id\":\"torn").unwrap();
        let sink = File::new(FileConfig::new(&path));
        assert_eq!(sink.publish(&[claimed(1, None, b"1")]).await, [Delivery::Delivered]);
        assert_eq!(sink.publish(&[claimed(2, None, b"2")]).await, [Delivery::Delivered]);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[1..].iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
            "{text}"
        );
    }

    #[tokio::test]
    async fn files_are_set_aside_and_the_oldest_go() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let sink = File::new(FileConfig { rotate_bytes: Some(1), keep: 2, ..FileConfig::new(&path) });
        for position in 1..=4 {
            assert_eq!(sink.publish(&[claimed(position, None, b"1")]).await, [Delivery::Delivered]);
        }
        let position = |name: &str| {
            let text = fs::read_to_string(directory.path().join(name)).unwrap();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()["position"].as_i64()
        };
        assert_eq!((position("events.jsonl.1"), position("events.jsonl.2")), (Some(4), Some(3)));
        assert!(!directory.path().join("events.jsonl.3").exists());
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_is_down_not_the_event_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let sink = File::new(FileConfig::new(directory.path().join("missing/events.jsonl")));
        assert!(matches!(sink.publish(&[claimed(1, None, b"1")]).await[0], Delivery::Down { .. }));
        assert!(sink.check().await.unwrap_err().to_string().contains("missing"));
        fs::create_dir(directory.path().join("missing")).unwrap();
        sink.check().await.unwrap();
        assert_eq!(sink.publish(&[claimed(1, None, b"1")]).await, [Delivery::Delivered]);
    }
}
