//! Tasks: what an application wants done, and how far it has come.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::PAYLOAD_BYTES_MAX;
use crate::outbox::WorkerId;

/// The longest kind, in bytes.
pub const KIND_BYTES_MAX: usize = 100;
/// The longest unique key, in bytes.
pub const UNIQUE_KEY_BYTES_MAX: usize = 255;
/// So often a task is tried, unless it says otherwise.
pub const ATTEMPTS: u32 = 10;
/// The most attempts a task may ask for.
pub const ATTEMPTS_MAX: u32 = 1_000_000;
/// The longest error, detail and progress text that is kept, in characters.
pub const TEXT_CHARS_MAX: usize = 2_000;

/// What identifies a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskId(pub Uuid);

impl TaskId {
    /// A new one: UUIDv7, so that ids made later sort later.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for TaskId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

impl From<Uuid> for TaskId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

/// A task about to be written.
///
/// ```
/// use sendoff::tasks::NewTask;
/// # fn main() -> Result<(), sendoff::StoreError> {
/// let task = NewTask::new("mail.send").json(&serde_json::json!({ "to": "a@example.org" }))?.priority(5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Which handler runs it.
    pub kind: String,
    /// What the handler is given.
    pub payload: Vec<u8>,
    /// Not before this moment; none: at once.
    pub run_at: Option<Timestamp>,
    /// Higher ones go first.
    pub priority: i16,
    /// At most one live task has this key.
    pub unique_key: Option<String>,
    /// So often it is tried.
    pub attempts_max: u32,
    /// How long one attempt may take; none: as long as its worker lives.
    pub run_time: Option<Duration>,
}

impl NewTask {
    /// A task of this kind, with an empty payload, to be run at once.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            payload: Vec::new(),
            run_at: None,
            priority: 0,
            unique_key: None,
            attempts_max: ATTEMPTS,
            run_time: None,
        }
    }

    /// What the handler is given, as bytes.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.payload = payload.into();
        self
    }

    /// What the handler is given, as JSON: what a typed handler reads.
    ///
    /// # Errors
    /// `Rejected` if `content` cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(mut self, content: &T) -> Result<Self, StoreError> {
        self.payload = serde_json::to_vec(content)
            .map_err(|error| refuse("payload", "it cannot be written as JSON").caused_by(error))?;
        Ok(self)
    }

    /// Holds it back until then.
    #[must_use]
    pub fn run_at(mut self, at: impl Into<Timestamp>) -> Self {
        self.run_at = Some(at.into());
        self
    }

    /// Puts it before those of a lower priority; 0 if not said.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Makes it the one live task of this key.
    #[must_use]
    pub fn unique_key(mut self, key: impl Into<String>) -> Self {
        self.unique_key = Some(key.into());
        self
    }

    /// How often it is tried; 10 times if not said.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// How long one attempt may take before the task is given to another worker.
    #[must_use]
    pub fn run_time(mut self, time: Duration) -> Self {
        self.run_time = Some(time);
        self
    }

    /// Checks it. Every adapter does so before anything is written.
    ///
    /// # Errors
    /// `Rejected`, naming the part and the limit, and no content.
    pub fn check(&self) -> Result<(), StoreError> {
        check_kind(&self.kind)?;
        if let Some(key) = &self.unique_key {
            text("unique key", key, UNIQUE_KEY_BYTES_MAX)?;
        }
        at_most("payload", self.payload.len(), PAYLOAD_BYTES_MAX)?;
        if self.attempts_max == 0 || self.attempts_max > ATTEMPTS_MAX {
            let detail = format!("it is {}; 1 to {ATTEMPTS_MAX} are taken", self.attempts_max);
            return Err(refuse("attempts", &detail));
        }
        if self.run_time.is_some_and(|time| time < Duration::from_millis(1)) {
            return Err(refuse("run time", "it is less than a millisecond: no attempt could end in time"));
        }
        Ok(())
    }
}

/// Whether tasks may be of this kind.
pub(crate) fn check_kind(kind: &str) -> Result<(), StoreError> {
    text("kind", kind, KIND_BYTES_MAX)
}

fn text(part: &'static str, content: &str, most: usize) -> Result<(), StoreError> {
    if content.is_empty() {
        return Err(refuse(part, "it is empty"));
    }
    if content.contains(|c: char| c.is_control()) {
        return Err(refuse(part, "it has a control character, such as NUL or a line break"));
    }
    at_most(part, content.len(), most)
}

fn at_most(part: &'static str, bytes: usize, most: usize) -> Result<(), StoreError> {
    if bytes > most {
        return Err(refuse(part, &format!("it has {bytes} bytes; at most {most} are taken")));
    }
    Ok(())
}

fn refuse(part: &'static str, detail: &str) -> StoreError {
    StoreError::rejected("create task", part, detail.to_owned())
}

/// A text as it is kept: without NULs, which PostgreSQL cannot hold, and cut if it is long.
pub(crate) fn kept(text: &str) -> String {
    text.chars().filter(|c| *c != '\0').take(TEXT_CHARS_MAX).collect()
}

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Created, and nobody has said that it may run.
    NotStarted,
    /// It has an entry: a worker may claim it when it is due.
    Ready,
    /// A worker has it.
    Running,
    /// Done.
    Completed,
    /// Given up.
    Failed,
    /// Called off.
    Cancelled,
}

impl TaskStatus {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::NotStarted, Self::Ready, Self::Running, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word that stands in the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// From the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// It may still run: its unique key is taken.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::NotStarted | Self::Ready | Self::Running)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Proof of one claim of one task. A task that is claimed again has a higher attempt, and what is settled with an older token
/// changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskToken {
    /// Which task.
    pub task: TaskId,
    /// Which of its attempts.
    pub attempt: u32,
    /// Who claimed it.
    pub owner: WorkerId,
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its identity.
    pub id: TaskId,
    /// Which handler runs it.
    pub kind: String,
    /// What the handler is given.
    pub payload: Vec<u8>,
    /// How far it has come.
    pub status: TaskStatus,
    /// Higher ones go first.
    pub priority: i16,
    /// At most one live task has this key.
    pub unique_key: Option<String>,
    /// Not before this moment; after a failed attempt, when it is tried again.
    pub run_at: Timestamp,
    /// How often it was claimed.
    pub attempt: u32,
    /// So often it is tried.
    pub attempts_max: u32,
    /// How long one attempt may take.
    pub run_time: Option<Duration>,
    /// Who has it, or had it last.
    pub owner: Option<WorkerId>,
    /// When this attempt is taken from its worker, if it has a limit of its own.
    pub lease_until: Option<Timestamp>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was last claimed.
    pub started_at: Option<Timestamp>,
    /// When it was completed, given up or called off.
    pub finished_at: Option<Timestamp>,
    /// What went wrong last.
    pub error: Option<String>,
    /// What its handler last said about how far it is.
    pub progress: Option<String>,
}

impl Task {
    /// Proof of the claim that this is the answer to; none for a task that nobody has.
    pub fn token(&self) -> Option<TaskToken> {
        let owner = self.owner.filter(|_| self.status == TaskStatus::Running)?;
        Some(TaskToken { task: self.id, attempt: self.attempt, owner })
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It was written.
    Applied,
    /// The claim is not the task's current one, or the task is not live: nothing was changed.
    Stale,
}

impl Settled {
    /// Whether it was written.
    pub const fn is_applied(self) -> bool {
        matches!(self, Self::Applied)
    }
}

/// What became of a wish to create a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// There is a new task.
    New(TaskId),
    /// There is a live task with the same unique key already: this one. Nothing was written.
    Exists(TaskId),
}

impl Created {
    /// The task, new or not.
    pub const fn id(self) -> TaskId {
        match self {
            Self::New(id) | Self::Exists(id) => id,
        }
    }

    /// Whether it is new.
    pub const fn is_new(self) -> bool {
        matches!(self, Self::New(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_the_part_and_the_limit() {
        let fine = || NewTask::new("mail.send").unique_key("k").payload("abc");
        fine().check().unwrap();
        for (task, part) in [
            (NewTask::new(""), "kind: rejected: it is empty"),
            (NewTask::new("a\nb"), "kind: rejected: it has a control character"),
            (NewTask::new("k".repeat(101)), "kind: rejected: it has 101 bytes; at most 100"),
            (fine().unique_key(""), "unique key: rejected: it is empty"),
            (fine().unique_key("k".repeat(256)), "unique key: rejected: it has 256 bytes"),
            (fine().payload(vec![0; PAYLOAD_BYTES_MAX + 1]), "payload: rejected: it has 1048577 bytes"),
            (fine().attempts_max(0), "attempts: rejected: it is 0"),
            (fine().run_time(Duration::ZERO), "run time: rejected: it is less"),
        ] {
            let error = task.check().expect_err(part).to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn words_are_read_back() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::from_word(status.word()), Some(status));
        }
        assert_eq!(TaskStatus::from_word("done"), None);
    }
}
