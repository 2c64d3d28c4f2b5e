//! What workers note of their sinks, for people to read.

use std::collections::{HashMap, HashSet};

use super::counts::count_max;
use super::operate::cut;
use super::{Arg, SqlDatabase, SqlOutbox};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::outbox::{SinkDown, WorkerId};
use crate::stores::sql::{Bind, Statement};

/// So much of what a sink said is kept, in characters.
const ERROR_CHARS_MAX: usize = 900;

const PREFIX: &str = "down:";

/// Where a worker's note is written down.
pub(super) fn note_name(worker: WorkerId) -> String {
    format!("{PREFIX}{worker}")
}

/// All that is noted, and when that was read.
pub(super) struct Notes {
    now: Timestamp,
    pub(super) by_worker: HashMap<WorkerId, SinkDown>,
}

impl<D: SqlDatabase> SqlOutbox<D> {
    pub(super) async fn notes(&self) -> Result<Notes, StoreError> {
        let statement = self.templates.fill(include_str!("notes.sql"), &[("limit", count_max())])?;
        let mut notes = Notes { now: Timestamp::from_micros(0), by_worker: HashMap::new() };
        for mut row in self.read("inspect", &statement).await? {
            notes.now = row.moment("now")?;
            let (name, value) = (row.optional_text("name")?, row.optional_text("value")?);
            let worker = name.and_then(|name| name.strip_prefix(PREFIX)?.parse().ok().map(WorkerId));
            let down = value.as_deref().and_then(read);
            notes.by_worker.extend(worker.zip(down));
        }
        Ok(notes)
    }

    pub(super) async fn write_note(&self, worker: WorkerId, down: Option<&str>) -> Result<(), StoreError> {
        let name = note_name(worker);
        let Some(error) = down else {
            self.write("note", &[self.forget_notes([name])?]).await?;
            return Ok(());
        };
        let notes = self.notes().await?;
        // Those of workers that are gone go too: nobody else takes them away.
        let statement = self.templates.fill(include_str!("registered.sql"), &[("limit", count_max())])?;
        let mut registered = HashSet::new();
        for mut row in self.read("note", &statement).await? {
            registered.insert(WorkerId(row.uuid("worker")?));
        }
        let gone = notes.by_worker.keys().filter(|other| !registered.contains(other)).copied();
        let forget = self.forget_notes(gone.map(note_name).chain([name.clone()]))?;
        let value = format!("{} {}", notes.now.as_micros(), cut(error, ERROR_CHARS_MAX));
        let args = [("name", Arg::from(name.as_str())), ("value", Arg::from(value.as_str()))];
        let note = self.templates.fill(include_str!("note.sql"), &args)?;
        self.write("note", &[forget, note]).await?;
        Ok(())
    }

    pub(super) fn forget_notes(
        &self,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Statement, StoreError> {
        let names = Arg::List(names.into_iter().map(Bind::Text).collect());
        self.templates.fill(include_str!("forget_notes.sql"), &[("names", names)])
    }
}

/// `MICROSECONDS ERROR`
fn read(value: &str) -> Option<SinkDown> {
    let (since, error) = value.split_once(' ')?;
    Some(SinkDown { since: since.parse().ok()?, error: error.to_owned() })
}
