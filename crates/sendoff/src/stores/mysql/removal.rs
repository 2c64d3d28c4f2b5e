//! Claims that remove their rows: lock and read, delete, commit.

use sqlx::mysql::MySqlRow;
use sqlx::{Connection as _, FromRow, Row as _};

use super::super::sql::{KEYS_PER_STATEMENT, Statement};
use super::{BEGIN, MysqlTable, errors, rows};
use crate::claim::{ClaimSpec, Key};
use crate::error::StoreError;

impl<R> MysqlTable<R>
where
    R: for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
{
    /// Removes the rows that `lock` locks and reads. One that cannot be read as `R` is found out here, while it can still stay.
    ///
    /// On a cluster too they are read before they are deleted: afterwards they are gone. A SELECT between the write and the
    /// COMMIT is what made a node keep silent about a lost transaction, and there is none.
    pub(super) async fn remove_once(&self, spec: &ClaimSpec, lock: &Statement) -> Result<Vec<R>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let mut connection = self.database.connections.acquire().await.map_err(convert)?;
        let mut transaction = connection.begin_with(BEGIN).await.map_err(convert)?;

        let (mut keys, mut removed): (Vec<Key>, Vec<R>) = (Vec::new(), Vec::new());
        for row in self.fetch("claim", &mut transaction, lock).await? {
            keys.push(self.key(&row, row.len() - self.layout.key().len())?);
            removed.push(R::from_row(&row).map_err(convert)?);
        }
        if keys.is_empty() {
            transaction.rollback().await.map_err(convert)?;
            connection.keep();
            return Ok(removed);
        }
        keys.sort_by_cached_key(rows::ascending);
        for keys in keys.chunks(KEYS_PER_STATEMENT) {
            let deleted = self.execute(&mut transaction, &self.delete_statement(spec, keys)?).await?;
            if deleted != keys.len() as u64 {
                return Err(self.lost_while_locked(keys.len(), deleted));
            }
        }
        // On a cluster this is where a claim of the same rows on another node wins: then nothing was claimed.
        transaction.commit().await.map_err(convert)?;
        connection.keep();
        Ok(removed)
    }

    fn delete_statement(&self, spec: &ClaimSpec, keys: &[Key]) -> Result<Statement, StoreError> {
        let template = if self.trusts_locks() {
            include_str!("claim_remove_2_delete.sql")
        } else {
            include_str!("claim_remove_2_delete_if.sql")
        };
        self.renderer(spec)?.keys(keys).fill(template)
    }
}
