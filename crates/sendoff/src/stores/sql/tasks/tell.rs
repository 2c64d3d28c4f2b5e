//! Writing down what happened: in the history of each task, and in the outbox if that is wanted.

use super::{
    Arg, KEYS_PER_STATEMENT, RowReader, SqlDatabase, SqlTasks, SqlTransaction, Statement, Templates,
};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::outbox::WorkerId;
use crate::stores::sql::enqueue_statements;
use crate::tasks::{Publish, TaskEvent, TaskEventKind, TaskId};

/// What happened to one task, now.
#[derive(Debug, Clone)]
pub(super) struct Happened {
    pub(super) task: TaskId,
    pub(super) kind: TaskEventKind,
    pub(super) attempt: u32,
    pub(super) owner: Option<WorkerId>,
    pub(super) detail: Option<String>,
}

impl Happened {
    /// Before anybody claimed it.
    pub(super) fn early(task: TaskId, kind: TaskEventKind) -> Self {
        Self { task, kind, attempt: 0, owner: None, detail: None }
    }
}

/// What to write, where all of it happened at `at`; none: when it is written.
pub(super) fn statements(
    templates: &Templates,
    publish: Option<&Publish>,
    happened: &[Happened],
    at: Option<Timestamp>,
) -> Result<Vec<Statement>, StoreError> {
    let mut statements = Vec::new();
    for chunk in happened.chunks(KEYS_PER_STATEMENT) {
        let rows = chunk.iter().map(|one| row(templates, one, at)).collect();
        statements.push(templates.fill(include_str!("tell.sql"), &[("rows", Arg::Rows(rows))])?);
    }
    if let (Some(publish), Some(at)) = (publish, at) {
        let mut events = Vec::with_capacity(happened.len());
        for one in happened {
            events.push(publish.event(&TaskEvent {
                task: one.task,
                kind: one.kind,
                attempt: one.attempt,
                owner: one.owner,
                at,
                detail: one.detail.clone(),
            })?);
        }
        statements.extend(enqueue_statements(templates, &events)?);
    }
    Ok(statements)
}

fn row(templates: &Templates, one: &Happened, at: Option<Timestamp>) -> Vec<Arg> {
    vec![
        Arg::Bound(templates.uuid(one.task.0)),
        Arg::from(one.kind.word()),
        Arg::from(one.attempt),
        one.owner.map_or(Arg::Null, |owner| templates.worker(owner)),
        at.map_or(Arg::Now(0), Arg::Moment),
        Arg::from(one.detail.as_deref()),
    ]
}

pub(super) fn clock(templates: &Templates) -> Result<Statement, StoreError> {
    templates.fill(include_str!("clock.sql"), &[])
}

impl<D: SqlDatabase> SqlTasks<D> {
    /// Writes down what happened. The clock is only read where what it shows is published.
    pub(super) async fn tell(
        &self,
        transaction: &mut dyn SqlTransaction,
        happened: &[Happened],
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let at = match at {
            None if self.publish.is_some() && !happened.is_empty() => {
                let rows = transaction.query(&clock(&self.templates)?).await?;
                rows.into_iter().next().map(|row| RowReader::new(row).moment("now")).transpose()?
            }
            at => at,
        };
        for statement in statements(&self.templates, self.publish.as_ref(), happened, at)? {
            transaction.execute(&statement).await?;
        }
        Ok(())
    }
}
