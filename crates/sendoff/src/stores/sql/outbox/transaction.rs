//! What a transaction is, once for every driver: their types differ, what is done with them does not.

/// Makes `Transaction` over a driver's connection, and `values`, which reads its rows. The module has `errors`, `rows`,
/// `arguments` and `SUBJECT`.
macro_rules! sql_transaction {
    ($database:ty, $row:ty, $guard:ty) => {
        /// A value that its type cannot hold, such as text that is not UTF-8, is read as its bytes: one row must not make the others unreadable.
        fn value(row: &$row, index: usize) -> Result<Value, sqlx::Error> {
            match rows::value(row, index) {
                Err(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => rows::raw(row, index),
                read => read,
            }
        }

        fn values(rows: &[$row]) -> Result<Vec<Vec<Value>>, sqlx::Error> {
            let read = |row: &$row| (0..sqlx::Row::len(row)).map(|index| value(row, index)).collect();
            rows.iter().map(read).collect()
        }

        struct Transaction {
            connection: Option<crate::stores::sql::Lent<$database>>,
            op: &'static str,
            /// A pooler hands the session, and what is prepared in it, to others.
            keeps_statements: bool,
            _guard: $guard,
        }

        impl Transaction {
            fn connection(&mut self) -> Result<&mut <$database as sqlx::Database>::Connection, StoreError> {
                let op = self.op;
                let ended = || StoreError::rejected(op, SUBJECT, "the transaction has ended");
                self.connection.as_deref_mut().ok_or_else(ended)
            }

            async fn end(mut self: Box<Self>, word: &'static str) -> Result<(), StoreError> {
                let op = self.op;
                let ended = sqlx::Executor::execute(self.connection()?, word).await;
                ended.map_err(|error| errors::convert(op, SUBJECT, error))?;
                if let Some(connection) = self.connection.take() {
                    connection.keep();
                }
                Ok(())
            }
        }

        impl Drop for Transaction {
            fn drop(&mut self) {
                // Its transaction is open still: closing the connection is what ends it.
                if let Some(connection) = self.connection.take() {
                    connection.discard();
                }
            }
        }

        #[async_trait]
        impl SqlTransaction for Transaction {
            async fn query(&mut self, statement: &Statement) -> Result<Vec<Vec<Value>>, StoreError> {
                let op = self.op;
                let convert = |error| errors::convert(op, SUBJECT, error);
                let query = sqlx::query_with(
                    sqlx::AssertSqlSafe(statement.sql.clone()),
                    arguments(statement).map_err(convert)?,
                );
                let query = query.persistent(self.keeps_statements);
                let rows = query.fetch_all(self.connection()?).await.map_err(convert)?;
                values(&rows).map_err(convert)
            }

            async fn execute(&mut self, statement: &Statement) -> Result<u64, StoreError> {
                let op = self.op;
                let convert = |error| errors::convert(op, SUBJECT, error);
                let query = sqlx::query_with(
                    sqlx::AssertSqlSafe(statement.sql.clone()),
                    arguments(statement).map_err(convert)?,
                );
                let query = query.persistent(self.keeps_statements);
                Ok(query.execute(self.connection()?).await.map_err(convert)?.rows_affected())
            }

            async fn commit(self: Box<Self>) -> Result<(), StoreError> {
                self.end("COMMIT").await
            }

            async fn rollback(self: Box<Self>) -> Result<(), StoreError> {
                self.end("ROLLBACK").await
            }
        }
    };
}

pub(crate) use sql_transaction;
