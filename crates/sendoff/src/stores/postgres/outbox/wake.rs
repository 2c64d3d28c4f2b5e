//! Waking relays in other processes: a NOTIFY after the commit, in nobody's transaction.
//!
//! One inside the host's transaction would take a lock of the whole cluster from before its commit until that is on disk, and the database would write
//! one commit at a time. So the host says when it has committed, and a connection beside it tells the others, once in a few milliseconds however many
//! commits there were. Whatever is missed costs a poll: relays look by themselves as well.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::super::errors;
use super::PostgresOutbox;
use crate::error::StoreError;

/// One channel for all outboxes of a database; the payload says whose events there are.
const CHANNEL: &str = "sendoff_wake";

/// Between two announcements.
const DEBOUNCE: Duration = Duration::from_millis(5);

/// Between two tries to listen again.
const RETRY: Duration = Duration::from_secs(1);

/// Tells listening relays that events were committed. It ends with its last clone, when the last announcement is made.
#[derive(Debug, Clone)]
pub struct Announcer {
    commits: Arc<watch::Sender<()>>,
}

impl Announcer {
    /// There may be new events: call it after the commit. It does not wait, and calls in quick succession are one.
    pub fn committed(&self) {
        self.commits.send_replace(());
    }
}

/// Hears announcements until it is dropped.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Listening {
    task: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PostgresOutbox {
    /// For a host whose relay runs elsewhere: wakes it after each commit. Not needed, and best left out where a few milliseconds do not matter.
    ///
    /// Call it within a Tokio runtime.
    pub fn announcer(&self) -> Announcer {
        let (commits, mut seen) = watch::channel(());
        let outbox = self.clone();
        tokio::spawn(async move {
            while seen.changed().await.is_ok() {
                let query = sqlx::query("SELECT pg_notify($1, $2)");
                let query = query.bind(CHANNEL).bind(outbox.payload());
                if let Err(error) = outbox.fetch_all("announce", query).await {
                    tracing::debug!(%error, "a commit could not be announced; relays find it by themselves");
                }
                tokio::time::sleep(DEBOUNCE).await;
            }
        });
        Announcer { commits: Arc::new(commits) }
    }

    /// Calls `heard` when events were announced, and when announcements may have been missed. Have it ring the relay's bell.
    ///
    /// It has a connection of its own, and makes a new one when that is lost.
    ///
    /// # Errors
    /// `Rejected` behind a transaction-mode pooler, which has no sessions to listen in; otherwise as a connection's.
    pub async fn listen(&self, heard: impl Fn() + Send + 'static) -> Result<Listening, StoreError> {
        if !self.has_sessions() {
            let detail = "a transaction-mode pooler has no sessions to listen in: give the relay the server's own address";
            return Err(StoreError::rejected("listen", CHANNEL, detail));
        }
        let convert = |error| errors::convert("listen", CHANNEL, error);
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with((*self.options()).clone());
        let mut listener = PgListener::connect_with(&pool).await.map_err(convert)?;
        listener.listen(CHANNEL).await.map_err(convert)?;
        let payload = self.payload();
        let task = tokio::spawn(async move {
            loop {
                match listener.try_recv().await {
                    Ok(Some(announced)) if announced.payload() != payload => {}
                    // None: the connection was lost, and nobody knows what was announced meanwhile.
                    Ok(_) => heard(),
                    Err(error) => {
                        tracing::warn!(%error, "announcements are not heard; trying again");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            }
        });
        Ok(Listening { task: task.abort_handle() })
    }

    fn payload(&self) -> String {
        self.floor.templates.names.subject()
    }
}
