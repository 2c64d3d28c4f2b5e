//! Runs tasks: claims them, gives each to the handler of its kind, and settles what that came to.

mod attempt;
mod config;
mod context;
mod handler;
mod inline;
mod keeper;
mod state;

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use config::{RetryPolicy, RunnerConfig};
pub use context::Context;
pub use handler::TaskError;
pub use inline::Drained;
pub use state::{Bell, RunnerStats};

use self::attempt::Ended;
use self::handler::Handlers;
use self::state::Shared;
use super::{Claim, Member, Store, Task, TaskToken, When, WorkerId, check_kind};
use crate::error::StoreError;

/// How long handlers that were told to end are waited for.
const GRACE: Duration = Duration::from_secs(1);
/// How soon a settlement that failed is tried again.
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

/// Runs tasks with handlers of the host's.
///
/// ```no_run
/// # async fn example(store: std::sync::Arc<dyn sendoff::tasks::Store>) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::tasks::{Context, Runner, TaskError};
///
/// #[derive(serde::Deserialize)]
/// struct Mail { to: String }
///
/// let runner = Runner::new(store).handle("mail.send", |context: Context, mail: Mail| async move {
///     context.progress("connecting").await?;
///     println!("to {}", mail.to);
///     Ok(())
/// });
/// let stop = async { /* until the process is told to end */ };
/// runner.run(stop).await?;
/// # Ok(())
/// # }
/// ```
///
/// A task whose handler fails, or panics, is tried again after a while; one whose attempts have run out, or whose error is [fatal](TaskError::fatal), is given up. A task is run more than once where
/// its worker was lost, or froze, before it was settled: what a handler does elsewhere must bear that.
pub struct Runner {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    handlers: Handlers,
    config: RunnerConfig,
    bell: Bell,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("handlers", &self.inner.handlers).finish_non_exhaustive()
    }
}

impl Runner {
    /// One without handlers, which runs nothing.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let config = RunnerConfig::default();
        let inner = Inner { store, handlers: Handlers::default(), config, bell: Bell::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Works as this says.
    #[must_use]
    pub fn config(self, config: RunnerConfig) -> Self {
        self.with(|inner| inner.config = config)
    }

    /// Runs tasks of this kind: their payload is read as JSON.
    #[must_use]
    pub fn handle<T, F, Fut>(self, kind: impl Into<String>, handler: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(Context, T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        self.with(|inner| inner.handlers.add_typed(kind.into(), handler))
    }

    /// Runs tasks of this kind: their payload is handed over as it is.
    #[must_use]
    pub fn handle_bytes<F, Fut>(self, kind: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context, Vec<u8>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        self.with(|inner| inner.handlers.add_bytes(kind.into(), handler))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        // Nobody else has it before it runs: a copy is never made.
        let mut inner = Arc::try_unwrap(self.inner).unwrap_or_else(|inner| Inner {
            store: Arc::clone(&inner.store),
            handlers: inner.handlers.clone(),
            config: inner.config.clone(),
            bell: inner.bell.clone(),
        });
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// To ring when a transaction with new tasks has committed: they are looked for at once.
    pub fn bell(&self) -> Bell {
        self.inner.bell.clone()
    }

    /// Runs tasks until `shutdown` is ready, then lets those that run end, settles them and leaves.
    ///
    /// # Errors
    /// `Rejected` for kinds that cannot be and settings that make no sense; as the store's, if the worker cannot join. Later errors are
    /// reported and tried again.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<RunnerStats, StoreError> {
        let shared = self.inner.join().await?;
        let stats = {
            let work = pin!(Work::new(Arc::clone(&self.inner), &shared).run(shutdown));
            let keep = pin!(keeper::keep(&self.inner, &shared));
            tokio::select! {
                () = work => shared.state().stats,
                never = keep => match never {},
            }
        };
        let worker = shared.member().worker;
        if let Err(error) = self.inner.store.leave(worker).await {
            tracing::warn!(%error, "could not leave: what is left is returned when the lease has ended");
        }
        Ok(stats)
    }
}

impl Inner {
    async fn join(&self) -> Result<Shared, StoreError> {
        let kinds = self.handlers.kinds();
        for kind in &kinds {
            check_kind(kind)?;
        }
        let refuse =
            |what: &'static str, detail: &'static str| Err(StoreError::rejected("run tasks", what, detail));
        if kinds.is_empty() {
            return refuse("handlers", "there are none: nothing would ever be run");
        }
        if self.config.concurrency == 0 {
            return refuse("concurrency", "it is 0: nothing would ever be run");
        }
        if self.config.lease < Duration::from_millis(100) {
            return refuse("lease", "it is less than 100 ms: no sign of life could be in time");
        }
        let worker = WorkerId::generate();
        let member = Member { worker, name: self.config.name.clone(), kinds, lease: self.config.lease };
        let shared = Shared::new(member.clone());
        self.store.join(&member).await?;
        Ok(shared)
    }
}

/// The loop.
struct Work<'s> {
    inner: Arc<Inner>,
    shared: &'s Shared,
    attempts: JoinSet<Ended>,
    /// What has ended and is not settled: with what runs no more than the concurrency.
    ended: Vec<Ended>,
    next_look: Instant,
    pause: Duration,
    next_settle: Instant,
    /// The answer to a claim was lost: this worker may own tasks that it does not know of.
    has_unknown: bool,
}

impl<'s> Work<'s> {
    fn new(inner: Arc<Inner>, shared: &'s Shared) -> Self {
        let now = Instant::now();
        let pause = inner.config.poll_first;
        Self {
            inner,
            shared,
            attempts: JoinSet::new(),
            ended: Vec::new(),
            next_look: now,
            pause,
            next_settle: now,
            has_unknown: false,
        }
    }

    async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let bell = self.inner.bell.clone();
        loop {
            self.settle().await;
            self.look().await;
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(ended) = self.attempts.join_next(), if !self.attempts.is_empty() => self.end(ended),
                () = bell.rung() => self.next_look = Instant::now(),
                () = tokio::time::sleep_until(self.next_look), if self.free() > 0 => {}
                () = tokio::time::sleep_until(self.next_settle), if !self.ended.is_empty() => {}
            }
            while let Some(ended) = self.attempts.try_join_next() {
                self.end(ended);
            }
        }
        self.stop().await;
    }

    /// Lets what runs end, for a while.
    async fn stop(mut self) {
        let deadline = Instant::now() + self.inner.config.drain;
        self.drain(deadline).await;
        if !self.attempts.is_empty() {
            tracing::warn!(
                tasks = self.attempts.len(),
                "tasks still run; they are told to end, and given back"
            );
            self.shared.state().cancel_all();
            self.drain(Instant::now() + GRACE).await;
        }
        self.attempts.shutdown().await;
        self.settle().await;
    }

    async fn drain(&mut self, deadline: Instant) {
        while !self.attempts.is_empty() || !self.ended.is_empty() {
            self.settle().await;
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => return,
                Some(ended) = self.attempts.join_next(), if !self.attempts.is_empty() => self.end(ended),
                () = tokio::time::sleep_until(self.next_settle), if !self.ended.is_empty() => {}
            }
            while let Some(ended) = self.attempts.try_join_next() {
                self.end(ended);
            }
        }
    }

    fn free(&self) -> u32 {
        let taken = u32::try_from(self.attempts.len() + self.ended.len()).unwrap_or(u32::MAX);
        self.inner.config.concurrency.saturating_sub(taken)
    }

    fn end(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        // A handler's panic is caught where it happens.
        let Ok(ended) = ended else { return };
        self.shared.state().running.remove(&ended.token);
        self.ended.push(ended);
        self.next_settle = Instant::now();
    }

    async fn settle(&mut self) {
        if self.ended.is_empty() || self.next_settle > Instant::now() {
            return;
        }
        if let Err(error) = attempt::settle(&self.inner, self.shared, &mut self.ended).await {
            tracing::warn!(%error, tasks = self.ended.len(), "tasks cannot be settled; trying again");
            self.next_settle = Instant::now() + SETTLE_PAUSE;
        }
    }

    /// Claims as many tasks as there is room for, and starts them.
    async fn look(&mut self) {
        let free = self.free();
        if free == 0 || self.next_look > Instant::now() {
            return;
        }
        if self.has_unknown {
            self.give_back_unknown().await;
        }
        let member = self.shared.member();
        let claim = Claim { worker: member.worker, kinds: member.kinds, limit: free };
        let tasks = match self.inner.store.claim(&claim).await {
            Ok(tasks) => tasks,
            Err(error) => {
                tracing::warn!(%error, "no tasks could be claimed; trying again");
                self.has_unknown = true;
                Vec::new()
            }
        };
        let found = tasks.len();
        for task in tasks {
            self.start(task);
        }
        if found >= free as usize {
            // There may be more, as soon as there is room.
            self.pause = self.inner.config.poll_first;
            self.next_look = Instant::now();
        } else {
            let config = &self.inner.config;
            self.pause = if found > 0 { config.poll_first } else { (self.pause * 2).min(config.poll_most) };
            self.next_look = Instant::now() + self.pause;
        }
    }

    fn start(&mut self, task: Task) {
        let Some(token) = task.token() else { return };
        let (cancel, cancelled) = watch::channel(false);
        let mut state = self.shared.state();
        state.stats.claimed += 1;
        // Taken for lost since it was claimed: it is run all the same, and told.
        cancel.send_replace(state.member.worker != token.owner);
        state.running.insert(token, cancel);
        drop(state);
        self.attempts.spawn(attempt::run(Arc::clone(&self.inner), task, token, cancelled));
    }

    /// Gives back what this worker owns and does not know of. No claim is under way here.
    async fn give_back_unknown(&mut self) {
        let worker = self.shared.member().worker;
        let owned = match self.inner.store.owned(worker).await {
            Ok(owned) => owned,
            Err(error) => {
                tracing::debug!(%error, "cannot look for tasks whose claim was not answered");
                return;
            }
        };
        let mut known: HashSet<TaskToken> = self.shared.state().running.keys().copied().collect();
        known.extend(self.ended.iter().map(|ended| ended.token));
        for token in owned.iter().filter(|token| !known.contains(token)) {
            let text = "the answer to its claim was lost";
            if let Err(error) = self.inner.store.schedule_retry(token, When::In(Duration::ZERO), text).await {
                tracing::debug!(%error, "a task whose claim was not answered cannot be given back yet");
                return;
            }
        }
        self.has_unknown = false;
    }
}
