//! Rows whose type is not known when the program is written.

use std::sync::Arc;

use super::ident::Ident;
use super::value::Value;
use crate::error::StoreError;

/// A row as columns and values, for tools and tests. Programs that know their table give the
/// store a row type of their own instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    columns: Arc<[Ident]>,
    values: Vec<Value>,
}

impl Record {
    /// A row of these values under these columns.
    ///
    /// # Panics
    /// If there are not as many values as columns: a row is never half there.
    pub fn new(columns: Arc<[Ident]>, values: Vec<Value>) -> Self {
        assert_eq!(columns.len(), values.len(), "a record has one value for each column");
        Self { columns, values }
    }

    /// The columns, in the table's order.
    pub fn columns(&self) -> &[Ident] {
        &self.columns
    }

    /// The values, in the same order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value of a column, if there is such a column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        let index = self.columns.iter().position(|name| name.as_str() == column)?;
        self.values.get(index)
    }

    pub(crate) fn at(&self, index: usize) -> &Value {
        &self.values[index]
    }

    pub(crate) fn at_mut(&mut self, index: usize) -> &mut Value {
        &mut self.values[index]
    }

    /// Only these columns, in this order.
    pub(crate) fn project(&self, columns: &Arc<[Ident]>, indexes: &[usize]) -> Self {
        Self {
            columns: Arc::clone(columns),
            values: indexes.iter().map(|&index| self.values[index].clone()).collect(),
        }
    }
}

/// A row type that can be read from a [`Record`]: what the memory store returns. SQL stores use their
/// driver's own `FromRow`.
pub trait FromRecord: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// `Corrupt` if the record does not hold what the type wants.
    fn from_record(record: Record) -> Result<Self, StoreError>;
}

impl FromRecord for Record {
    fn from_record(record: Record) -> Result<Self, StoreError> {
        Ok(record)
    }
}

/// The key of one row: the values of its table's key columns, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Key(pub Vec<Value>);

impl Key {
    /// Equal keys, and only those, give equal bytes: to look rows up by their key.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 * self.0.len());
        for value in &self.0 {
            let (tag, content): (u8, std::borrow::Cow<'_, [u8]>) = match value {
                Value::Null => (0, (&[][..]).into()),
                Value::Bool(flag) => (1, vec![u8::from(*flag)].into()),
                Value::Int(number) => (2, number.to_be_bytes().to_vec().into()),
                Value::Float(number) => (3, number.to_bits().to_be_bytes().to_vec().into()),
                Value::Text(text) => (4, text.as_bytes().into()),
                Value::Bytes(content) => (5, content.as_slice().into()),
                Value::Uuid(id) => (6, id.as_bytes().as_slice().into()),
                Value::Timestamp(at) => (7, at.as_micros().to_be_bytes().to_vec().into()),
                Value::Json(json) => (8, json.to_string().into_bytes().into()),
                Value::Now { offset_micros } => (9, offset_micros.to_be_bytes().to_vec().into()),
            };
            bytes.push(tag);
            bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
            bytes.extend_from_slice(&content);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_only_in_where_they_are_cut_differ() {
        let key = |a: &str, b: &str| Key(vec![a.into(), b.into()]).to_bytes();
        assert_ne!(key("ab", "c"), key("a", "bc"));
        assert_eq!(key("ab", "c"), key("ab", "c"));
    }
}
