//! `sendoff enqueue`: one event, or one for each line.

use std::io::{IsTerminal as _, Read as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use schemars::JsonSchema;
use sendoff::claim::Timestamp;
use sendoff::{Limits, NewEvent, Outbox};
use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use super::lines;
use crate::args::EnqueueArgs;
use crate::exit::{Answer, Refused, refuse};
use crate::output::{print, print_json};
use crate::shape::Id;
use crate::site::Site;

/// No line is longer: the largest payload in base64, headers, and room.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// At most so many bytes of events wait for their commit, whatever the batch.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Off a terminal, progress is a line so often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// What was written: one event, or lines.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Written {
    One {
        id: Id,
    },
    Lines {
        /// So many events, the skipped lines and the empty ones left out.
        written: u64,
        /// So many lines were read.
        lines: u64,
    },
}

/// Writes what it is given.
pub(crate) async fn run(args: &EnqueueArgs) -> Result<Answer> {
    super::own_tables(&args.store, "enqueue")?;
    let site = Site::of(&args.store).await?;
    // So that tables that are not there are told as such.
    site.inspect().await?;
    if args.lines {
        Lines { site: &site, outbox: site.outbox()?, args, progress: Progress::new() }.run().await?;
        return Ok(Answer::Yes);
    }
    let ids = site.write(&site.outbox()?, vec![single(args)?], true).await?;
    let id = ids.first().context("an id")?;
    if args.json {
        print_json(&Written::One { id: Id::of(id) })?;
    } else {
        print(&format!("{id}\n"))?;
    }
    Ok(Answer::Yes)
}

/// The one event that the command line describes.
fn single(args: &EnqueueArgs) -> Result<NewEvent> {
    let payload = match args.payload.as_deref() {
        None => Vec::new(),
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
            bytes
        }
        Some(text) => match text.strip_prefix('@') {
            Some(path) => std::fs::read(path).map_err(|error| Refused(format!("{path}: {error}")))?,
            None => text.as_bytes().to_vec(),
        },
    };
    let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(&payload).is_ok();
    let mut event =
        NewEvent::new(args.topic.as_deref().unwrap_or_default()).target(&args.target).payload(payload);
    event.key.clone_from(&args.key);
    event.content_type = args.content_type.clone().or(is_json.then(|| "application/json".to_owned()));
    event.headers = args.headers.iter().cloned().collect();
    event.event_id = args.id;
    event.deliver_at = args.deliver_at.map(Timestamp::from);
    event.check(&Limits::default())?;
    Ok(event)
}

/// Standard input, a batch at a time.
struct Lines<'a> {
    site: &'a Site,
    outbox: Outbox,
    args: &'a EnqueueArgs,
    progress: Progress,
}

impl Lines<'_> {
    async fn run(mut self) -> Result<()> {
        let mut input = BufReader::with_capacity(1024 * 1024, tokio::io::stdin());
        // The number of the line last read, and of the last one that is committed.
        let (mut number, mut committed) = (0, self.args.skip);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut line = Vec::new();
        while read_line(&mut input, &mut line).await? {
            number += 1;
            if number <= self.args.skip || line.trim_ascii().is_empty() {
                continue;
            }
            let event = self.event(&line, number, committed)?;
            bytes += event.payload.len();
            batch.push(event);
            if batch.len() >= self.args.batch as usize || bytes >= BATCH_BYTES_MAX {
                self.commit(std::mem::take(&mut batch), number, committed).await?;
                (committed, bytes) = (number, 0);
            }
        }
        if number < self.args.skip {
            refuse!("there are only {number} lines, and --skip leaves out {}", self.args.skip);
        }
        self.commit(batch, number, committed).await?;
        self.progress.end();
        let written = self.progress.written;
        if self.args.json {
            return print_json(&Written::Lines { written, lines: number });
        }
        print(&format!("{written} events are written\n"))
    }

    fn event(&self, line: &[u8], number: u64, committed: u64) -> Result<NewEvent> {
        if line.len() as u64 > LINE_BYTES_MAX {
            refuse!("line {number}: it has more than {LINE_BYTES_MAX} bytes; {}", go_on(committed));
        }
        lines::event(line, &self.args.target, &Limits::default())
            .map_err(|error| anyhow!(Refused(format!("line {number}: {error}; {}", go_on(committed)))))
    }

    async fn commit(&mut self, batch: Vec<NewEvent>, number: u64, committed: u64) -> Result<()> {
        let count = batch.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let written = self.site.write(&self.outbox, batch, true).await;
        written.with_context(|| format!("lines {} to {number}: {}", committed + 1, go_on(committed)))?;
        self.progress.tell(count);
        Ok(())
    }
}

/// What is safe, and how the rest is written.
fn go_on(committed: u64) -> String {
    match committed {
        0 => "nothing was written".to_owned(),
        _ => format!("all up to line {committed} is written: mend it and go on with --skip {committed}"),
    }
}

/// The next line without its end; false: there is none. A line that is too long is read so far that it is seen to be.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Result<bool> {
    line.clear();
    let read = input.take(LINE_BYTES_MAX + 2).read_until(b'\n', line).await.context("standard input")?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(read > 0)
}

/// How far it is: a spinner on a terminal, a line now and then elsewhere.
struct Progress {
    written: u64,
    bar: Option<ProgressBar>,
    started: Instant,
    told: Instant,
}

impl Progress {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {pos} events written, {per_sec}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::new_spinner().with_style(style)
        });
        Self { written: 0, bar, started: Instant::now(), told: Instant::now() }
    }

    fn tell(&mut self, count: u64) {
        self.written += count;
        if let Some(bar) = &self.bar {
            bar.set_position(self.written);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            eprintln!("{} events written in {} s", self.written, self.started.elapsed().as_secs());
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
