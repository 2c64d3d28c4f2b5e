//! Connection poolers that share server sessions between clients.
//!
//! In transaction mode a pooler such as PgBouncer may hand each transaction to another server
//! session. A driver that prepares a statement in one transaction and runs it in the next then runs
//! whatever the session it got last prepared: another client's answers, without one error. So the mode is named, every statement in it is
//! prepared and run in one transaction, and without the mode such a pooler is refused.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _, Row as _};

use super::errors;
use crate::error::StoreError;

/// What stands between sendoff and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooler {
    /// Nothing, or a pooler that gives every client a session of its own.
    #[default]
    None,
    /// A pooler in transaction mode: PgBouncer's `pool_mode = transaction` and its like.
    /// Two more trips a statement.
    Transaction,
}

/// So often a pooler must give both of two connections a session that is theirs alone to pass unseen.
const LOOKS: usize = 32;

/// Refuses a connection through a transaction-mode pooler that was not declared.
pub(super) async fn refuse_undeclared(options: &PgConnectOptions) -> Result<(), StoreError> {
    let convert = |error| errors::convert("connect", "database", error);
    let first = PgConnection::connect_with(options).await.map_err(convert)?;
    let second = PgConnection::connect_with(options).await.map_err(convert)?;
    if sessions_are_shared([first, second]).await.map_err(convert)? {
        return Err(StoreError::schema(
            "connect",
            "database",
            "the URL leads through a pooler in transaction mode, where one client's statement can run \
             for another; connect with `Pooler::Transaction`, or directly to the server",
        ));
    }
    Ok(())
}

/// Two open connections that see one server session, or one that sees two, are pooled. Asked in a random order,
/// since a pooler may deal its sessions out in turn. Only simple queries are sent: they are safe whatever the answer is.
async fn sessions_are_shared(mut connections: [PgConnection; 2]) -> Result<bool, sqlx::Error> {
    let mut seen: [Option<String>; 2] = [None, None];
    for _ in 0..LOOKS {
        let asked = usize::from(fastrand::bool());
        let session: String =
            connections[asked].fetch_one("SELECT pg_backend_pid()::text").await?.try_get(0)?;
        let is_others = seen[1 - asked].as_ref() == Some(&session);
        let is_new = seen[asked].as_ref().is_some_and(|known| *known != session);
        if is_others || is_new {
            return Ok(true);
        }
        seen[asked] = Some(session);
    }
    Ok(false)
}
