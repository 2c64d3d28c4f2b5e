//! What happens to tasks, told through the outbox.

use serde::Serialize;

use super::history::TaskEvent;
use super::task::TaskId;
use crate::error::StoreError;
use crate::event::{DEFAULT_TARGET, NewEvent};

/// Where events of tasks are published: each is also written to the outbox, in the transaction that made it so, with the task's id as its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    topic: String,
    target: String,
}

/// What is published. A consumer in any language reads it.
#[derive(Debug, Serialize)]
struct Published<'a> {
    task: TaskId,
    event: &'a str,
    attempt: u32,
    owner: Option<crate::outbox::WorkerId>,
    /// Microseconds since 1970, by the database's clock.
    at_micros: i64,
    detail: Option<&'a str>,
}

impl Publish {
    /// To this topic.
    pub fn to(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), target: DEFAULT_TARGET.to_owned() }
    }

    /// By this sink.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = target.into();
        self
    }

    /// The event as it is enqueued.
    pub(crate) fn event(&self, told: &TaskEvent) -> Result<NewEvent, StoreError> {
        let published = Published {
            task: told.task,
            event: told.kind.word(),
            attempt: told.attempt,
            owner: told.owner,
            at_micros: told.at.as_micros(),
            detail: told.detail.as_deref(),
        };
        let event = NewEvent::new(&self.topic).target(&self.target).key(told.task.to_string());
        let event = event.json(&published)?;
        event.check(&crate::event::Limits::default())?;
        Ok(event)
    }
}
