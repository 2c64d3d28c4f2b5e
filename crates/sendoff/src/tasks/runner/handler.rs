//! What runs tasks: a function for each kind.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::context::Context;

/// Why a handler did not do what it was to do.
///
/// Every error is one of these by `?`, and the task is tried again:
///
/// ```
/// # use sendoff::tasks::TaskError;
/// fn read(text: &str) -> Result<u32, TaskError> {
///     let number = text.parse::<u32>()?;
///     if number == 0 { Err(TaskError::fatal("zero is never right")) } else { Ok(number) }
/// }
/// assert!(read("x").is_err());
/// ```
pub struct TaskError {
    pub(super) fate: Fate,
    pub(super) text: String,
}

/// What becomes of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is tried again after what the policy says.
    Retry,
    /// It is tried again after this.
    RetryIn(Duration),
    /// It is given up.
    Fatal,
}

impl TaskError {
    /// It is tried again, as the runner's policy says.
    pub fn retry(text: impl Into<String>) -> Self {
        Self { fate: Fate::Retry, text: text.into() }
    }

    /// It is tried again after this wait.
    pub fn retry_in(wait: Duration, text: impl Into<String>) -> Self {
        Self { fate: Fate::RetryIn(wait), text: text.into() }
    }

    /// It is given up: another attempt would end the same way.
    pub fn fatal(text: impl Into<String>) -> Self {
        Self { fate: Fate::Fatal, text: text.into() }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.text, self.fate)
    }
}

// Not an error itself, or this would be a second way to make one of one.
impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        Self::retry(text)
    }
}

pub(super) type Running = Pin<Box<dyn Future<Output = Result<(), TaskError>> + Send>>;
type Handler = Arc<dyn Fn(Context, Vec<u8>) -> Running + Send + Sync>;

/// A function for each kind.
#[derive(Clone, Default)]
pub(super) struct Handlers(BTreeMap<String, Handler>);

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Handlers {
    pub(super) fn kinds(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn of(&self, kind: &str) -> Option<Handler> {
        self.0.get(kind).cloned()
    }

    pub(super) fn add_typed<T, F, Fut>(&mut self, kind: String, handler: F)
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(Context, T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let read = move |context: Context, payload: Vec<u8>| -> Running {
            match serde_json::from_slice::<T>(&payload) {
                Ok(content) => Box::pin(handler(context, content)),
                Err(error) => {
                    let text = format!("its payload is not what its handler takes: {error}");
                    Box::pin(std::future::ready(Err(TaskError::fatal(text))))
                }
            }
        };
        self.0.insert(kind, Arc::new(read));
    }

    pub(super) fn add_bytes<F, Fut>(&mut self, kind: String, handler: F)
    where
        F: Fn(Context, Vec<u8>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        self.0.insert(kind, Arc::new(move |context, payload| Box::pin(handler(context, payload))));
    }
}
