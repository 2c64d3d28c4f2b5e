//! PostgreSQL's row addresses, as the driver sends and reads them: a block and an offset.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef, Postgres};
use sqlx::{Decode, Encode, Type};

use crate::outbox::RowAddress;

/// The type `tid` and its array have fixed numbers.
const TID: Oid = Oid(27);
const TID_ARRAY: Oid = Oid(1010);

#[derive(Debug, Clone, Copy)]
pub(super) struct Tid(pub(super) RowAddress);

impl Type<Postgres> for Tid {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TID)
    }

    fn compatible(_: &PgTypeInfo) -> bool {
        true
    }
}

impl PgHasArrayType for Tid {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TID_ARRAY)
    }
}

impl Encode<'_, Postgres> for Tid {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&self.0.block.to_be_bytes());
        buffer.extend_from_slice(&self.0.offset.to_be_bytes());
        Ok(IsNull::No)
    }
}

impl<'r> Decode<'r, Postgres> for Tid {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let bytes: [u8; 6] = value.as_bytes()?.try_into()?;
        let [b0, b1, b2, b3, o0, o1] = bytes;
        Ok(Self(RowAddress {
            block: u32::from_be_bytes([b0, b1, b2, b3]),
            offset: u16::from_be_bytes([o0, o1]),
        }))
    }
}
