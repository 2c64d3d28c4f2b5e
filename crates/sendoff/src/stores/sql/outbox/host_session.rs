//! Any statement of ours on a host's connection, in the host's own transaction.

use std::future::Future;

use crate::claim::Value;
use crate::error::StoreError;
use crate::stores::sql::{Dialect, Statement};

/// A connection of the host's with its transaction open on it, that statements can be run on and rows read from. A pool is none.
pub trait HostSession: Send {
    /// Its SQL.
    #[doc(hidden)]
    fn dialect(&self) -> Dialect;

    /// Runs a statement and reads its rows.
    #[doc(hidden)]
    fn query(
        &mut self,
        op: &'static str,
        statement: &Statement,
    ) -> impl Future<Output = Result<Vec<Vec<Value>>, StoreError>> + Send;

    /// Runs a statement; how many rows it changed, or matched.
    #[doc(hidden)]
    fn execute(
        &mut self,
        op: &'static str,
        statement: &Statement,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

/// Makes a driver's connection, and its transaction, a [`HostSession`]. The module has `errors`, `arguments` and `values`.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
macro_rules! host_session {
    ($database:ty, $connection:ty, $dialect:expr) => {
        impl crate::stores::sql::HostSession for &mut $connection {
            fn dialect(&self) -> Dialect {
                $dialect
            }

            async fn query(
                &mut self,
                op: &'static str,
                statement: &Statement,
            ) -> Result<Vec<Vec<Value>>, StoreError> {
                let convert = |error| errors::convert(op, "task", error);
                let arguments = arguments(statement).map_err(convert)?;
                let query = sqlx::query_with(sqlx::AssertSqlSafe(statement.sql.clone()), arguments);
                let rows = query.fetch_all(&mut **self).await.map_err(convert)?;
                values(&rows).map_err(convert)
            }

            async fn execute(&mut self, op: &'static str, statement: &Statement) -> Result<u64, StoreError> {
                let convert = |error| errors::convert(op, "task", error);
                let arguments = arguments(statement).map_err(convert)?;
                let query = sqlx::query_with(sqlx::AssertSqlSafe(statement.sql.clone()), arguments);
                Ok(query.execute(&mut **self).await.map_err(convert)?.rows_affected())
            }
        }

        impl crate::stores::sql::HostSession for &mut sqlx::Transaction<'_, $database> {
            fn dialect(&self) -> Dialect {
                $dialect
            }

            async fn query(
                &mut self,
                op: &'static str,
                statement: &Statement,
            ) -> Result<Vec<Vec<Value>>, StoreError> {
                let mut connection: &mut $connection = &mut ***self;
                crate::stores::sql::HostSession::query(&mut connection, op, statement).await
            }

            async fn execute(&mut self, op: &'static str, statement: &Statement) -> Result<u64, StoreError> {
                let mut connection: &mut $connection = &mut ***self;
                crate::stores::sql::HostSession::execute(&mut connection, op, statement).await
            }
        }
    };
}

#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(crate) use host_session;
